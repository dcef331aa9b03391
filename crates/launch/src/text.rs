//! Text that came from elsewhere, made fit for a terminal and for one line.

/// The text with every character that a terminal would act on, or that hides others, written out.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_hiding(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// As [`plain`], line by line: line breaks and tabs stay, for text that has several lines.
pub fn plain_lines(text: &str) -> String {
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    lines.map(|line| line.split('\t').map(plain).collect::<Vec<_>>().join("\t")).collect::<Vec<_>>().join("\n")
}

/// Direction marks and characters without width: they make a text look like another.
fn is_hiding(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// At most `max` characters of the text's end.
pub(crate) fn tail(text: &str, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text.to_owned();
    }
    format!("… {}", text.chars().skip(count - max).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_has_nothing_to_act_on() {
        assert_eq!(plain("a\u{1b}[2J\nb\u{202e}c\u{9b}é"), "a\\u{1b}[2J\\nb\\u{202e}c\\u{9b}é");
        assert_eq!(plain_lines("a\tb\r\nc\rd\n"), "a\tb\nc\\rd\n");
    }

    #[test]
    fn the_end_of_a_long_text_is_kept() {
        assert_eq!(tail("abc", 3), "abc");
        assert_eq!(tail("aébc", 3), "… ébc");
    }
}
