//! A text's words before stemming: what is one word, and what it is made of.

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use super::script;

/// Longer words are cut here (bytes): encoded data, not language. A SHA-512 in hex has 128.
const MAX_WORD_BYTES: usize = 256;

/// One word, or one run of a script written without spaces.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// A term beside the atoms: `1.0.21`, `snake_case`, `l'avion`. It stands where the first atom does and has no stem.
    pub(crate) whole: Option<String>,
    /// What follows one another: the word itself, the parts of a compound, the single characters of a run.
    pub(crate) atoms: Vec<String>,
    /// Whether the atoms have no stem.
    pub(crate) literal: bool,
    /// Pairs of neighbouring characters of a run of two or more.
    pub(crate) pairs: Option<Pairs>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pairs {
    pub(crate) terms: Vec<String>,
    /// Characters in the run.
    pub(crate) span: u32,
}

/// The pieces of a text, in order.
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    let mut found = Vec::with_capacity(text.len() / 6);
    let mut run = Run::default();
    for (at, word) in text.unicode_word_indices() {
        if word.chars().any(script::is_unspaced) {
            // UAX #29 gives ideographs one by one and joins Katakana and Hangul: runs are put together here.
            if run.end != at {
                found.extend(run.take());
            }
            run.push(at, word);
        } else {
            found.extend(run.take());
            found.extend(spaced(word));
        }
    }
    found.extend(run.take());
    found
}

fn spaced(word: &str) -> Option<Piece> {
    if is_token(word) {
        // A hidden value's stand-in is one name; its parts would make every query for "email" find all of them.
        return Some(Piece { atoms: vec![word.to_ascii_lowercase()], literal: true, ..Piece::default() });
    }
    let folded = folded(word);
    let parts: Vec<&str> =
        folded.split(|char: char| !(char.is_alphanumeric() || is_mark(char))).filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [] => None,
        [only] => Some(Piece { atoms: vec![(*only).to_owned()], ..Piece::default() }),
        several => {
            let atoms = several.iter().map(|part| (*part).to_owned()).collect();
            let whole = folded.trim_matches(|char: char| !char.is_alphanumeric());
            // A version is asked for with and without its v.
            let whole = whole
                .strip_prefix('v')
                .filter(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
                .unwrap_or(whole);
            Some(Piece { whole: Some(whole.to_owned()), atoms, ..Piece::default() })
        }
    }
}

/// A stand-in for a hidden value without its brackets: `TYPE_` and twelve characters of base32.
pub(super) fn is_token(word: &str) -> bool {
    let Some((kind, digest)) = word.rsplit_once('_') else { return false };
    digest.len() == 12
        && digest.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
        && kind.starts_with(|char: char| char.is_ascii_uppercase())
        && kind.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
}

fn is_mark(char: char) -> bool {
    unicode_normalization::char::is_combining_mark(char)
}

/// Compatibility normal form, lower case, straight apostrophes, nothing invisible, not endless.
fn folded(word: &str) -> String {
    let word = &word[..word.floor_char_boundary(MAX_WORD_BYTES)];
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    let visible = word.chars().filter(|char| !script::is_invisible(*char));
    let folded: String =
        visible.map(|char| if char == '’' { '\'' } else { char }).nfkc().flat_map(char::to_lowercase).collect();
    folded.nfc().collect()
}

/// Neighbouring words of scripts without spaces.
#[derive(Default)]
struct Run {
    text: String,
    end: usize,
}

impl Run {
    fn push(&mut self, at: usize, word: &str) {
        self.text.push_str(word);
        self.end = at + word.len();
    }

    fn take(&mut self) -> Option<Piece> {
        let text = std::mem::take(&mut self.text);
        self.end = usize::MAX;
        let folded: String =
            text.chars().filter(|char| !script::is_invisible(*char)).nfkc().flat_map(char::to_lowercase).collect();
        // A vowel sign or voicing mark goes with its letter.
        let atoms: Vec<String> =
            folded.graphemes(true).filter(|one| one.chars().any(char::is_alphanumeric)).map(str::to_owned).collect();
        if atoms.is_empty() {
            return None;
        }
        let terms: Vec<_> = atoms.windows(2).map(|pair| pair.concat()).collect();
        let span = u32::try_from(atoms.len()).unwrap_or(u32::MAX);
        Some(Piece { pairs: (!terms.is_empty()).then_some(Pairs { terms, span }), atoms, literal: true, whole: None })
    }
}
