//! How do keywords read without case and diacritics, so that `Tél`, `TEL` and `tel` are one?
//!
//! Invariant: each byte of plain text knows the byte of folded text it came from.

use std::sync::LazyLock;

use super::words::FILLERS;

/// A window in plain spelling. It is made once and read into again and again.
#[derive(Default)]
pub(super) struct Plain {
    bytes: Vec<u8>,
    /// Offset in the window of what each byte came from, one more for the end; empty where all is ASCII.
    from: Vec<u8>,
    start: usize,
}

impl Plain {
    /// Reads `text[start..end]`, which is at most [`BEFORE`](super::BEFORE) bytes and ends on a character boundary.
    pub(super) fn read(&mut self, text: &[u8], mut start: usize, end: usize) {
        while start < end && text[start] & 0xC0 == 0x80 {
            start += 1;
        }
        // A window that begins inside a word does not make a keyword of its rest.
        if start > 0 && text[start - 1].is_ascii_alphabetic() {
            start += text[start..end].iter().take_while(|b| b.is_ascii_alphabetic()).count();
        }
        let window = &text[start..end];
        self.start = start;
        self.bytes.clear();
        self.from.clear();
        if window.is_ascii() {
            self.bytes.extend_from_slice(window);
            self.bytes.make_ascii_lowercase();
            return;
        }
        let mut buffer = [0; 4];
        for (offset, c) in std::str::from_utf8(window).unwrap_or_default().char_indices() {
            let Some(c) = base(c) else { continue };
            let bytes = c.encode_utf8(&mut buffer).as_bytes();
            self.bytes.extend_from_slice(bytes);
            self.from.resize(self.bytes.len(), u8::try_from(offset).unwrap_or(u8::MAX));
        }
        self.from.push(u8::try_from(end - start).unwrap_or(u8::MAX));
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where in the text plain byte `at` came from.
    pub(super) fn place(&self, at: usize) -> usize {
        self.start + if self.from.is_empty() { at } else { usize::from(self.from[at]) }
    }
}

/// Base letters of U+00C0 to U+017F, in order.
const LATIN: &[u8; 192] = b"aaaaaaaceeeeiiiidnooooo*ouuuuytsaaaaaaaceeeeiiiidnooooo*ouuuuytyaaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkkllllllllllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";

/// Lower case, without diacritics; never longer in UTF-8 than `c`. Nothing for a combining mark.
fn base(c: char) -> Option<char> {
    Some(match c {
        '\0'..='\x7F' => c.to_ascii_lowercase(),
        '\u{C0}'..='\u{17F}' => char::from(LATIN[c as usize - 0xC0]),
        'ș' | 'Ș' => 's',
        'ț' | 'Ț' => 't',
        'º' => 'o',
        'ª' => 'a',
        '\u{300}'..='\u{36F}' => return None,
        'ά' | 'Ά' => 'α',
        'έ' | 'Έ' => 'ε',
        'ή' | 'Ή' => 'η',
        'ί' | 'Ί' | 'ϊ' | 'ΐ' => 'ι',
        'ό' | 'Ό' => 'ο',
        'ύ' | 'Ύ' | 'ϋ' | 'ΰ' => 'υ',
        'ώ' | 'Ώ' => 'ω',
        'ς' => 'σ',
        'ё' | 'Ё' => 'е',
        'ạ' | 'ả' | 'ấ' | 'ầ' | 'ẩ' | 'ẫ' | 'ậ' | 'ắ' | 'ằ' => 'a',
        'ẹ' | 'ẻ' | 'ẽ' | 'ế' | 'ề' | 'ể' | 'ễ' | 'ệ' => 'e',
        'ỉ' | 'ị' => 'i',
        'ọ' | 'ỏ' | 'ố' | 'ồ' | 'ổ' | 'ỗ' | 'ộ' | 'ơ' | 'ớ' | 'ờ' | 'ở' | 'ỡ' | 'ợ' => 'o',
        'ụ' | 'ủ' | 'ư' | 'ứ' | 'ừ' | 'ử' | 'ữ' | 'ự' => 'u',
        _ => c.to_lowercase().next().filter(|low| low.len_utf8() <= c.len_utf8()).unwrap_or(c),
    })
}

/// Plain spelling of a keyword or word.
pub(super) fn lower(word: &str) -> String {
    word.chars().filter_map(base).collect()
}

/// Whether a word, in any spelling, is one of those between keyword and value.
pub(super) fn is_filler(word: &[u8]) -> bool {
    let mut buffer = [0; 16];
    if word.is_ascii() && word.len() <= buffer.len() {
        // Bit n of a letter: a filler of n bytes begins with it.
        static LENGTHS: LazyLock<[u32; 256]> = LazyLock::new(|| {
            let mut lengths = [0; 256];
            FILLERS.iter().for_each(|filler| lengths[usize::from(filler.as_bytes()[0])] |= 1 << filler.len());
            lengths
        });
        let first = word.first().map_or(0, |b| usize::from(b.to_ascii_lowercase()));
        if LENGTHS[first] >> word.len() & 1 == 0 {
            return false;
        }
        let plain = &mut buffer[..word.len()];
        plain.copy_from_slice(word);
        plain.make_ascii_lowercase();
        return FILLERS.binary_search_by(|filler| filler.as_bytes().cmp(plain)).is_ok();
    }
    let plain = lower(&String::from_utf8_lossy(word));
    FILLERS.binary_search(&plain.as_str()).is_ok()
}

/// Whether a byte may stand between a keyword and its value.
pub(super) const fn joins(b: u8) -> bool {
    matches!(
        b,
        b' ' | b'\t'
            | b'\n'
            | b'\r'
            | b':'
            | b'='
            | b'#'
            | b'.'
            | b','
            | b'\''
            | b'"'
            | b'('
            | b')'
            | b'['
            | b']'
            | b'<'
            | b'>'
            | b'*'
            | b'|'
            | b'-'
            | b'_'
            | b'/'
            | b'\\'
            | b'`'
            | b'?'
    )
}

/// Length in bytes of the word that `text` begins with: letters, marks and other characters that are not ASCII.
pub(super) fn word(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_alphabetic() || **b >= 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_spelling() {
        assert_eq!(
            lower("TÉL Führerschein ŁÓDŹ ß Κάρτα ΤΗΛΈΦΩΝΟ Ёлка N°"),
            "tel fuhrerschein lodz s καρτα τηλεφωνο елка n°"
        );
    }

    #[test]
    fn places_map_back() {
        let text = "xéa\u{301}Z";
        let mut plain = Plain::default();
        plain.read(text.as_bytes(), 0, text.len());
        assert_eq!(plain.bytes(), b"xeaz");
        assert_eq!((0..5).map(|i| plain.place(i)).collect::<Vec<_>>(), [0, 1, 3, 6, 7]);
    }
}
