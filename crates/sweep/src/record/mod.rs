//! What is written down of a run? The lines of `run.jsonl`, in versioned modules; docs/sweep.md is held to them.

pub mod v1;
