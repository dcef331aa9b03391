//! How well does the ranking find what people judged to be right? For folders in BEIR's shape (Thakur et al. 2021).
//!
//! The folder holds `corpus.jsonl` (`_id`, `title`, `text`), `queries.jsonl` (`_id`, `text`) and judgements, `qrels.tsv` or
//! `qrels/test.tsv` (query, document, score; with or without a line of headings). Documents go the way of real ones: they
//! are cut into windows, and a document ranks as its best window does.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::embed::{EmbedError, Embedder, Role};
use crate::index::{IndexError, IndexWriter, SearchError, Searcher};
use crate::key::ChunkKey;
use crate::windows::windows;

/// Documents that are looked at for each question.
const DEPTH: usize = 100;
/// Windows that are embedded at a time.
const BATCH: usize = 64;

/// The quality of a ranking, each a mean over the questions that have a document judged right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Questions.
    pub queries: usize,
    /// Documents.
    pub documents: usize,
    /// Normalized discounted cumulative gain of the first ten (Järvelin and Kekäläinen 2002, gain = the judgement).
    pub ndcg_10: f64,
    /// The part of the right documents that is among the first ten.
    pub recall_10: f64,
    /// The same for the first hundred.
    pub recall_100: f64,
}

/// Why there is no evaluation.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// A file is missing or can't be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A line is not what the shape says.
    #[error("{path}, line {line}: not {expected}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// No question has a right document.
    #[error("{path} judges no document of the corpus right for any question")]
    NoJudgements {
        /// The judgements.
        path: PathBuf,
    },
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A search failed.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The embedder failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

/// Evaluates the folder `dir`, with words alone or with an embedder too. `language` is that of the texts, as for
/// [`IndexWriter::add`]. The index lies in a temporary folder while it is needed.
pub fn evaluate(dir: &Path, language: Option<&str>, embedder: Option<&dyn Embedder>) -> Result<Evaluation, EvalError> {
    let documents: Vec<Document> = lines(&dir.join("corpus.jsonl"))?;
    let questions: Vec<Question> = lines(&dir.join("queries.jsonl"))?;
    let judgements = [dir.join("qrels.tsv"), dir.join("qrels").join("test.tsv")];
    let path = judgements.iter().find(|path| path.exists()).unwrap_or(&judgements[0]);
    let judgements = read_judgements(path)?;

    let home = tempfile::tempdir().map_err(|source| EvalError::Io { path: std::env::temp_dir(), source })?;
    let searcher = build(&home.path().join("index"), &documents, language, embedder)?;
    let mut sum = Evaluation { queries: 0, documents: documents.len(), ndcg_10: 0.0, recall_10: 0.0, recall_100: 0.0 };
    for question in &questions {
        let Some(judged) = judgements.get(&question.id).filter(|judged| judged.values().any(|score| *score > 0.0))
        else {
            continue;
        };
        let vector = embedder
            .map(|embedder| embedder.embed(&[&question.text], Role::Query))
            .transpose()?
            .and_then(|mut vectors| vectors.pop());
        let ranked = rank(&searcher, &question.text, vector.as_deref())?;
        let gains: Vec<f64> = ranked
            .iter()
            .map(|doc| {
                documents.get(*doc as usize).and_then(|document| judged.get(&document.id)).copied().unwrap_or(0.0)
            })
            .collect();
        sum.queries += 1;
        sum.ndcg_10 += ndcg(&gains, judged.values().copied(), 10);
        sum.recall_10 += recall(&gains, judged, 10);
        sum.recall_100 += recall(&gains, judged, 100);
    }
    if sum.queries == 0 {
        return Err(EvalError::NoJudgements { path: path.clone() });
    }
    #[allow(clippy::cast_precision_loss)]
    let count = sum.queries as f64;
    Ok(Evaluation {
        ndcg_10: sum.ndcg_10 / count,
        recall_10: sum.recall_10 / count,
        recall_100: sum.recall_100 / count,
        ..sum
    })
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "_id")]
    id: String,
    #[serde(default)]
    title: String,
    text: String,
}

#[derive(Deserialize)]
struct Question {
    #[serde(rename = "_id")]
    id: String,
    text: String,
}

/// For each question the documents that were judged, and how.
type Judgements = HashMap<String, BTreeMap<String, f64>>;

fn build(
    dir: &Path,
    documents: &[Document],
    language: Option<&str>,
    embedder: Option<&dyn Embedder>,
) -> Result<Searcher, EvalError> {
    let mut writer = IndexWriter::create(dir, None)?;
    if let Some(embedder) = embedder {
        writer.set_vectors(embedder.tag());
    }
    let mut waiting: Vec<(ChunkKey, String)> = Vec::new();
    let embed = |writer: &mut IndexWriter, waiting: &mut Vec<(ChunkKey, String)>| -> Result<(), EvalError> {
        let Some(embedder) = embedder else {
            waiting.clear();
            return Ok(());
        };
        let texts: Vec<&str> = waiting.iter().map(|(_, text)| text.as_str()).collect();
        for ((key, _), vector) in waiting.iter().zip(embedder.embed(&texts, Role::Passage)?) {
            writer.add_vector(*key, &vector);
        }
        waiting.clear();
        Ok(())
    };
    for (doc, document) in (0..).zip(documents) {
        let text = if document.title.is_empty() {
            document.text.clone()
        } else {
            format!("{}\n\n{}", document.title, document.text)
        };
        for window in windows(&text, &[]) {
            let key = ChunkKey { doc, index: window.index };
            writer.add(key, language, &text[window.bytes.clone()]);
            waiting.push((key, text[window.bytes].to_owned()));
            if waiting.len() >= BATCH {
                embed(&mut writer, &mut waiting)?;
            }
        }
    }
    embed(&mut writer, &mut waiting)?;
    writer.finish()?;
    Ok(Searcher::open(dir)?)
}

/// The best documents, each once.
fn rank(searcher: &Searcher, question: &str, vector: Option<&[f32]>) -> Result<Vec<u32>, EvalError> {
    // More windows than documents: several may be of one.
    let hits = searcher.search(question, vector, 2 * DEPTH, &|_| true)?;
    let mut ranked: Vec<u32> = Vec::with_capacity(DEPTH);
    for hit in hits {
        if !ranked.contains(&hit.key.doc) {
            ranked.push(hit.key.doc);
        }
    }
    ranked.truncate(DEPTH);
    Ok(ranked)
}

fn ndcg(gains: &[f64], judged: impl Iterator<Item = f64>, depth: usize) -> f64 {
    let discounted = |gains: &[f64]| {
        gains.iter().take(depth).zip(2_u32..).map(|(gain, rank)| gain / f64::from(rank).log2()).sum::<f64>()
    };
    let mut ideal: Vec<f64> = judged.filter(|gain| *gain > 0.0).collect();
    ideal.sort_by(|one, other| other.total_cmp(one));
    let ideal = discounted(&ideal);
    if ideal > 0.0 { discounted(&gains.iter().map(|gain| gain.max(0.0)).collect::<Vec<_>>()) / ideal } else { 0.0 }
}

#[allow(clippy::cast_precision_loss)]
fn recall(gains: &[f64], judged: &BTreeMap<String, f64>, depth: usize) -> f64 {
    let right = judged.values().filter(|score| **score > 0.0).count();
    let found = gains.iter().take(depth).filter(|gain| **gain > 0.0).count();
    found as f64 / right.max(1) as f64
}

fn lines<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>, EvalError> {
    let mut rows = Vec::new();
    for (at, line) in open(path)?.lines().enumerate() {
        let line = line.map_err(|source| EvalError::Io { path: path.to_owned(), source })?;
        if !line.trim().is_empty() {
            rows.push(serde_json::from_str(&line).map_err(|_| EvalError::Malformed {
                path: path.to_owned(),
                line: at + 1,
                expected: "JSON with _id and text",
            })?);
        }
    }
    Ok(rows)
}

fn read_judgements(path: &Path) -> Result<Judgements, EvalError> {
    let mut judgements = Judgements::new();
    for (at, line) in open(path)?.lines().enumerate() {
        let line = line.map_err(|source| EvalError::Io { path: path.to_owned(), source })?;
        let columns: Vec<&str> = line.trim_end_matches('\r').split('\t').collect();
        match (columns.as_slice(), columns.get(2).and_then(|score| score.trim().parse::<f64>().ok())) {
            ([query, document, _], Some(score)) if score.is_finite() => {
                judgements.entry((*query).to_owned()).or_default().insert((*document).to_owned(), score);
            }
            ([""], _) => {}
            ([_, _, _], None) if at == 0 => {} // headings
            _ => {
                return Err(EvalError::Malformed {
                    path: path.to_owned(),
                    line: at + 1,
                    expected: "query, document and score with tabs between",
                });
            }
        }
    }
    Ok(judgements)
}

fn open(path: &Path) -> Result<BufReader<File>, EvalError> {
    File::open(path).map(BufReader::new).map_err(|source| EvalError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measures_are_those_of_their_definitions() {
        let judged: BTreeMap<String, f64> =
            [("a", 3.0), ("b", 2.0), ("c", 0.0)].map(|(id, score)| (id.to_owned(), score)).into();
        let perfect = ndcg(&[3.0, 2.0], judged.values().copied(), 10);
        assert!((perfect - 1.0).abs() < 1e-12);
        let swapped = ndcg(&[2.0, 3.0], judged.values().copied(), 10);
        let expected = (2.0 + 3.0 / 3_f64.log2()) / (3.0 + 2.0 / 3_f64.log2());
        assert!((swapped - expected).abs() < 1e-12);
        assert!((recall(&[0.0, 2.0], &judged, 10) - 0.5).abs() < 1e-12);
        assert!((recall(&[0.0, 2.0], &judged, 1)).abs() < 1e-12);
    }
}
