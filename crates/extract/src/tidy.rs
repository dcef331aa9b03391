//! The last step of every reader, and the pool's check of what a worker says: text as every later stage expects it.

/// Between two pages of a document that has pages.
pub(crate) const PAGE_BREAK: char = '\u{c}';

/// Every kind of line end becomes `\n`; control characters go, but `\n`, `\t` and [`PAGE_BREAK`]; so do byte-order
/// marks and noncharacters. Blanks at line ends, and empty lines beyond two in a row, are cut.
pub(crate) fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut line_ends = 0usize;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            // Vertical tab, next line, line and paragraph separator: line ends of other worlds (Unicode UAX #14, BK).
            '\n' | '\r' | '\u{b}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                trim_blanks(&mut out);
                line_ends += 1;
                if line_ends <= 3 && !out.is_empty() {
                    out.push('\n');
                }
            }
            PAGE_BREAK => {
                trim_blanks(&mut out);
                out.push(PAGE_BREAK);
                line_ends = 0;
            }
            other if allowed(other) => {
                out.push(other);
                if !matches!(other, ' ' | '\t') {
                    line_ends = 0;
                }
            }
            _ => {}
        }
    }
    out.truncate(out.trim_end_matches([' ', '\t', '\n', PAGE_BREAK]).len());
    out
}

fn trim_blanks(out: &mut String) {
    out.truncate(out.trim_end_matches([' ', '\t']).len());
}

/// Whether a character may stand in a document's text.
pub(crate) fn allowed(c: char) -> bool {
    match c {
        '\n' | '\t' | PAGE_BREAK => true,
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{fdd0}'..='\u{fdef}' => false,
        other => !other.is_control(),
    }
}

/// One line of at most 300 characters, `None` where nothing is left.
pub(crate) fn title(text: &str) -> Option<String> {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || !allowed(c)).filter(|word| !word.is_empty()).collect();
    let line: String = words.join(" ").chars().take(300).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_newlines_and_controls_are_gone() {
        assert_eq!(tidy("a\r\nb\rc\u{85}d\u{2028}e"), "a\nb\nc\nd\ne");
        assert_eq!(tidy("a\0b\u{7}c\u{1b}[0md\u{9b}\u{feff}\u{fffe}"), "abc[0md");
        assert_eq!(tidy("tab\tstays"), "tab\tstays");
        assert_eq!(tidy("one\u{c}two\u{c}\n"), "one\u{c}two");
    }

    #[test]
    fn blanks_at_line_ends_and_many_empty_lines_are_cut() {
        assert_eq!(tidy("\n\n  a  \n \t\n\n\n\n\n  b \n"), "  a\n\n\n  b");
    }

    #[test]
    fn joiners_and_emoji_are_whole() {
        let text = "👩\u{200d}👧 e\u{301} שלום\u{200f}";
        assert_eq!(tidy(text), text);
    }

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(title("  A\n b\u{0}c \t"), Some("A b c".to_owned()));
        assert_eq!(title(" \n"), None);
        assert_eq!(title(&"x".repeat(1000)).map(|line| line.len()), Some(300));
    }

    proptest::proptest! {
        #[test]
        fn tidy_text_is_tidy(text in "\\PC*[\\x00-\\x20\\x7f-\\x9f\\ufeff\\u2028]{0,8}\\PC*[\r\n \t\x0c]{0,8}\\PC*") {
            let once = tidy(&text);
            proptest::prop_assert!(once.chars().all(allowed));
            proptest::prop_assert_eq!(tidy(&once), once);
        }
    }
}
