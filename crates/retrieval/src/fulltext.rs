//! Which windows have the words of a question? Full text on tantivy's segment files, ranked by BM25.
//!
//! tantivy keeps and compresses the postings; which terms a text has ([`crate::analysis`]) and how windows are scored
//! ([`score`]) is ours. So any string is a question, the score of a window depends on the set of windows alone and not on
//! the segments they happen to lie in, and filters come before the cut to the best.
//!
//! Nothing of a removed document stays: a segment that had one is written anew before a generation is finished.

mod analyzer;
mod phrase;
mod query;
mod reader;
mod score;
mod writer;

use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};

pub(crate) use reader::OpenFailure;
pub(crate) use reader::TextReader;
pub(crate) use writer::{TextWriter, link};

/// Fields of the index. Nothing is stored: the texts are elsewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    /// The document, to remove it by.
    doc: Field,
    /// [`crate::ChunkKey::packed`].
    key: Field,
    /// The name of the language that the text was stemmed in, so that a question can be stemmed in all that occur.
    language: Field,
    /// Terms, with their positions.
    text: Field,
}

const KEY: &str = "key";

fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let doc = builder.add_u64_field("doc", INDEXED);
    let key = builder.add_u64_field(KEY, FAST);
    let language = builder.add_text_field("language", STRING);
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(analyzer::NAME)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let text = builder.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    (builder.build(), Fields { doc, key, language, text })
}
