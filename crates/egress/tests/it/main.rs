//! Promises of the egress policy, kept on real profiles.

mod policy;
mod policy_credentials;
