#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]
//! Which personal values does a text hold, and what does it read like without them?
//!
//! A pure library: no I/O, no clock, the same answer for the same text. [`scan`] finds values, [`sanitize()`] puts a token in the
//! place of each and proves by scanning again that none is left. It refuses (an error, not a log line) what does not come clean.
//! See `docs/sanitize.md` for what each rule takes and where its format is from: [`rules()`] lists them.

mod card;
mod checks;
mod context;
mod crypto;
mod email;
mod fold;
#[cfg(test)]
mod golden;
mod iban;
mod kind;
mod national;
mod net;
mod normal;
mod personal;
mod phone;
mod rules;
mod run;
mod sanitize;
mod scanner;
mod secret;
#[cfg(test)]
mod testing;
mod token;
mod vat;

pub use kind::{Kind, UnknownKind};
pub(crate) use normal::normal;
pub use rules::{FINGERPRINT, RuleInfo, rules};
pub use sanitize::{Found, SanitizeError, Sanitized, sanitize};
pub use token::{TokenKey, tokens, unescape};

/// A value in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte of the value in the source; a character boundary.
    pub start: usize,
    /// Byte behind the value; a character boundary.
    pub end: usize,
    /// The kind of value.
    pub kind: Kind,
    /// The rule that found it, as [`rules()`] names it.
    pub rule: &'static str,
}

/// Finds the personal values in `text`: sorted, not overlapping.
pub fn scan(text: &str) -> Vec<Span> {
    scanner::scan(text)
}
