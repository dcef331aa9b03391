#!/bin/sh
exec "${0%/*}/bastion-supervisor" subagent "$@"
