//! What only real processes show.
#![allow(clippy::disallowed_methods)]

mod reclaim;
