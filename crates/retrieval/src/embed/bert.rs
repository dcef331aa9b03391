//! The network of the local model: BERT (Devlin et al. 2019), built from a file of weights (safetensors).
//!
//! The packages that carry the model have its weights but no graph that runs well, so the graph is made here, when the
//! model is loaded: what lies on the disk is exactly the file whose checksum we know. Weights of the large products are
//! rounded to eight bits for each column and the other side as it comes (dynamic quantization), about twice as fast as
//! 32 bits. Measured on Cranfield: cosine to the exact model .99, ranking the same.

use super::EmbedError;
use super::onnx::{Attribute, Dim, Element, Graph};
use super::weights::Weights;

/// Sizes that the weights do not tell.
const HEADS: usize = 12;
const EPSILON: f32 = 1e-12;
/// Weights are rounded to ±this. On processors without VNNI two products of eight bits are summed in sixteen, which
/// overflow unless one side has but seven.
const LARGEST_WEIGHT: f32 = 63.0;
/// The operators' version: Gelu came with it.
const OPSET: u64 = 20;

/// How exact the large products are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    /// 32 bits: what the other is measured against.
    #[cfg_attr(not(test), allow(dead_code))]
    Full,
    Eight,
}

/// A graph and what its user must know.
pub(super) struct Network {
    pub(super) model: Vec<u8>,
    pub(super) dims: usize,
    /// The most tokens it can take.
    pub(super) positions: usize,
}

/// Names of the graph's ends.
pub(super) const IDS: &str = "ids";
pub(super) const PLACES: &str = "places";
pub(super) const MASK: &str = "mask";

/// Makes the graph from a safetensors file.
///
/// It takes `ids` and `places` (tokens and their positions, batch × tokens and tokens) and `mask` (batch × 1 × 1 ×
/// tokens; 0 for a token, very negative for padding) and gives batch × tokens × dims.
pub(super) fn network(weights: &[u8], precision: Precision) -> Result<Network, EmbedError> {
    let weights = Weights::read(weights)?;
    let ([words, dims], table) = weights.matrix("embeddings.word_embeddings.weight")?;
    let ([positions, _], mut places) = weights.matrix("embeddings.position_embeddings.weight")?;
    let (_, kinds) = weights.matrix("embeddings.token_type_embeddings.weight")?;
    let kind = kinds.get(..dims).ok_or(EmbedError::Weights { what: "no token type" })?;
    if dims == 0 || !dims.is_multiple_of(HEADS) {
        return Err(EmbedError::Weights { what: "its width is not that of twelve heads" });
    }
    // We have one kind of text: its vector goes with every position.
    for (at, value) in places.iter_mut().enumerate() {
        *value += kind[at % dims];
    }
    let mut builder = Builder { weights, graph: Graph::default(), dims, precision };
    let graph = &mut builder.graph;
    let (batch, tokens) = (|| Dim::Named("batch"), || Dim::Named("tokens"));
    graph.input(IDS, Element::Int64, &[batch(), tokens()]);
    graph.input(PLACES, Element::Int64, &[tokens()]);
    graph.input(MASK, Element::Float, &[batch(), Dim::Size(1), Dim::Size(1), tokens()]);
    graph.floats("table", &[words, dims], &table);
    graph.floats("positions", &[positions, dims], &places);
    graph.int64s("split_heads", &[0, 0, HEADS as i64, (dims / HEADS) as i64]);
    graph.int64s("join_heads", &[0, 0, dims as i64]);
    let word = graph.op("Gather", &["table", IDS], &[Attribute::Int("axis", 0)]);
    let place = graph.op("Gather", &["positions", PLACES], &[Attribute::Int("axis", 0)]);
    let sum = graph.op("Add", &[&word, &place], &[]);
    let mut hidden = builder.normalized(&sum, "embeddings.LayerNorm")?;
    let mut layer = 0;
    while builder.weights.has(&format!("encoder.layer.{layer}.output.dense.weight")) {
        hidden = builder.layer(&hidden, &format!("encoder.layer.{layer}"))?;
        layer += 1;
    }
    if layer == 0 {
        return Err(EmbedError::Weights { what: "no layers" });
    }
    builder.graph.output(&hidden, &[batch(), tokens(), Dim::Size(dims as i64)]);
    Ok(Network { model: builder.graph.into_model(OPSET), dims, positions })
}

struct Builder<'a> {
    weights: Weights<'a>,
    graph: Graph,
    dims: usize,
    precision: Precision,
}

impl Builder<'_> {
    fn layer(&mut self, hidden: &str, layer: &str) -> Result<String, EmbedError> {
        let attended = self.attention(hidden, layer)?;
        let attended = self.linear(&attended, &[(&format!("{layer}.attention.output.dense"), 1.0)])?;
        let sum = self.graph.op("Add", &[&attended, hidden], &[]);
        let middle = self.normalized(&sum, &format!("{layer}.attention.output.LayerNorm"))?;
        let wide = self.linear(&middle, &[(&format!("{layer}.intermediate.dense"), 1.0)])?;
        let wide = self.graph.op("Gelu", &[&wide], &[]);
        let narrow = self.linear(&wide, &[(&format!("{layer}.output.dense"), 1.0)])?;
        let sum = self.graph.op("Add", &[&narrow, &middle], &[]);
        self.normalized(&sum, &format!("{layer}.output.LayerNorm"))
    }

    fn attention(&mut self, hidden: &str, layer: &str) -> Result<String, EmbedError> {
        let part = |name| format!("{layer}.attention.self.{name}");
        // Queries are scaled by their weights, once, and not by an operator each time.
        #[allow(clippy::cast_precision_loss)]
        let scale = 1.0 / ((self.dims / HEADS) as f32).sqrt();
        let all = self.linear(hidden, &[(&part("query"), scale), (&part("key"), 1.0), (&part("value"), 1.0)])?;
        let graph = &mut self.graph;
        let parts: [String; 3] =
            graph.ops("Split", &[&all], &[Attribute::Int("axis", -1), Attribute::Int("num_outputs", 3)]);
        let [query, key, value] = parts.map(|part| graph.op("Reshape", &[&part, "split_heads"], &[]));
        let query = graph.op("Transpose", &[&query], &[Attribute::Ints("perm", &[0, 2, 1, 3])]);
        let key = graph.op("Transpose", &[&key], &[Attribute::Ints("perm", &[0, 2, 3, 1])]);
        let value = graph.op("Transpose", &[&value], &[Attribute::Ints("perm", &[0, 2, 1, 3])]);
        let scores = graph.op("MatMul", &[&query, &key], &[]);
        let scores = graph.op("Add", &[&scores, MASK], &[]);
        let weights = graph.op("Softmax", &[&scores], &[Attribute::Int("axis", -1)]);
        let mixed = graph.op("MatMul", &[&weights, &value], &[]);
        let mixed = graph.op("Transpose", &[&mixed], &[Attribute::Ints("perm", &[0, 2, 1, 3])]);
        Ok(graph.op("Reshape", &[&mixed, "join_heads"], &[]))
    }

    fn normalized(&mut self, input: &str, name: &str) -> Result<String, EmbedError> {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        for constant in [&weight, &bias] {
            let values = self.weights.vector(constant, self.dims)?;
            self.graph.floats(constant, &[self.dims], &values);
        }
        Ok(self.graph.op(
            "LayerNormalization",
            &[input, &weight, &bias],
            &[Attribute::Int("axis", -1), Attribute::Float("epsilon", EPSILON)],
        ))
    }

    /// `input` times the weights of the named parts side by side, each with its factor, plus their biases.
    fn linear(&mut self, input: &str, parts: &[(&str, f32)]) -> Result<String, EmbedError> {
        let name = parts.first().map_or("", |(name, _)| *name);
        let (mut columns, mut bias, mut rows) = (Vec::new(), Vec::new(), 0);
        for (part, factor) in parts {
            let ([outputs, inputs], weight) = self.weights.matrix(&format!("{part}.weight"))?;
            rows = inputs;
            columns.extend(weight.iter().map(|value| value * factor));
            bias.extend(self.weights.vector(&format!("{part}.bias"), outputs)?.iter().map(|value| value * factor));
        }
        if rows == 0 {
            return Err(EmbedError::Weights { what: "an empty matrix" });
        }
        let graph = &mut self.graph;
        let bias_name = format!("{name}.b");
        graph.floats(&bias_name, &[bias.len()], &bias);
        let weight_name = format!("{name}.w");
        let product = match self.precision {
            Precision::Full => {
                graph.floats(&weight_name, &[rows, bias.len()], &transposed(&columns, rows));
                graph.op("MatMul", &[input, &weight_name], &[])
            }
            Precision::Eight => {
                let (rounded, scales) = rounded(&columns, rows);
                graph.int8s(&weight_name, &[rows, bias.len()], &transposed(&rounded, rows));
                let scales_name = format!("{name}.s");
                graph.floats(&scales_name, &[scales.len()], &scales);
                let [small, scale, zero]: [String; 3] = graph.ops("DynamicQuantizeLinear", &[input], &[]);
                let product = graph.op("MatMulInteger", &[&small, &weight_name, &zero], &[]);
                let product = graph.op("Cast", &[&product], &[Attribute::Int("to", 1)]);
                let scale = graph.op("Mul", &[&scale, &scales_name], &[]);
                graph.op("Mul", &[&product, &scale], &[])
            }
        };
        Ok(graph.op("Add", &[&product, &bias_name], &[]))
    }
}

/// Each row (an output's weights) in whole numbers, and the factors that undo it.
fn rounded(weights: &[f32], row: usize) -> (Vec<i8>, Vec<f32>) {
    let (mut values, mut scales) = (Vec::with_capacity(weights.len()), Vec::with_capacity(weights.len() / row));
    for row in weights.chunks_exact(row) {
        let largest = row.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let scale = if largest == 0.0 { 1.0 } else { largest / LARGEST_WEIGHT };
        #[allow(clippy::cast_possible_truncation)] // held to ±63 by the scale
        values.extend(row.iter().map(|value| (value / scale).round() as i8));
        scales.push(scale);
    }
    (values, scales)
}

/// Rows to columns.
fn transposed<T: Copy + Default>(values: &[T], row: usize) -> Vec<T> {
    let columns = values.len() / row;
    let mut out = vec![T::default(); values.len()];
    for (at, values) in values.chunks_exact(row).enumerate() {
        for (to, value) in values.iter().enumerate() {
            out[to * columns + at] = *value;
        }
    }
    out
}
