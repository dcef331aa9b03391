//! Reading a finished generation: the best windows for a question.

use std::path::Path;
use std::sync::Arc;

use tantivy::columnar::Column;
use tantivy::directory::MmapDirectory;
use tantivy::directory::error::OpenDirectoryError;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, Index, InvertedIndexReader, SegmentReader, TERMINATED, TantivyError, Term};

use super::query::{Forms, Query};
use super::score::{Collection, Scorer, inverse_frequency};
use super::{Fields, KEY, phrase, schema};
use crate::analysis::Language;
use crate::index::Best;
use crate::key::ChunkKey;

/// An open index of text. Cheap to share; it takes no lock and writes nothing.
pub(crate) struct TextReader {
    segments: Vec<Segment>,
    fields: Fields,
    collection: Collection,
    languages: Vec<Option<Language>>,
}

pub(super) struct Segment {
    pub(super) terms: Arc<InvertedIndexReader>,
    lengths: FieldNormReader,
    keys: Column<u64>,
    windows: u32,
}

/// What [`TextReader::open`] can fail with.
pub(crate) enum OpenFailure {
    Tantivy(TantivyError),
    /// A file whose checksum is not that of its content.
    Checksum(std::path::PathBuf),
    /// A segment that holds removed windows was never finished.
    Unfinished,
}

impl From<TantivyError> for OpenFailure {
    fn from(error: TantivyError) -> Self {
        Self::Tantivy(error)
    }
}

impl From<OpenDirectoryError> for OpenFailure {
    fn from(error: OpenDirectoryError) -> Self {
        Self::Tantivy(error.into())
    }
}

impl From<std::io::Error> for OpenFailure {
    fn from(error: std::io::Error) -> Self {
        Self::Tantivy(error.into())
    }
}

impl TextReader {
    /// Opens the finished index in `dir` and checks every file's checksum, so that reading can rely on them.
    pub(crate) fn open(dir: &Path) -> Result<Self, OpenFailure> {
        let (schema, fields) = schema();
        let index = Index::open(MmapDirectory::open(dir)?)?;
        if index.schema() != schema {
            return Err(OpenFailure::Unfinished);
        }
        if let Some(damaged) = index.validate_checksum()?.into_iter().min() {
            return Err(OpenFailure::Checksum(damaged));
        }
        let (mut segments, mut languages) = (Vec::new(), Vec::new());
        for segment in index.searchable_segments()? {
            let reader = SegmentReader::open(&segment)?;
            if reader.has_deletes() {
                return Err(OpenFailure::Unfinished);
            }
            let inverted = reader.inverted_index(fields.language)?;
            let mut names = inverted.terms().stream()?;
            while let Some((name, _)) = names.next() {
                let language = std::str::from_utf8(name).ok().and_then(Language::named);
                if !languages.contains(&language) {
                    languages.push(language);
                }
            }
            segments.push(Segment {
                terms: reader.inverted_index(fields.text)?,
                lengths: reader.get_fieldnorms_reader(fields.text)?,
                keys: reader.fast_fields().u64(KEY)?,
                windows: reader.max_doc(),
            });
        }
        languages.sort_by_key(|language| language.map(Language::name));
        Ok(Self { collection: collection(&segments), segments, fields, languages })
    }

    /// Windows in the index.
    pub(crate) fn len(&self) -> u64 {
        self.collection.windows
    }

    /// Offers every window that has a word of the question to `best`.
    pub(crate) fn search(&self, question: &str, best: &mut Best<'_>) -> tantivy::Result<()> {
        let query = Query::of(question, &self.languages);
        let words =
            query.words.iter().map(|(forms, times)| self.scorer(forms, *times)).collect::<tantivy::Result<Vec<_>>>()?;
        let phrases =
            query.phrases.iter().map(|phrase| self.phrase_scorer(phrase)).collect::<tantivy::Result<Vec<_>>>()?;
        for segment in &self.segments {
            let mut scores = Scores::new(segment.windows);
            for ((forms, _), scorer) in query.words.iter().zip(&words) {
                if let Some(scorer) = scorer {
                    self.add_word(segment, forms, scorer, &mut scores)?;
                }
            }
            for (phrase, scorer) in query.phrases.iter().zip(&phrases) {
                for (window, count) in phrase::occurrences(segment, self.fields.text, phrase)? {
                    scores.add(window, scorer.score(count, segment.lengths.fieldnorm_id(window)));
                }
            }
            for window in scores.touched {
                let score = scores.by_window[window as usize];
                if best.would_take(score) {
                    best.offer(segment.key(window), score);
                }
            }
        }
        Ok(())
    }

    /// None where no window has the word.
    fn scorer(&self, forms: &Forms, times: f32) -> tantivy::Result<Option<Scorer>> {
        let with = self.windows_with(forms)?;
        let scorer = || {
            Scorer::new(
                self.collection,
                inverse_frequency(self.collection, with),
                times,
                FieldNormReader::id_to_fieldnorm,
            )
        };
        Ok((with > 0).then(scorer))
    }

    /// A phrase counts as rare as all its words together.
    fn phrase_scorer(&self, phrase: &[Forms]) -> tantivy::Result<Scorer> {
        let mut inverse = 0.0;
        for forms in phrase {
            inverse += inverse_frequency(self.collection, self.windows_with(forms)?);
        }
        Ok(Scorer::new(self.collection, inverse, 1.0, FieldNormReader::id_to_fieldnorm))
    }

    /// In how many windows the word occurs, by its most frequent form.
    fn windows_with(&self, forms: &Forms) -> tantivy::Result<u64> {
        let mut most = 0;
        for form in forms {
            let term = Term::from_field_text(self.fields.text, form);
            let mut with = 0;
            for segment in &self.segments {
                with += u64::from(segment.terms.doc_freq(&term)?);
            }
            most = most.max(with);
        }
        Ok(most)
    }

    fn add_word(&self, segment: &Segment, forms: &Forms, scorer: &Scorer, scores: &mut Scores) -> tantivy::Result<()> {
        let mut postings = Vec::new();
        for form in forms {
            postings.extend(segment.postings(self.fields, form, IndexRecordOption::WithFreqs)?);
        }
        // The forms of a word in one window are one word: the most frequent form counts.
        while let Some(window) = postings.iter().map(DocSet::doc).min().filter(|window| *window != TERMINATED) {
            let mut count = 0;
            for one in postings.iter_mut().filter(|one| one.doc() == window) {
                count = count.max(one.term_freq());
                one.advance();
            }
            scores.add(window, scorer.score(count, segment.lengths.fieldnorm_id(window)));
        }
        Ok(())
    }
}

impl Segment {
    fn postings(
        &self,
        fields: Fields,
        form: &str,
        option: IndexRecordOption,
    ) -> tantivy::Result<Option<SegmentPostings>> {
        Ok(self.terms.read_postings(&Term::from_field_text(fields.text, form), option)?)
    }

    fn key(&self, window: u32) -> ChunkKey {
        ChunkKey::unpacked(self.keys.first(window).unwrap_or_default())
    }
}

/// Lengths are summed as they are kept (rounded down to a code), so that the mean does not depend on the segments.
fn collection(segments: &[Segment]) -> Collection {
    let windows = segments.iter().map(|segment| u64::from(segment.windows)).sum();
    let length = |segment: &Segment| {
        (0..segment.windows).map(|window| u64::from(segment.lengths.fieldnorm(window))).sum::<u64>()
    };
    let total: u64 = segments.iter().map(length).sum();
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    let mean_length = (total as f64 / (windows as f64).max(1.0)) as f32;
    Collection { windows, mean_length }
}

/// Sums of one segment's windows.
struct Scores {
    by_window: Vec<f32>,
    touched: Vec<u32>,
}

impl Scores {
    fn new(windows: u32) -> Self {
        Self { by_window: vec![0.0; windows as usize], touched: Vec::new() }
    }

    fn add(&mut self, window: u32, score: f32) {
        let Some(sum) = self.by_window.get_mut(window as usize) else { return };
        if *sum == 0.0 {
            self.touched.push(window);
        }
        *sum += score;
    }
}
