//! Which line, if any, is the agent's result?
//!
//! Only the last line counts, blank lines after it aside, and only where the tag begins it: text from the middle of
//! a cycle, an echoed prompt or a nested `"status"` is never a result.

/// What a result line begins with.
pub const TAG: &[u8] = b"OPENSHELL_AGENT_RESULT";

/// The part after the tag of the last line that is not blank, where that line begins with the tag and white space.
pub fn result_line(text: &[u8]) -> Option<&[u8]> {
    let line = text.split(|byte| *byte == b'\n').rev().find(|line| !line.trim_ascii().is_empty())?;
    let rest = line.strip_prefix(TAG)?;
    matches!(rest.first(), Some(b' ' | b'\t')).then(|| rest.trim_ascii())
}

/// `text` with every line that begins with the tag quoted, so that it counts for nobody.
pub fn quote(text: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(TAG) {
            quoted.extend_from_slice(b"> ");
        }
        quoted.extend_from_slice(line);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_a_last_line_with_the_tag_and_white_space_counts() {
        for (text, expected) in [
            ("OPENSHELL_AGENT_RESULT {}", Some("{}")),
            ("a\nOPENSHELL_AGENT_RESULT\t{}\n\n  \r\n", Some("{}")),
            ("OPENSHELL_AGENT_RESULT 1\nOPENSHELL_AGENT_RESULT 2\n", Some("2")),
            ("OPENSHELL_AGENT_RESULT {}\r\n", Some("{}")),
            ("OPENSHELL_AGENT_RESULT \n", Some("")),
            ("OPENSHELL_AGENT_RESULT {}\nmore", None),
            (" OPENSHELL_AGENT_RESULT {}", None),
            ("OPENSHELL_AGENT_RESULT{}", None),
            ("OPENSHELL_AGENT_RESULTS {}", None),
            ("OPENSHELL_AGENT_RESULT", None),
            ("", None),
        ] {
            assert_eq!(result_line(text.as_bytes()), expected.map(str::as_bytes), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_quoted_never_counts(before in "[a-z\n ]{0,20}", after in "[a-z{}\n ]{0,20}") {
            let text = format!("{before}OPENSHELL_AGENT_RESULT {after}");
            let quoted = quote(text.as_bytes());
            prop_assert_eq!(result_line(&quoted), None);
        }
    }
}
