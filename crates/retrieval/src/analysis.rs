//! Which terms does a text have? The same rules for what is indexed and what is asked, so that the two meet.
//!
//! Words are those of UAX #29, in compatibility normal form (NFKC) and lower case, stemmed by the language of the text.
//! What a word boundary would lose is kept: `1.0.21` and `[EMAIL_abcdefghijkl]` are terms of their own. Scripts written
//! without spaces are cut into pairs of characters.
//!
//! Nothing here fails: any text has terms, perhaps none.

mod language;
mod script;
mod words;

pub(crate) use language::Language;
pub(crate) use words::{Piece, pieces};

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A term of a text and where it stands (in words from the text's start).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) text: String,
    pub(crate) position: u32,
}

/// The terms of a text in `language` (none: no stemming), in order of position.
pub(crate) fn terms(text: &str, language: Option<Language>) -> Vec<Term> {
    let mut found = Vec::with_capacity(text.len() / 6);
    let mut position = 0;
    for piece in pieces(text) {
        if let Some(whole) = piece.whole {
            found.push(Term { text: whole, position });
        }
        for atom in piece.atoms {
            let language = language.filter(|_| !piece.literal);
            for text in forms(&atom, &[language]) {
                found.push(Term { text, position });
            }
            position += 1;
        }
        if let Some(pairs) = piece.pairs {
            // A pair stands where its first character does.
            let first = position.saturating_sub(pairs.span);
            found.extend(pairs.terms.into_iter().zip(first..).map(|(text, position)| Term { text, position }));
        }
    }
    found.sort_by_key(|term| term.position);
    found
}

/// What the word may be indexed as in any of the languages: stemmed, with and without its accents.
pub(crate) fn forms(word: &str, languages: &[Option<Language>]) -> Vec<String> {
    let plain = (!word.is_ascii()).then(|| unaccented(word));
    let mut forms = Vec::with_capacity(2);
    let mut push = |form: String| {
        if !form.is_empty() && !forms.contains(&form) {
            forms.push(form);
        }
    };
    for language in languages {
        let stem = |word: &str| language.map_or_else(|| word.to_owned(), |language| language.stem(word));
        match &plain {
            None => push(stem(word)),
            Some(plain) => {
                push(unaccented(&stem(word)));
                push(unaccented(&stem(plain)));
            }
        }
    }
    forms
}

/// Without combining marks, in scripts where leaving them out is how people search (Latin, Greek, Cyrillic).
fn unaccented(word: &str) -> String {
    if word.is_ascii() || !word.chars().any(script::is_alphabetic_european) {
        return word.to_owned();
    }
    word.nfd().filter(|char| !is_combining_mark(*char)).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, language: Option<&str>) -> Vec<String> {
        terms(text, language.and_then(Language::of)).into_iter().map(|term| term.text).collect()
    }

    #[test]
    fn versions_and_tokens_are_terms_of_their_own() {
        assert_eq!(texts("release 1.0.21", None), ["release", "1.0.21", "1", "0", "21"]);
        assert_eq!(texts("to [EMAIL_abcdefghijkl].", Some("en")), ["to", "email_abcdefghijkl"]);
        assert_eq!(texts("[CREDIT_CARD_234567abcdef]", None), ["credit_card_234567abcdef"]);
        assert!(texts("snake_case_name", None).contains(&"snake".to_owned()));
        assert!(texts("v1.0.21", None).contains(&"1.0.21".to_owned()));
    }

    #[test]
    fn words_are_stemmed_in_their_own_language() {
        assert_eq!(texts("connections", Some("eng")), ["connect"]);
        assert_eq!(texts("Häuser", Some("deu")), texts("häuser", Some("de")));
        assert_eq!(texts("connections", Some("tlh")), ["connections"]);
        assert_eq!(texts("connections", None), ["connections"]);
    }

    #[test]
    fn accents_case_width_and_hidden_characters_make_no_difference() {
        for (one, other) in [
            ("café", "cafe"),
            ("ＡＢＣ", "abc"),
            ("soft\u{ad}ware", "software"),
            ("cafe\u{301}", "café"),
            ("don’t", "don't"),
        ] {
            let terms = texts(one, Some("fr"));
            assert!(texts(other, Some("fr")).iter().any(|term| terms.contains(term)), "{one} and {other}");
        }
    }

    #[test]
    fn scripts_without_spaces_are_cut_into_pairs() {
        assert_eq!(texts("東京都", None), ["東", "東京", "京", "京都", "都"]);
        assert_eq!(texts("猫", None), ["猫"]);
        assert_eq!(texts("abc東京", None), ["abc", "東", "東京", "京"]);
    }

    #[test]
    fn positions_follow_the_words() {
        let positions: Vec<_> =
            terms("a 1.2 b 東京 c", None).into_iter().map(|term| (term.text, term.position)).collect();
        let of = |text: &str| positions.iter().find(|(term, _)| term == text).map(|(_, position)| *position);
        assert_eq!(
            [of("a"), of("1.2"), of("1"), of("2"), of("b"), of("東"), of("東京"), of("京"), of("c")]
                .map(Option::unwrap),
            [0, 1, 1, 2, 3, 4, 4, 5, 6]
        );
    }
}
