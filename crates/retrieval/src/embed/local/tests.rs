//! The graph against plain arithmetic, on a tiny network with made-up weights.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]

use super::*;

const DIMS: usize = 24;
const WIDE: usize = 40;
const LAYERS: usize = 2;
const WORDS: [&str; 12] =
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "wing", "flow", "of", "a", "house", "##s", "the", "river"];
const POSITIONS: usize = 16;

/// Named matrices and vectors.
struct Made {
    parts: Vec<(String, Vec<usize>, Vec<f32>)>,
    state: u64,
}

impl Made {
    fn new() -> Self {
        let mut made = Self { parts: Vec::new(), state: 99 };
        made.part("embeddings.word_embeddings.weight", &[WORDS.len(), DIMS], 1.0);
        made.part("embeddings.position_embeddings.weight", &[POSITIONS, DIMS], 0.5);
        made.part("embeddings.token_type_embeddings.weight", &[2, DIMS], 0.5);
        made.norm("embeddings.LayerNorm");
        for layer in 0..LAYERS {
            for (name, outputs, inputs) in [
                ("attention.self.query", DIMS, DIMS),
                ("attention.self.key", DIMS, DIMS),
                ("attention.self.value", DIMS, DIMS),
                ("attention.output.dense", DIMS, DIMS),
                ("intermediate.dense", WIDE, DIMS),
                ("output.dense", DIMS, WIDE),
            ] {
                made.part(&format!("encoder.layer.{layer}.{name}.weight"), &[outputs, inputs], 0.4);
                made.part(&format!("encoder.layer.{layer}.{name}.bias"), &[outputs], 0.2);
            }
            made.norm(&format!("encoder.layer.{layer}.attention.output.LayerNorm"));
            made.norm(&format!("encoder.layer.{layer}.output.LayerNorm"));
        }
        made
    }

    fn part(&mut self, name: &str, shape: &[usize], size: f32) {
        let count = shape.iter().product();
        let values = (0..count)
            .map(|_| {
                self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (f32::from(u16::try_from(self.state >> 48).unwrap()) / 32_768.0 - 1.0) * size
            })
            .collect();
        self.parts.push((name.to_owned(), shape.to_vec(), values));
    }

    fn norm(&mut self, name: &str) {
        self.part(&format!("{name}.weight"), &[DIMS], 1.0);
        self.part(&format!("{name}.bias"), &[DIMS], 0.1);
    }

    fn file(&self) -> Vec<u8> {
        let (mut table, mut numbers) = (serde_json::Map::new(), Vec::new());
        for (name, shape, values) in &self.parts {
            let start = numbers.len();
            numbers.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            table.insert(
                name.clone(),
                serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [start, numbers.len()]}),
            );
        }
        let table = serde_json::to_vec(&table).unwrap();
        [&(table.len() as u64).to_le_bytes(), table.as_slice(), &numbers].concat()
    }

    fn get(&self, name: &str) -> &[f32] {
        &self.parts.iter().find(|(part, _, _)| part == name).unwrap().2
    }

    fn linear(&self, input: &[Vec<f32>], name: &str) -> Vec<Vec<f32>> {
        let (weight, bias) = (self.get(&format!("{name}.weight")), self.get(&format!("{name}.bias")));
        let row = |input: &Vec<f32>| {
            weight.chunks(input.len()).zip(bias).map(|(weight, bias)| product(input, weight) + bias).collect()
        };
        input.iter().map(row).collect()
    }

    fn normalized(&self, input: &[Vec<f32>], name: &str) -> Vec<Vec<f32>> {
        let (weight, bias) = (self.get(&format!("{name}.weight")), self.get(&format!("{name}.bias")));
        let row = |input: &Vec<f32>| {
            let mean = input.iter().sum::<f32>() / DIMS as f32;
            let deviation = (input.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / DIMS as f32).sqrt();
            input
                .iter()
                .zip(weight)
                .zip(bias)
                .map(|((value, weight), bias)| (value - mean) / deviation * weight + bias)
                .collect()
        };
        input.iter().map(row).collect()
    }

    /// The vector of a text by the definition of the network.
    fn embed(&self, ids: &[usize]) -> Vec<f32> {
        let row = |name: &str, at: usize| self.get(name)[at * DIMS..(at + 1) * DIMS].to_vec();
        let first: Vec<_> = ids
            .iter()
            .enumerate()
            .map(|(place, id)| {
                added(
                    &added(
                        &row("embeddings.word_embeddings.weight", *id),
                        &row("embeddings.position_embeddings.weight", place),
                    ),
                    &row("embeddings.token_type_embeddings.weight", 0),
                )
            })
            .collect();
        let mut hidden = self.normalized(&first, "embeddings.LayerNorm");
        for layer in 0..LAYERS {
            let name = |part: &str| format!("encoder.layer.{layer}.{part}");
            let [query, key, value] =
                ["query", "key", "value"].map(|part| self.linear(&hidden, &name(&format!("attention.self.{part}"))));
            let width = DIMS / 12;
            let mut mixed = vec![vec![0.0; DIMS]; ids.len()];
            for head in 0..12 {
                let part = head * width..(head + 1) * width;
                for (at, query) in query.iter().enumerate() {
                    let scores: Vec<f32> = key
                        .iter()
                        .map(|key| (product(&query[part.clone()], &key[part.clone()]) / (width as f32).sqrt()).exp())
                        .collect();
                    let sum: f32 = scores.iter().sum();
                    for (score, value) in scores.iter().zip(&value) {
                        for place in part.clone() {
                            mixed[at][place] += score / sum * value[place];
                        }
                    }
                }
            }
            let attended = self.linear(&mixed, &name("attention.output.dense"));
            let middle = self.normalized(&sum_of(&attended, &hidden), &name("attention.output.LayerNorm"));
            let wide: Vec<Vec<f32>> = self
                .linear(&middle, &name("intermediate.dense"))
                .iter()
                .map(|row| row.iter().map(|value| gelu(*value)).collect())
                .collect();
            hidden = self
                .normalized(&sum_of(&self.linear(&wide, &name("output.dense")), &middle), &name("output.LayerNorm"));
        }
        mean(&hidden.concat(), DIMS, ids.len())
    }
}

fn product(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn added(one: &[f32], other: &[f32]) -> Vec<f32> {
    one.iter().zip(other).map(|(one, other)| one + other).collect()
}

fn sum_of(one: &[Vec<f32>], other: &[Vec<f32>]) -> Vec<Vec<f32>> {
    one.iter().zip(other).map(|(one, other)| added(one, other)).collect()
}

/// With the error function by its series, which converges quickly for what occurs here.
fn gelu(value: f32) -> f32 {
    let x = f64::from(value) / std::f64::consts::SQRT_2;
    let (mut term, mut sum) = (x, x);
    for n in 1..60 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    let erf = 2.0 / std::f64::consts::PI.sqrt() * sum;
    (f64::from(value) * 0.5 * (1.0 + erf)) as f32
}

fn tokenizer() -> Tokenizer {
    let vocab: serde_json::Map<String, serde_json::Value> =
        WORDS.iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())).collect();
    let json = serde_json::json!({
        "version": "1.0", "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": [], "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocab},
    });
    serde_json::from_value(json).unwrap()
}

const TEXTS: [(&str, &[usize]); 4] = [
    ("Wing flow", &[2, 4, 5, 3]),
    ("the houses of a river", &[2, 10, 8, 9, 6, 7, 11, 3]),
    ("", &[2, 3]),
    ("unknown wing", &[2, 1, 4, 3]),
];

fn embedded(precision: Precision) -> Vec<Vec<f32>> {
    let embedder = LocalEmbedder::new("tiny", &Made::new().file(), tokenizer(), precision).unwrap();
    assert_eq!(embedder.tag(), &ModelTag { name: "tiny".to_owned(), dims: DIMS });
    embedder.embed(&TEXTS.map(|(text, _)| text), Role::Passage).unwrap()
}

#[test]
fn the_graph_computes_what_the_network_is_defined_to() {
    let made = Made::new();
    for (vector, (text, ids)) in embedded(Precision::Full).iter().zip(TEXTS) {
        let expected = made.embed(ids);
        assert!(
            vector.iter().zip(&expected).all(|(one, other)| (one - other).abs() < 1e-4),
            "{text}: {vector:?} {expected:?}"
        );
    }
}

#[test]
fn eight_bits_point_the_same_way() {
    for (small, full) in embedded(Precision::Eight).iter().zip(embedded(Precision::Full)) {
        assert!(product(small, &full) > 0.99, "{}", product(small, &full));
    }
}

#[test]
fn a_text_longer_than_the_network_is_cut() {
    let embedder = LocalEmbedder::new("tiny", &Made::new().file(), tokenizer(), Precision::Eight).unwrap();
    let long = "wing ".repeat(1_000);
    let vectors = embedder.embed(&[&long, "wing"], Role::Passage).unwrap();
    assert!(vectors.iter().all(|vector| (product(vector, vector) - 1.0).abs() < 1e-4));
}

#[test]
fn weights_of_another_network_are_refused() {
    let whole = Made::new();
    for missing in [
        "embeddings.word_embeddings.weight",
        "encoder.layer.0.output.dense.bias",
        "encoder.layer.1.attention.self.key.weight",
    ] {
        let mut made = Made::new();
        made.parts.retain(|(name, _, _)| name != missing);
        assert!(
            matches!(
                LocalEmbedder::new("tiny", &made.file(), tokenizer(), Precision::Eight),
                Err(EmbedError::Weights { .. })
            ),
            "{missing}"
        );
    }
    let file = whole.file();
    assert!(LocalEmbedder::new("tiny", &file[..file.len() - 1], tokenizer(), Precision::Eight).is_err());
}
