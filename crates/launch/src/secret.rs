//! A value that is never printed, and the texts it is taken out of.

use std::fmt;

use zeroize::Zeroizing;

/// What stands in the place of a secret.
pub(crate) const MASK: &str = "***";

/// A credential's value. It prints as `***`, is compared with nothing, and its memory is wiped when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the value over.
    pub fn new(value: String) -> Self {
        Self(Zeroizing::new(value))
    }

    /// The value, for the one place that hands it on.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl serde::Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// Takes every secret of a launch out of what other programs print.
#[derive(Default)]
pub struct Masker {
    /// Longest first, so that a secret which holds another is taken out whole.
    patterns: Vec<Zeroizing<String>>,
}

impl Masker {
    /// A masker of these values: as they are, line by line, and as JSON and URLs write them.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        let mut patterns = Vec::new();
        for secret in secrets {
            let value = secret.reveal();
            let json = serde_json::Value::from(value).to_string();
            patterns.push(json.trim_matches('"').to_owned());
            patterns.push(percent_encoded(value));
            patterns.push(value.to_owned());
            // of a value with several lines each may be quoted alone; a short one says nothing
            patterns.extend(value.lines().map(str::trim).filter(|line| line.len() >= 6).map(str::to_owned));
        }
        patterns.retain(|pattern| !pattern.is_empty());
        patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.len()));
        patterns.dedup();
        Self { patterns: patterns.into_iter().map(Zeroizing::new).collect() }
    }

    /// Characters of the longest secret: so much of a text that was cut off at its beginning may be a part of one.
    pub(crate) fn longest(&self) -> usize {
        self.patterns.first().map_or(0, |pattern| pattern.len())
    }

    /// The text without any secret.
    pub fn mask(&self, text: &str) -> String {
        self.patterns.iter().fold(text.to_owned(), |text, pattern| {
            if text.contains(pattern.as_str()) { text.replace(pattern.as_str(), MASK) } else { text }
        })
    }
}

fn percent_encoded(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_stars() {
        let secret = Secret::new("hunter22".into());
        assert_eq!(format!("{secret} {secret:?} {}", serde_json::to_string(&secret).unwrap()), "*** *** \"***\"");
    }

    #[test]
    fn secrets_are_taken_out_in_every_spelling() {
        let secrets =
            [Secret::new("a/b+c\"d".into()), Secret::new("a/b".into()), Secret::new("first line\nsecond".into())];
        let masker = Masker::new(&secrets);
        for text in ["x a/b+c\"d y", "x a%2Fb%2Bc%22d y", r#"x a/b+c\"d y"#, "x a/b y", "x first line y"] {
            assert_eq!(masker.mask(text), "x *** y", "{text}");
        }
        assert_eq!(masker.mask("nothing here"), "nothing here");
    }
}
