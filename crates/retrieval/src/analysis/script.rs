//! Which scripts need care. Ranges are blocks of the Unicode Character Database (Blocks.txt).

/// Written without spaces, or (Hangul) with endings that a search should see through: cut into pairs.
pub(crate) fn is_unspaced(char: char) -> bool {
    matches!(u32::from(char),
        0x0E00..=0x0EFF           // Thai, Lao
        | 0x1000..=0x109F         // Myanmar
        | 0x1780..=0x17FF         // Khmer
        | 0x1100..=0x11FF         // Hangul Jamo
        | 0x2E80..=0x2FDF         // radicals
        | 0x3005..=0x3007         // iteration mark, closing mark, zero
        | 0x3040..=0x30FF         // Hiragana, Katakana
        | 0x3130..=0x318F         // Hangul compatibility Jamo
        | 0x31F0..=0x31FF         // Katakana phonetic extensions
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF // ideographs
        | 0xAC00..=0xD7FF         // Hangul syllables
        | 0xF900..=0xFAFF         // compatibility ideographs
        | 0x20000..=0x323AF) // ideographs, extensions B to H
}

/// Latin, Greek and Cyrillic, where accents are left out by many who search.
pub(crate) fn is_alphabetic_european(char: char) -> bool {
    matches!(u32::from(char), 0x41..=0x5A | 0x61..=0x7A | 0xC0..=0x24F | 0x370..=0x52F | 0x1E00..=0x1FFF)
}

/// Seen by nobody and no part of a word: soft hyphen, zero-width characters, direction marks, byte order mark.
pub(crate) fn is_invisible(char: char) -> bool {
    matches!(char, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}')
}
