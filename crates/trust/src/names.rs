//! Is this string a name that may stand here? Agent ids, host names, common names: checked once, then carried.

use std::fmt;

/// An agent's name: `[a-z0-9][a-z0-9-]{0,62}`. Safe in paths and logs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentId(String);

impl AgentId {
    /// `text` as an id, if it is one.
    pub fn new(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let ok = bytes.first().is_some_and(plain) && bytes.len() <= 63 && bytes.iter().all(|b| plain(b) || *b == b'-');
        ok.then(|| Self(text.to_owned()))
    }

    /// An id made from a folder's name, and made unlike every id that `taken` knows by a number at its end.
    pub fn from_folder_name(name: &str, taken: impl Fn(&str) -> bool) -> Self {
        let mut base = String::new();
        for c in name.chars().flat_map(char::to_lowercase) {
            if c.is_ascii_alphanumeric() {
                base.push(c);
            } else if !base.is_empty() && !base.ends_with('-') {
                base.push('-');
            }
        }
        base.truncate(56); // room for "-" and six digits
        let base = match base.trim_end_matches('-') {
            "" => "folder",
            trimmed => trimmed,
        };
        let mut id = base.to_owned();
        for n in 2..1_000_000_u32 {
            if !taken(&id) {
                break;
            }
            id = format!("{base}-{n}");
        }
        Self(id)
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A certificate's one common name: printable, no control or invisible characters. Who a signer or a peer is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommonName(String);

impl CommonName {
    /// `text` as a common name, if every character of it can be seen.
    pub fn new(text: &str) -> Option<Self> {
        (!text.is_empty() && text.chars().all(is_visible)).then(|| Self(text.to_owned()))
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for CommonName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

macro_rules! display_as_str {
    ($($name:ty),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    )*};
}
display_as_str!(AgentId, CommonName);

/// Whether a reader of a log would see this character: no control, no direction mark, no zero-width character.
fn is_visible(c: char) -> bool {
    let invisible = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}' | '\u{e0000}'..='\u{e0fff}');
    !c.is_control() && !invisible
}

/// Why `host` is no lower-case host name of at most 64 characters (the longest common name, RFC 5280), if it is none.
pub(crate) fn host_name_fault(host: &str) -> Option<&'static str> {
    if host.is_empty() {
        return Some("is empty");
    }
    if host.chars().count() > 64 {
        return Some("is longer than 64 characters, the longest a certificate's common name can be");
    }
    if host.chars().any(char::is_uppercase) {
        return Some("must be lower-case");
    }
    let label_ok = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    (!host.split('.').all(label_ok)).then_some("is no host name (letters a to z, digits, `-`, labels parted by `.`)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_safe_in_paths() {
        for ok in ["a", "0", "my-notes-2", &"a".repeat(63)] {
            assert!(AgentId::new(ok).is_some(), "{ok}");
        }
        for bad in ["", "-a", "A", "a_b", "a/b", "..", "é", "a\n", &"a".repeat(64)] {
            assert!(AgentId::new(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_folder_name_becomes_a_new_id() {
        let free = |_: &str| false;
        for (name, id) in
            [("My Notes (2024)", "my-notes-2024"), ("Документы", "folder"), ("..", "folder"), ("Ünder", "nder")]
        {
            let made = AgentId::from_folder_name(name, free);
            assert_eq!(made.as_str(), id);
            assert!(AgentId::new(made.as_str()).is_some());
        }
        assert_eq!(AgentId::from_folder_name("a", |id| matches!(id, "a" | "a-2")).as_str(), "a-3");
        let long = AgentId::from_folder_name(&"x".repeat(300), |id| id.len() < 57);
        assert!(AgentId::new(long.as_str()).is_some());
    }

    #[test]
    fn common_names_can_be_seen_whole() {
        for ok in ["alice", "alice.example", "Zoë", "a b"] {
            assert!(CommonName::new(ok).is_some(), "{ok}");
        }
        for bad in ["", "a\0b", "a\nb", "a\u{200b}", "a\u{202e}b", "\u{7f}", "a\u{85}"] {
            assert!(CommonName::new(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn host_names_are_lower_case_ldh() {
        for ok in ["a", "alice.example", "a-b.c0", &"a".repeat(63)] {
            assert_eq!(host_name_fault(ok), None, "{ok}");
        }
        for bad in ["", "A", "a..b", ".a", "a.", "-a", "a-", "a_b", "a b", "é", &"a".repeat(64), &"a.".repeat(33)] {
            assert!(host_name_fault(bad).is_some(), "{bad}");
        }
    }
}
