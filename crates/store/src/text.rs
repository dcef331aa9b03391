//! Sanitized text, addressed by characters.

use std::ops::Range;

/// How many characters lie between two entries of the position table.
const STRIDE: usize = 1024;

/// One document's sanitized text with a sparse table from characters to bytes, so that a range deep in a long text
/// is found without counting from its start.
#[derive(Debug)]
pub struct SanitizedText {
    text: String,
    /// Byte offset of every `STRIDE`-th character.
    marks: Vec<usize>,
    chars: usize,
}

impl SanitizedText {
    /// Takes the whole text.
    pub fn new(text: String) -> Self {
        let mut marks = Vec::with_capacity(text.len() / STRIDE + 1);
        let mut chars = 0;
        for (offset, byte) in text.bytes().enumerate() {
            if is_char_start(byte) {
                if chars % STRIDE == 0 {
                    marks.push(offset);
                }
                chars += 1;
            }
        }
        Self { text, marks, chars }
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its length in characters (Unicode scalar values).
    pub fn chars(&self) -> usize {
        self.chars
    }

    /// The characters from `range.start` up to `range.end`; both are held to the text's length.
    pub fn slice(&self, range: Range<usize>) -> &str {
        let start = self.byte_of(range.start);
        let end = self.byte_of(range.end.max(range.start));
        &self.text[start..end]
    }

    fn byte_of(&self, char: usize) -> usize {
        if char >= self.chars {
            return self.text.len();
        }
        let mark = self.marks[char / STRIDE];
        self.text[mark..].char_indices().nth(char % STRIDE).map_or(self.text.len(), |(offset, _)| mark + offset)
    }
}

/// Whether `byte` begins a character in UTF-8 (RFC 3629): every byte but 10xxxxxx.
fn is_char_start(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_what_counting_characters_gives() {
        let source: String = "aé漢😀\n".chars().cycle().take(5000).collect();
        let text = SanitizedText::new(source.clone());
        assert_eq!(text.chars(), 5000);
        for (start, end) in
            [(0_usize, 0_usize), (0, 5), (1023, 1025), (1024, 2048), (4999, 5000), (4990, 9999), (6000, 7000), (10, 3)]
        {
            let expected: String = source.chars().skip(start).take(end.saturating_sub(start)).collect();
            assert_eq!(text.slice(start..end), expected, "{start}..{end}");
        }
        assert_eq!(SanitizedText::new(String::new()).slice(0..3), "");
    }
}
