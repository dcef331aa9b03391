//! Does a text match a pattern? `*` and `**` stand for any run of characters, also none, and they cross `/`.
//!
//! Everything else is literal. Linear memory, and time at most pattern × text: no input makes it slower.

/// A pattern of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// Keeps a pattern. Refused is what other readers of the schema give a meaning (`?`, `[…]`, `{…}`, `\`), so that
    /// a pattern never means two things, and control characters.
    pub fn parse(pattern: &str) -> Result<Self, &'static str> {
        if pattern.is_empty() {
            return Err("an empty pattern");
        }
        match pattern.chars().find(|c| "?[]{}\\".contains(*c) || c.is_control()) {
            Some(_) => Err("a pattern has only `*` and `**` besides plain characters"),
            None => Ok(Self(pattern.to_owned())),
        }
    }

    /// Whether the whole `text` matches, letter by letter.
    pub fn matches(&self, text: &str) -> bool {
        matches(self.0.as_bytes(), text.as_bytes(), |a, b| a == b)
    }

    /// The same, but upper and lower case of ASCII are one: for what denies.
    pub fn matches_any_case(&self, text: &str) -> bool {
        matches(self.0.as_bytes(), text.as_bytes(), |a, b| a.eq_ignore_ascii_case(&b))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn matches(pattern: &[u8], text: &[u8], same: impl Fn(u8, u8) -> bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None; // past the last star, and where its run ends
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                back = Some((p, t));
            }
            Some(c) if same(*c, text[t]) => {
                p += 1;
                t += 1;
            }
            _ => match back {
                Some((star, end)) => {
                    p = star;
                    t = end + 1;
                    back = Some((star, t));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_cross_slashes_and_all_else_is_literal() {
        for (pattern, text, hit) in [
            ("/user", "/user", true),
            ("/user", "/user/", false),
            ("/user", "/users", false),
            ("/user", "/USER", false),
            ("/repos/team/app/**", "/repos/team/app/pulls/1", true),
            ("/repos/team/app/**", "/repos/team/app", false),
            ("/repos/team/app/**", "/repos/team/application", false),
            ("/a/*/c", "/a/b/c", true),
            ("/a/*/c", "/a/b/b/c", true),
            ("/a/*/c", "/a//d", false),
            ("*repo:team/app*", "is:pr repo:team/app x", true),
            ("*repo:team/app*", "repo:team/other", false),
            ("**", "", true),
            ("*a*a*a*b", "aaaaaaaaaaaaaaaaaaaa", false),
            ("/x.y", "/xzy", false),
            ("a*", "*", false),
            ("/é/*", "/é/1", true),
        ] {
            assert_eq!(Glob::parse(pattern).unwrap().matches(text), hit, "{pattern} {text}");
        }
        assert!(Glob::parse("/Admin/*").unwrap().matches_any_case("/aDMIN/x"));
        for bad in ["", "/a?", "/[ab]", "/{a,b}", "a\\*", "a\n"] {
            assert!(Glob::parse(bad).is_err(), "{bad:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_pattern_matches_what_it_was_made_of(parts in proptest::collection::vec("[a-z/]{0,5}", 1..5), runs in proptest::collection::vec("[a-z/]{0,5}", 5)) {
            let pattern = format!("x{}", parts.join("*"));
            let text: String = std::iter::once("x".to_owned())
                .chain(parts.iter().enumerate().map(|(i, part)| if i == 0 { part.clone() } else { format!("{}{part}", runs[i]) }))
                .collect();
            proptest::prop_assert!(Glob::parse(&pattern).unwrap().matches(&text));
        }
    }
}
