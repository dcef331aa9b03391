//! Promises of the egress policy, kept on real profiles.
#![allow(clippy::unwrap_used)] // helpers of tests

mod policy;
mod policy_credentials;
