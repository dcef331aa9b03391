//! Our terms for tantivy's indexing threads.
//!
//! tantivy has a tokenizer for each field, we have a language for each text: it goes before the text.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use crate::analysis::{self, Language, Term};

/// Under which the field names it.
pub(super) const NAME: &str = "bastion";
/// Between the language's name and the text.
const END_OF_NAME: char = '\u{0}';

/// What the field is given for a text.
pub(super) fn with_language(language: Option<Language>, text: &str) -> String {
    let name = language.map_or("", Language::name);
    let mut all = String::with_capacity(name.len() + 1 + text.len());
    all.push_str(name);
    all.push(END_OF_NAME);
    all.push_str(text);
    all
}

#[derive(Clone)]
pub(super) struct Analyzer;

impl Tokenizer for Analyzer {
    type TokenStream<'a> = Terms;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Terms {
        let (name, text) = text.split_once(END_OF_NAME).unwrap_or(("", text));
        Terms { terms: analysis::terms(text, Language::named(name)).into_iter(), token: Token::default() }
    }
}

pub(super) struct Terms {
    terms: std::vec::IntoIter<Term>,
    token: Token,
}

impl TokenStream for Terms {
    fn advance(&mut self) -> bool {
        let Some(term) = self.terms.next() else { return false };
        self.token.text = term.text;
        self.token.position = term.position as usize;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
