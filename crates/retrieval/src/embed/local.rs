//! The model on this machine: all-MiniLM-L6-v2, in this process, with no network.

use std::path::Path;
use std::sync::Arc;

use rten::{Model, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;
use tokenizers::{Encoding, Tokenizer, TruncationParams};

use super::bert::{self, IDS, MASK, PLACES, Precision};
use super::{EmbedError, Embedder, Role};
use crate::key::ModelTag;

/// The model's name, as its authors gave it.
pub(crate) const NAME: &str = "all-MiniLM-L6-v2";
/// More tokens of a text are not looked at: the model was trained on no more.
const MAX_TOKENS: usize = 256;
/// Tokens that are computed together: more does not go faster and needs more memory.
const BATCH_TOKENS: usize = 1_024;
/// Added to what padding weighs in attention: nothing is left of it.
const MASKED: f32 = -1e9;

/// The installed model, loaded. Opened by [`crate::models::open_embedder`].
pub struct LocalEmbedder {
    tag: ModelTag,
    tokenizer: Tokenizer,
    model: Model,
    ids: NodeId,
    places: NodeId,
    mask: NodeId,
    hidden: NodeId,
    pool: Arc<ThreadPool>,
}

impl std::fmt::Debug for LocalEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalEmbedder").field("tag", &self.tag).finish_non_exhaustive()
    }
}

impl LocalEmbedder {
    /// Loads the model from its weights (safetensors) and its tokenizer's file.
    pub(crate) fn load(name: &str, weights: &[u8], tokenizer: &Path) -> Result<Self, EmbedError> {
        let tokenizer = Tokenizer::from_file(tokenizer).map_err(EmbedError::Tokenizer)?;
        Self::new(name, weights, tokenizer, Precision::Eight)
    }

    fn new(name: &str, weights: &[u8], mut tokenizer: Tokenizer, precision: Precision) -> Result<Self, EmbedError> {
        let network = bert::network(weights, precision)?;
        let max_length = MAX_TOKENS.min(network.positions);
        tokenizer
            .with_truncation(Some(TruncationParams { max_length, ..TruncationParams::default() }))
            .map_err(EmbedError::Tokenizer)?;
        tokenizer.with_padding(None);
        let model = Model::load(network.model)?;
        let hidden = *model.output_ids().first().ok_or(EmbedError::Weights { what: "its graph has no end" })?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            tag: ModelTag { name: name.to_owned(), dims: network.dims },
            tokenizer,
            ids: model.node_id(IDS)?,
            places: model.node_id(PLACES)?,
            mask: model.node_id(MASK)?,
            hidden,
            model,
            // The library's own pool counts cores without their threads, and on many virtual machines finds one.
            pool: Arc::new(ThreadPool::with_num_threads(threads)),
        })
    }

    /// The mean of the vectors of a text's tokens, for each text of a batch.
    fn run(&self, batch: &[&Encoding]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let longest = batch.iter().map(|text| text.len()).max().unwrap_or(0);
        let mut ids = NdTensor::<i32, 2>::zeros([batch.len(), longest]);
        let mut mask = NdTensor::<f32, 4>::full([batch.len(), 1, 1, longest], MASKED);
        for (row, text) in batch.iter().enumerate() {
            for (at, id) in text.get_ids().iter().enumerate() {
                ids[[row, at]] = i32::try_from(*id).unwrap_or_default();
                mask[[row, 0, 0, at]] = 0.0;
            }
        }
        let places: Vec<i32> = (0..).take(longest).collect();
        let places = NdTensor::from_data([longest], places);
        let inputs: Vec<(NodeId, ValueOrView<'_>)> =
            vec![(self.ids, ids.into()), (self.places, places.into()), (self.mask, mask.into())];
        let mut options = RunOptions::default();
        options.thread_pool = Some(Arc::clone(&self.pool));
        let [hidden] = self.model.run_n(inputs, [self.hidden], Some(options))?;
        let wrong = EmbedError::Weights { what: "its answer has another shape" };
        let Value::FloatTensor(hidden) = hidden else { return Err(wrong) };
        let hidden = hidden.to_contiguous();
        let values = hidden.data();
        let row = longest * self.tag.dims;
        if values.len() != batch.len() * row {
            return Err(wrong);
        }
        Ok(batch.iter().enumerate().map(|(at, text)| mean(&values[at * row..], self.tag.dims, text.len())).collect())
    }
}

impl Embedder for LocalEmbedder {
    fn tag(&self) -> &ModelTag {
        &self.tag
    }

    fn embed(&self, texts: &[&str], _role: Role) -> Result<Vec<Vec<f32>>, EmbedError> {
        let encoded = texts
            .iter()
            .map(|text| self.tokenizer.encode_fast(*text, true))
            .collect::<Result<Vec<_>, _>>()
            .map_err(EmbedError::Tokenizer)?;
        // Texts of one length together, so that little is computed for padding.
        let mut order: Vec<usize> = (0..encoded.len()).collect();
        order.sort_by_key(|at| encoded[*at].len());
        let mut vectors = vec![Vec::new(); texts.len()];
        let mut rest = order.as_slice();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(batch_size(rest, &encoded));
            let texts: Vec<&Encoding> = batch.iter().map(|at| &encoded[*at]).collect();
            for (at, vector) in batch.iter().zip(self.run(&texts)?) {
                vectors[*at] = vector;
            }
            rest = later;
        }
        Ok(vectors)
    }
}

/// How many of the texts that come next, in order of length, go together.
fn batch_size(next: &[usize], encoded: &[Encoding]) -> usize {
    let fits = |count: &usize| count * next.get(count - 1).map_or(0, |at| encoded[*at].len()) <= BATCH_TOKENS;
    (1..=next.len()).take_while(fits).last().unwrap_or(1)
}

/// The mean of the first `count` rows, one long.
fn mean(rows: &[f32], dims: usize, count: usize) -> Vec<f32> {
    let mut sum = vec![0.0_f32; dims];
    for row in rows.chunks_exact(dims).take(count) {
        for (sum, value) in sum.iter_mut().zip(row) {
            *sum += value;
        }
    }
    let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        sum.iter_mut().for_each(|value| *value /= length);
    }
    sum
}
