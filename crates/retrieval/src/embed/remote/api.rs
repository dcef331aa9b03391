//! The three shapes of requests and answers.
//!
//! Sources: OpenAI API reference, "Create embeddings"; text-embeddings-inference, `POST /embed`; Ollama, `POST /api/embed`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The API of a model server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmbedApi {
    /// `POST /v1/embeddings`, spoken by most servers.
    #[default]
    OpenAi,
    /// `POST /embed` of text-embeddings-inference.
    Tei,
    /// `POST /api/embed`.
    Ollama,
}

/// `EMBED_API` is none of `openai`, `tei`, `ollama`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("EMBED_API {0:?} is none of openai, tei, ollama")]
pub struct UnknownApi(String);

impl FromStr for EmbedApi {
    type Err = UnknownApi;

    fn from_str(name: &str) -> Result<Self, UnknownApi> {
        match name.to_ascii_lowercase().as_str() {
            "" | "openai" => Ok(Self::OpenAi),
            "tei" => Ok(Self::Tei),
            "ollama" => Ok(Self::Ollama),
            _ => Err(UnknownApi(name.to_owned())),
        }
    }
}

#[derive(Serialize)]
struct NamedRequest<'a> {
    model: &'a str,
    input: &'a [&'a str],
}

#[derive(Serialize)]
struct TeiRequest<'a> {
    inputs: &'a [&'a str],
    truncate: bool,
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    /// Place of its text. Some servers leave it out.
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct OllamaAnswer {
    embeddings: Vec<Vec<f32>>,
}

impl EmbedApi {
    /// The path to post to, given the path of the address.
    pub(super) fn path(self, given: &str) -> String {
        let base = given.trim_end_matches('/');
        let (full, versioned) = match self {
            Self::OpenAi => ("/v1/embeddings", Some(("/v1", "/embeddings"))),
            Self::Tei => ("/embed", None),
            Self::Ollama => ("/api/embed", Some(("/api", "/embed"))),
        };
        if base.ends_with(full) || versioned.is_some_and(|(_, rest)| base.ends_with(rest)) {
            return base.to_owned();
        }
        match versioned {
            Some((version, rest)) if base.ends_with(version) => format!("{base}{rest}"),
            _ => format!("{base}{full}"),
        }
    }

    pub(super) fn request(self, model: &str, texts: &[&str]) -> Vec<u8> {
        let body = match self {
            Self::OpenAi | Self::Ollama => serde_json::to_vec(&NamedRequest { model, input: texts }),
            Self::Tei => serde_json::to_vec(&TeiRequest { inputs: texts, truncate: true }),
        };
        // Strings and a flag always serialize.
        body.unwrap_or_default()
    }

    /// The vectors of an answer in the order of their texts.
    pub(super) fn answer(self, body: &[u8]) -> Result<Vec<Vec<f32>>, &'static str> {
        const WRONG: &str = "not the JSON of its API";
        match self {
            Self::OpenAi => in_order(serde_json::from_slice::<OpenAiAnswer>(body).map_err(|_| WRONG)?.data),
            Self::Tei => serde_json::from_slice(body).map_err(|_| WRONG),
            Self::Ollama => {
                serde_json::from_slice::<OllamaAnswer>(body).map(|answer| answer.embeddings).map_err(|_| WRONG)
            }
        }
    }
}

fn in_order(data: Vec<OpenAiVector>) -> Result<Vec<Vec<f32>>, &'static str> {
    let mut placed: Vec<Option<Vec<f32>>> = (0..data.len()).map(|_| None).collect();
    for (at, one) in data.into_iter().enumerate() {
        match placed.get_mut(one.index.unwrap_or(at)) {
            Some(place @ None) => *place = Some(one.embedding),
            _ => return Err("two vectors for one text"),
        }
    }
    Ok(placed.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_put_in_the_order_of_their_texts() {
        let answer =
            br#"{"object":"list","data":[{"index":1,"embedding":[2]},{"index":0,"embedding":[1.5]}],"usage":{}}"#;
        assert_eq!(EmbedApi::OpenAi.answer(answer), Ok(vec![vec![1.5], vec![2.0]]));
        assert_eq!(
            EmbedApi::OpenAi.answer(br#"{"data":[{"embedding":[1]},{"embedding":[2]}]}"#),
            Ok(vec![vec![1.0], vec![2.0]])
        );
        assert!(
            EmbedApi::OpenAi.answer(br#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}"#).is_err()
        );
        assert!(EmbedApi::OpenAi.answer(br#"{"data":[{"index":7,"embedding":[1]}]}"#).is_err());
        assert_eq!(EmbedApi::Tei.answer(b"[[1,2],[3,4]]"), Ok(vec![vec![1.0, 2.0], vec![3.0, 4.0]]));
        assert_eq!(EmbedApi::Ollama.answer(br#"{"model":"m","embeddings":[[1]]}"#), Ok(vec![vec![1.0]]));
    }

    #[test]
    fn names_are_those_of_the_setting() {
        assert_eq!(
            ["", "OpenAI", "tei", "ollama"].map(str::parse),
            [Ok(EmbedApi::OpenAi), Ok(EmbedApi::OpenAi), Ok(EmbedApi::Tei), Ok(EmbedApi::Ollama)]
        );
        assert_eq!("x".parse::<EmbedApi>().unwrap_err().to_string(), "EMBED_API \"x\" is none of openai, tei, ollama");
    }
}
