//! What each route does once it may: a question in, an answer out, and what of it the audit keeps.
//!
//! All of it may wait for the disk; whoever calls it says on which thread.

use std::sync::Arc;

use bastion_host::files::read_capped;
use bastion_retrieval::{Embedder, Role as TextRole};
use bastion_store::DocId;
use bastion_trust::Admitted;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::answer::{Answer, Denial};
use crate::audit::query_mark;
use crate::corpus::{Corpus, CorpusError, Generation};
use crate::http::{QueryError, pairs};
use crate::notice::Notices;
use crate::wire::v1::{
    CardKind, CatalogAnswer, DEFAULT_K, DEFAULT_LIMIT, Hit, MAX_K, MAX_LIMIT, MAX_RANGE_CHARS, Ranking,
    ReadRangeAnswer, ReadRangeRequest, SearchAnswer, SearchRequest, StatusAnswer,
};

/// `run.state.json` may be this many bytes long.
const MAX_STATE_BYTES: u64 = 4 << 20;
/// Below so many characters a text is read on the spot; a longer one is left to a thread that may wait.
const SHORT_TEXT: u64 = 128 << 10;

/// What an operation adds to the audit's line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) q: Option<String>,
    pub(crate) hits: Option<u64>,
    pub(crate) doc: Option<String>,
    pub(crate) chars: Option<u64>,
    pub(crate) limit: Option<u64>,
    pub(crate) total: Option<u64>,
}

/// What the operations work on.
pub(crate) struct Operations {
    pub(crate) corpus: Corpus,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) notices: Notices,
}

/// A body or query that was read, ready to be answered.
#[derive(Debug)]
pub(crate) enum Question {
    Search { query: String, k: u32 },
    ReadRange { doc: DocId, start: u64, end: u64 },
    Catalog { kind: CardKind, prefix: String, offset: u64, limit: u64 },
    Status,
}

impl Question {
    pub(crate) fn search(body: &[u8]) -> Result<Self, Denial> {
        let request: SearchRequest = json(body, "the body must be {\"query\": text, \"k\": number}")?;
        if request.query.trim().is_empty() {
            return Err(Denial::BadRequest("the query is empty"));
        }
        let k = match request.k {
            None => DEFAULT_K,
            Some(k) => held(&k).ok_or(Denial::BadRequest("k must be a whole number"))?,
        };
        let k = u32::try_from(k.clamp(1, MAX_K)).unwrap_or(1);
        Ok(Self::Search { query: request.query, k })
    }

    pub(crate) fn read_range(body: &[u8]) -> Result<Self, Denial> {
        let request: ReadRangeRequest = json(
            body,
            "the body must be {\"doc\": id, \"start\": number, \"end\": number}, with whole numbers from 0",
        )?;
        let doc =
            request.doc.parse().map_err(|_| Denial::BadRequest("doc must be 64 lower-case hexadecimal digits"))?;
        if request.end < request.start {
            return Err(Denial::BadRequest("end is less than start"));
        }
        Ok(Self::ReadRange { doc, start: request.start, end: request.end })
    }

    pub(crate) fn catalog(kind: CardKind, query: &str) -> Result<Self, Denial> {
        let (mut prefix, mut offset, mut limit) = (String::new(), 0, DEFAULT_LIMIT);
        for (name, value) in pairs(query)? {
            match name.as_str() {
                "prefix" => prefix = value,
                "offset" => offset = whole(&value)?,
                "limit" => limit = whole(&value)?,
                _ => return Err(Denial::BadRequest("the query takes prefix, offset and limit")),
            }
        }
        if limit == 0 {
            return Err(Denial::BadRequest("limit must be at least 1"));
        }
        Ok(Self::Catalog { kind, prefix, offset, limit: limit.min(MAX_LIMIT) })
    }

    pub(crate) fn status(query: &str) -> Result<Self, Denial> {
        if query.is_empty() { Ok(Self::Status) } else { Err(Denial::BadRequest("this route takes no query")) }
    }

    /// What the audit keeps of it, whatever comes of it.
    pub(crate) fn facts(&self) -> Facts {
        match self {
            Self::Search { query, .. } => Facts { q: Some(query_mark(query)), ..Facts::default() },
            Self::ReadRange { doc, .. } => {
                Facts { doc: Some(doc.to_string().chars().take(16).collect()), ..Facts::default() }
            }
            Self::Catalog { limit, .. } => Facts { limit: Some(*limit), ..Facts::default() },
            Self::Status => Facts::default(),
        }
    }
}

impl Operations {
    /// Answers where that takes microseconds; else gives the question back, for a thread that may wait.
    pub(crate) fn answer_at_once(
        &self,
        question: &Question,
        admitted: &Admitted,
        facts: &mut Facts,
    ) -> Option<Result<Answer, Denial>> {
        let Question::ReadRange { doc, start, end } = question else { return None };
        let answer = self.corpus.read(|generation| {
            let Some(generation) = generation else { return Ok(Some(None)) };
            let Some(row) = generation.doc(doc, admitted)? else { return Ok(Some(None)) };
            if row.chars > SHORT_TEXT {
                return Ok(None);
            }
            range(generation, &row, *start, *end).map(Some)
        });
        match answer {
            Ok(None) => None,
            Ok(Some(range)) => Some(read_range_answer(range, facts)),
            Err(error) => Some(Err(self.internal(&error))),
        }
    }

    /// Answers, however long it takes.
    pub(crate) fn answer(
        &self,
        question: &Question,
        admitted: &Admitted,
        is_owner: bool,
        facts: &mut Facts,
    ) -> Result<Answer, Denial> {
        match question {
            Question::Search { query, k } => self.search(query, *k, admitted, is_owner, facts),
            Question::ReadRange { doc, start, end } => {
                let range = self.corpus.read(|generation| {
                    let Some(generation) = generation else { return Ok(None) };
                    let Some(row) = generation.doc(doc, admitted)? else { return Ok(None) };
                    range(generation, &row, *start, *end)
                });
                read_range_answer(range.map_err(|error| self.internal(&error))?, facts)
            }
            Question::Catalog { kind, prefix, offset, limit } => {
                self.catalog(*kind, prefix, *offset, *limit, admitted, facts)
            }
            Question::Status => self.status(),
        }
    }

    fn search(
        &self,
        query: &str,
        k: u32,
        admitted: &Admitted,
        is_owner: bool,
        facts: &mut Facts,
    ) -> Result<Answer, Denial> {
        // the model is asked once, outside what may run twice; a generation that comes between is compared again there
        let model = self.corpus.read(|generation| match generation {
            Some(generation) => Ok(generation.model()?.cloned()),
            None => Ok(None),
        });
        let model = model.map_err(|error| self.internal(&error))?;
        let embedder = self.embedder.as_ref().filter(|embedder| model.as_ref() == Some(embedder.tag()));
        let vector = match embedder {
            Some(embedder) => {
                let vectors = embedder.embed(&[query], TextRole::Query).map_err(|error| {
                    self.notices.caused(&format!("search: {error}"));
                    Denial::Model
                })?;
                Some(vectors.into_iter().next().ok_or(Denial::Model)?)
            }
            None => None,
        };
        let answer = self.corpus.read(|generation| {
            let Some(generation) = generation else { return Ok((Vec::new(), Ranking::Words)) };
            let vector = vector.as_deref().filter(|_| generation.model().is_ok_and(|now| now == model.as_ref()));
            let ranking = if vector.is_some() { Ranking::WordsAndVectors } else { Ranking::Words };
            let found = generation.search(query, vector, k as usize, admitted)?;
            let mut hits = Vec::with_capacity(found.len());
            for hit in found {
                hits.extend(window(generation, hit, admitted, is_owner)?);
            }
            Ok((hits, ranking))
        });
        let (hits, ranking) = answer.map_err(|error| self.internal(&error))?;
        facts.hits = Some(hits.len() as u64);
        Answer::ok(&SearchAnswer { hits, k, ranking })
    }

    fn catalog(
        &self,
        kind: CardKind,
        prefix: &str,
        offset: u64,
        limit: u64,
        admitted: &Admitted,
        facts: &mut Facts,
    ) -> Result<Answer, Denial> {
        let page = self.corpus.read(|generation| {
            let Some(generation) = generation else { return Ok(None) };
            let served = generation.served();
            Ok(Some(match kind {
                CardKind::Files => {
                    let allowed = generation.allowed(admitted)?;
                    served.file_cards(prefix, offset, limit, &allowed)?
                }
                CardKind::Dirs => served.dir_cards(prefix, offset, limit)?,
            }))
        });
        let page = page.map_err(|error| self.internal(&error))?.ok_or(Denial::NoCatalog)?;
        facts.total = Some(page.total);
        let cards: Vec<Box<RawValue>> =
            page.cards.into_iter().map(RawValue::from_string).collect::<Result<_, _>>().map_err(|error| {
                self.notices.caused(&format!("catalog: a card is no JSON: {error}"));
                Denial::Internal
            })?;
        let next = offset.saturating_add(cards.len() as u64);
        let next_offset = (next < page.total && !cards.is_empty()).then_some(next);
        Answer::ok(&CatalogAnswer {
            cards,
            kind,
            total: page.total,
            offset,
            limit,
            next_offset,
            prefix: prefix.to_owned(),
        })
    }

    fn status(&self) -> Result<Answer, Denial> {
        let path = self.corpus.layout().out().join("run.state.json");
        let state: Option<Box<RawValue>> = match read_capped(&path, MAX_STATE_BYTES) {
            Ok(bytes) => Some(serde_json::from_slice(&bytes).map_err(|error| {
                self.notices.caused(&format!("{}: {error}", path.display()));
                Denial::Internal
            })?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => return Err(self.internal(&CorpusError::State { path, source })),
        };
        let model = self.corpus.read(|generation| match generation {
            Some(generation) => generation.model().map(|model| model.cloned()),
            None => Ok(None),
        });
        let ranking = model.ok().map(|model| match (&model, &self.embedder) {
            (Some(model), Some(embedder)) if model == embedder.tag() => Ranking::WordsAndVectors,
            _ => Ranking::Words,
        });
        Answer::ok(&StatusAnswer { state, ranking })
    }

    /// Tells the owner; the peer learns only that it is our fault.
    fn internal(&self, error: &CorpusError) -> Denial {
        self.notices.caused(&error.to_string());
        Denial::Internal
    }
}

/// What `read_range` found: the document, and where the text lies in it.
struct Range {
    doc: DocId,
    start: u64,
    end: u64,
    text: String,
    total: u64,
}

fn range(
    generation: &Generation,
    row: &bastion_store::DocRow,
    start: u64,
    end: u64,
) -> Result<Option<Range>, CorpusError> {
    let Some(text) = generation.served().text(row)? else { return Ok(None) };
    let total = text.chars();
    let held = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(total);
    let start = held(start);
    let most = usize::try_from(MAX_RANGE_CHARS).unwrap_or(usize::MAX);
    let end = held(end).min(start.saturating_add(most));
    let slice = text.slice(start..end).to_owned();
    Ok(Some(Range { doc: row.known.doc, start: start as u64, end: end as u64, text: slice, total: total as u64 }))
}

fn read_range_answer(range: Option<Range>, facts: &mut Facts) -> Result<Answer, Denial> {
    let Range { doc, start, end, text, total } = range.ok_or(Denial::NoDocument)?;
    facts.chars = Some(end - start);
    Answer::ok(&ReadRangeAnswer { doc: doc.to_string(), start, end, text, total })
}

/// The window that a hit names. `None`: the rows don't know it, so it is not shown.
fn window(
    generation: &Generation,
    hit: bastion_retrieval::Hit,
    admitted: &Admitted,
    is_owner: bool,
) -> Result<Option<Hit>, CorpusError> {
    let served = generation.served();
    let Some(row) = served.doc_by_ord(hit.key.doc)? else { return Ok(None) };
    let Some(chunk) = served.chunk(row.ord, hit.key.index)? else { return Ok(None) };
    let Some(text) = served.text(&row)? else { return Ok(None) };
    let place = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
    let doc = row.known.doc;
    let path = if is_owner {
        let scope = admitted.scope();
        let mut paths = served.paths_of(&doc)?.into_iter();
        paths
            .find(|(root, path, shown)| shown.is_some() && scope.contains(root, path, false))
            .and_then(|(_, _, shown)| shown)
    } else {
        None
    };
    Ok(Some(Hit {
        score: hit.score,
        doc: doc.to_string(),
        chunk: format!("{doc}:{}", chunk.index),
        index: chunk.index,
        start: chunk.start,
        end: chunk.end,
        text: text.slice(place(chunk.start)..place(chunk.end)).to_owned(),
        path,
    }))
}

fn json<T: DeserializeOwned>(body: &[u8], expected: &'static str) -> Result<T, Denial> {
    serde_json::from_slice(body).map_err(|_| Denial::BadRequest(expected))
}

/// A whole number of any size, held to what an `i64` can say. `None`: it has a fraction.
fn held(number: &serde_json::Number) -> Option<i64> {
    number.as_i64().or_else(|| number.as_u64().map(|_| i64::MAX))
}

/// Digits alone; more than a `u64` can say is the most it can.
fn whole(text: &str) -> Result<u64, Denial> {
    if text.is_empty() || text.len() > 40 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Denial::BadRequest("offset and limit must be whole numbers from 0"));
    }
    Ok(text.parse().unwrap_or(u64::MAX))
}

impl From<QueryError> for Denial {
    fn from(_: QueryError) -> Self {
        Self::BadRequest("the query must be percent-encoded name=value pairs, each name once")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn k_of(body: &str) -> Result<u32, u16> {
        match Question::search(body.as_bytes()) {
            Ok(Question::Search { k, .. }) => Ok(k),
            Ok(_) => unreachable!(),
            Err(denial) => Err(denial.status()),
        }
    }

    #[test]
    fn k_is_five_and_held_from_1_to_50() {
        for (k, held) in
            [("", 5), (r#","k":null"#, 5), (r#","k":7"#, 7), (r#","k":0"#, 1), (r#","k":-3"#, 1), (r#","k":51"#, 50)]
        {
            assert_eq!(k_of(&format!(r#"{{"query":"a"{k}}}"#)), Ok(held), "{k}");
        }
        assert_eq!(k_of(r#"{"query":"a","k":18446744073709551615}"#), Ok(50));
        for wrong in [
            "",
            "{}",
            "[]",
            "null",
            r#"{"query":1}"#,
            r#"{"query":""}"#,
            r#"{"query":" \n"}"#,
            r#"{"query":"a","k":"5"}"#,
            r#"{"query":"a","k":1.5}"#,
            r#"{"query":"a","q":1}"#,
            r#"{"query":"a","query":"b"}"#,
            r#"{"query":"a"} {}"#,
            "{\"query\":\"\u{0}\"}",
        ] {
            assert_eq!(k_of(wrong), Err(400), "{wrong}");
        }
        assert_eq!(Question::search(b"{\"query\":\"\xff\"}").unwrap_err().status(), 400);
    }

    #[test]
    fn a_range_is_read_strictly() {
        let id = "ab".repeat(32);
        let read = |text: String| Question::read_range(text.as_bytes()).map(|_| ()).map_err(Denial::status);
        assert_eq!(read(format!(r#"{{"doc":"{id}","end":5}}"#)), Ok(()));
        assert_eq!(read(format!(r#"{{"doc":"{id}","start":5,"end":5}}"#)), Ok(()));
        for wrong in [
            format!(r#"{{"doc":"{id}"}}"#),
            format!(r#"{{"doc":"{id}","start":6,"end":5}}"#),
            format!(r#"{{"doc":"{id}","start":-1,"end":5}}"#),
            format!(r#"{{"doc":"{id}","end":1.5}}"#),
            format!(r#"{{"doc":"{}","end":5}}"#, id.to_uppercase()),
            format!(r#"{{"doc":"{}","end":5}}"#, &id[1..]),
            r#"{"doc":"../../extract/x","end":5}"#.to_owned(),
            format!(r#"{{"doc":"{id}","doc":"{id}","end":5}}"#),
        ] {
            assert_eq!(read(wrong.clone()), Err(400), "{wrong}");
        }
    }

    #[test]
    fn a_page_is_held_and_its_query_read_strictly() {
        let limit = |query: &str| match Question::catalog(CardKind::Files, query) {
            Ok(Question::Catalog { limit, .. }) => Ok(limit),
            Ok(_) => unreachable!(),
            Err(denial) => Err(denial.status()),
        };
        assert_eq!(limit(""), Ok(500));
        assert_eq!(limit("limit=3&prefix=a%2Fb&offset=9"), Ok(3));
        assert_eq!(limit("limit=99999999999999999999999"), Ok(2000));
        for wrong in
            ["limit=0", "limit=-1", "limit=x", "limit=", "offset=1.5", "page=2", "limit=1&limit=2", "prefix=%ff"]
        {
            assert_eq!(limit(wrong), Err(400), "{wrong}");
        }
        assert_eq!(Question::status("x=1").unwrap_err().status(), 400);
    }
}
