//! What the rules and the tokens promise, on the public API alone.
#![allow(clippy::disallowed_methods)]

mod labelled;
mod mutations;
mod properties;
mod tokens;

use bastion_sanitize::scan;

/// Kind and text of each value that a scan finds.
fn found(text: &str) -> Vec<(&'static str, &str)> {
    scan(text).into_iter().map(|span| (span.kind.as_str(), &text[span.start..span.end])).collect()
}
