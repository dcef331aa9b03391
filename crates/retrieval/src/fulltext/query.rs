//! What does a question ask for? Its words, each in every form it may be indexed as, and its quoted phrases.
//!
//! There is no query language: every string is a question, and what is in quotes is lifted, never required.

use std::collections::BTreeMap;

use crate::analysis::{self, Language, Piece};

/// More words of a question than this are passed over.
const MAX_WORDS: usize = 256;

/// A word asked for: the terms that stand for it, any of which will do.
pub(crate) type Forms = Vec<String>;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Query {
    /// Each distinct word and how often it is asked for, in an order that does not depend on the question's.
    pub(crate) words: Vec<(Forms, f32)>,
    /// Words that follow one another.
    pub(crate) phrases: Vec<Vec<Forms>>,
}

impl Query {
    /// Reads a question; `languages` are those that texts were stemmed in.
    pub(crate) fn of(question: &str, languages: &[Option<Language>]) -> Self {
        let mut counted: BTreeMap<Forms, f32> = BTreeMap::new();
        let pieces = analysis::pieces(question);
        for forms in pieces.iter().flat_map(|piece| words(piece, languages)).take(MAX_WORDS) {
            *counted.entry(forms).or_default() += 1.0;
        }
        let phrases =
            quoted(question).map(|phrase| sequence(phrase, languages)).filter(|words| words.len() > 1).collect();
        Self { words: counted.into_iter().collect(), phrases }
    }
}

/// What to look a piece up by: a run by its pairs, which say more than its characters.
fn words(piece: &Piece, languages: &[Option<Language>]) -> Vec<Forms> {
    if let Some(pairs) = &piece.pairs {
        return pairs.terms.iter().map(|pair| vec![pair.clone()]).collect();
    }
    let whole = piece.whole.iter().map(|whole| vec![whole.clone()]);
    whole
        .chain(piece.atoms.iter().map(|atom| atom_forms(piece, atom, languages)))
        .filter(|forms| !forms.is_empty())
        .collect()
}

fn atom_forms(piece: &Piece, atom: &str, languages: &[Option<Language>]) -> Forms {
    analysis::forms(atom, if piece.literal { &[None] } else { languages })
}

/// The atoms of a phrase, which stand at consecutive positions.
fn sequence(phrase: &str, languages: &[Option<Language>]) -> Vec<Forms> {
    let pieces = analysis::pieces(phrase);
    pieces
        .iter()
        .flat_map(|piece| piece.atoms.iter().map(|atom| atom_forms(piece, atom, languages)))
        .take(MAX_WORDS)
        .collect()
}

/// What stands between each two quotes; a quote without its second is no quote.
fn quoted(question: &str) -> impl Iterator<Item = &str> {
    let parts: Vec<&str> = question.split(['"', '“', '”', '„', '«', '»']).collect();
    let closed = parts.len().saturating_sub(1);
    parts.into_iter().take(closed).skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_make_phrases_and_a_lone_quote_does_not() {
        let phrases = |question| quoted(question).collect::<Vec<_>>();
        assert_eq!(phrases(r#"a "b c" d "e f""#), ["b c", "e f"]);
        assert_eq!(phrases(r#"a "b c"#), Vec::<&str>::new());
        assert_eq!(phrases("„eins zwei“ x"), ["eins zwei"]);
        assert_eq!(phrases(r#"a "b c" and "d"#), ["b c"]);
    }

    #[test]
    fn a_word_has_a_form_for_every_language_of_the_index() {
        let languages = [Language::of("en"), Language::of("de"), None];
        let query = Query::of("houses", &languages);
        assert_eq!(query.words.len(), 1);
        assert!(query.words[0].0.contains(&"houses".to_owned()) && query.words[0].0.contains(&"hous".to_owned()));
    }

    #[test]
    fn any_string_is_a_question() {
        for question in ["", "\"", "AND OR NOT", "field:value", "(((", "a~5^2", "\\", "\u{0}", "[* TO *]", "+-&&||!"] {
            Query::of(question, &[None]);
        }
    }
}
