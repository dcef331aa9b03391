//! The model on this machine: all-MiniLM-L6-v2, in this process, with no network.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rten::{Model, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;
use tokenizers::{Tokenizer, TruncationParams};

use super::bert::{self, IDS, PLACES, Precision};
use super::{EmbedError, Embedder, Role};
use crate::key::ModelTag;

/// The model's name, as its authors gave it.
pub(crate) const NAME: &str = "all-MiniLM-L6-v2";
/// More tokens of a text are not looked at: the model was trained on no more.
const MAX_TOKENS: usize = 256;

/// The installed model, loaded. Opened by [`crate::models::open_embedder`].
///
/// A text's vector is the same whatever it is embedded together with.
pub struct LocalEmbedder {
    tag: ModelTag,
    tokenizer: Tokenizer,
    model: Model,
    ids: NodeId,
    places: NodeId,
    hidden: NodeId,
    /// One for each core, of one thread: as many texts at a time, which is faster than all cores on one text.
    cores: Vec<Arc<ThreadPool>>,
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
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            tag: ModelTag { name: name.to_owned(), dims: network.dims },
            tokenizer,
            ids: model.node_id(IDS)?,
            places: model.node_id(PLACES)?,
            hidden,
            model,
            cores: (0..cores).map(|_| Arc::new(ThreadPool::with_num_threads(1))).collect(),
        })
    }

    /// The mean of the vectors of a text's tokens.
    fn one(&self, text: &str, core: &Arc<ThreadPool>) -> Result<Vec<f32>, EmbedError> {
        let encoding = self.tokenizer.encode_fast(text, true).map_err(EmbedError::Tokenizer)?;
        let ids: Vec<i32> = encoding.get_ids().iter().map(|id| i32::try_from(*id).unwrap_or_default()).collect();
        let count = ids.len();
        let ids = NdTensor::from_data([1, count], ids);
        let places = NdTensor::from_data([count], (0..).take(count).collect::<Vec<i32>>());
        let inputs: Vec<(NodeId, ValueOrView<'_>)> = vec![(self.ids, ids.into()), (self.places, places.into())];
        let mut options = RunOptions::default();
        options.thread_pool = Some(Arc::clone(core));
        let [hidden] = self.model.run_n(inputs, [self.hidden], Some(options))?;
        let wrong = EmbedError::Weights { what: "its answer has another shape" };
        let Value::FloatTensor(hidden) = hidden else { return Err(wrong) };
        let hidden = hidden.to_contiguous();
        if hidden.data().len() != count * self.tag.dims {
            return Err(wrong);
        }
        Ok(mean(hidden.data(), self.tag.dims, count))
    }

    /// Takes texts from those that are left until there are none.
    fn work(
        &self,
        texts: &[&str],
        next: &AtomicUsize,
        core: &Arc<ThreadPool>,
    ) -> Result<Vec<(usize, Vec<f32>)>, EmbedError> {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(text) = texts.get(at) else { return Ok(done) };
            done.push((at, self.one(text, core)?));
        }
    }
}

impl Embedder for LocalEmbedder {
    fn tag(&self) -> &ModelTag {
        &self.tag
    }

    fn embed(&self, texts: &[&str], _role: Role) -> Result<Vec<Vec<f32>>, EmbedError> {
        let next = AtomicUsize::new(0);
        let cores = &self.cores[..self.cores.len().min(texts.len())];
        let parts: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = cores.iter().map(|core| scope.spawn(|| self.work(texts, &next, core))).collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut vectors = vec![Vec::new(); texts.len()];
        for part in parts {
            for (at, vector) in part? {
                vectors[at] = vector;
            }
        }
        Ok(vectors)
    }
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

#[cfg(test)]
mod tests;
