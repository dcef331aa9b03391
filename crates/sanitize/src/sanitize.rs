//! How does text become text without the values in it?
//!
//! Each value is replaced by its token, and the result is scanned again. What is found then (a value can come out only when
//! another that overlapped it is gone) is replaced too, until a scan finds nothing; text that does not come to rest is refused.

use std::collections::{BTreeMap, HashMap};

use crate::{Kind, Span, TokenKey, scan, token};

/// Scans after the first before a text is given up: each must hide something new, so a handful is plenty.
const ROUNDS: usize = 16;

/// A value that was replaced.
#[derive(Clone, PartialEq, Eq)]
pub struct Found {
    /// What stands for the value in the text, brackets included.
    pub token: String,
    /// The kind of value.
    pub kind: Kind,
    /// The value as the source spells it where it was first met.
    pub value: String,
    /// The value in normal form, from which the token is made: one for all spellings.
    pub normal: String,
    /// The rule that found it.
    pub rule: &'static str,
    /// How often it was met in this text.
    pub times: usize,
}

impl std::fmt::Debug for Found {
    /// Leaves the value out: debug output ends in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Found")
            .field("token", &self.token)
            .field("rule", &self.rule)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

/// Sanitized text and what was taken out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sanitized {
    /// The text, with a token for each value and look-alikes of tokens escaped.
    pub text: String,
    /// Each value once, in order of first appearance.
    pub found: Vec<Found>,
    /// Replaced places by kind.
    pub counts: BTreeMap<Kind, usize>,
}

/// Why text could not be sanitized. Neither message holds a value. Both are faults of this program, not of the text's owner.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SanitizeError {
    /// The rules go on finding values in what they have made.
    #[error(
        "rule {rule} still finds a {kind} after {rounds} rounds; this document must not go on (please report the rule)"
    )]
    Leaks {
        /// The kind still found.
        kind: Kind,
        /// The rule that finds it.
        rule: &'static str,
        /// Rounds of replacing that were made.
        rounds: usize,
    },
    /// Two values have the same token (chance: one in 2^60 for each pair).
    #[error("two values have the token {token}; this document must not go on (a new vault key mends it)")]
    Clash {
        /// The token of both.
        token: String,
    },
}

/// Replaces each value in `text` by its token.
///
/// # Errors
/// [`SanitizeError`], always a fault of this program; the text must not be used then.
pub fn sanitize(text: &str, key: &TokenKey) -> Result<Sanitized, SanitizeError> {
    let mut state = State { key, found: Vec::new(), by_token: HashMap::new(), counts: BTreeMap::new() };
    let mut spans = scan(text);
    let mut clean = state.replace(&token::escape(text), &shifted(text, &spans))?;
    for round in 1.. {
        spans = scan(&clean);
        let Some(first) = spans.first() else { break };
        if round > ROUNDS {
            return Err(SanitizeError::Leaks { kind: first.kind, rule: first.rule, rounds: ROUNDS });
        }
        clean = state.replace(&clean, &spans)?;
    }
    Ok(Sanitized { text: clean, found: state.found, counts: state.counts })
}

/// The spans' places after look-alikes have got their backslash. Spans never overlap look-alikes.
fn shifted(text: &str, spans: &[Span]) -> Vec<Span> {
    let mut shapes = token::shapes(text).map(|range| range.start).peekable();
    let mut shift = 0;
    spans
        .iter()
        .map(|span| {
            while shapes.next_if(|&at| at < span.start).is_some() {
                shift += 1;
            }
            Span { start: span.start + shift, end: span.end + shift, ..*span }
        })
        .collect()
}

struct State<'k> {
    key: &'k TokenKey,
    found: Vec<Found>,
    by_token: HashMap<String, usize>,
    counts: BTreeMap<Kind, usize>,
}

impl State<'_> {
    fn replace(&mut self, text: &str, spans: &[Span]) -> Result<String, SanitizeError> {
        let mut out = String::with_capacity(text.len() + text.len() / 8);
        let mut done = 0;
        for span in spans {
            out.push_str(&text[done..span.start]);
            self.push(&mut out, span, &text[span.start..span.end])?;
            done = span.end;
        }
        out.push_str(&text[done..]);
        Ok(out)
    }

    fn push(&mut self, out: &mut String, span: &Span, value: &str) -> Result<(), SanitizeError> {
        let normal = crate::normal(span.kind, value);
        let token = self.key.token(span.kind, &normal);
        out.push_str(&token);
        *self.counts.entry(span.kind).or_default() += 1;
        match self.by_token.get(&token) {
            Some(&i) if self.found[i].normal == normal => self.found[i].times += 1,
            Some(_) => return Err(SanitizeError::Clash { token }),
            None => {
                self.by_token.insert(token.clone(), self.found.len());
                self.found.push(Found {
                    token,
                    kind: span.kind,
                    value: value.to_owned(),
                    normal,
                    rule: span.rule,
                    times: 1,
                });
            }
        }
        Ok(())
    }
}
