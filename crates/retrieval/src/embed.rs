//! Who makes vectors of texts: the model on this machine ([`LocalEmbedder`]) or a server ([`RemoteEmbedder`]).
//!
//! An embedder answers with one vector for each text, all of the size in its tag, or with an error: never with fewer,
//! with others' or with what is no number. Only text that may be shown is given to it.

mod bert;
mod local;
mod onnx;
mod remote;
mod weights;

pub use local::LocalEmbedder;
pub(crate) use local::NAME as LOCAL_NAME;
pub use remote::{EmbedApi, RemoteEmbedder, RemoteSettings, UnknownApi};

use crate::key::ModelTag;

/// What a text is for. Some models are told apart by it; those we know take no notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A question.
    Query,
    /// A text to be found.
    Passage,
}

/// Makes vectors of texts.
pub trait Embedder: Send + Sync {
    /// The model: to be kept with its vectors.
    fn tag(&self) -> &ModelTag;

    /// A vector for each of `texts`, in their order, each of [`ModelTag::dims`] finite numbers.
    ///
    /// # Errors
    /// See [`EmbedError`]. No vector is returned where one can't be made.
    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// A setting that can't be right.
    #[error("EMBED_URL {url}: {why}")]
    Url {
        /// The address as given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The server could not be reached or did not answer in time, though asked again.
    #[error("the embedding server at {host} can't be reached: {source}")]
    Unreachable {
        /// Its host.
        host: String,
        /// What happened last.
        source: Box<ureq::Error>,
    },
    /// The server refused: the request, the model's name or the key is wrong.
    #[error("the embedding server at {host} answers {status}{detail}; see EMBED_MODEL, EMBED_API and EMBED_API_KEY")]
    Refused {
        /// Its host.
        host: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of what it said, if it said something.
        detail: String,
    },
    /// The server's answer is not what its API promises.
    #[error("the embedding server at {host} answers nonsense: {what}; see EMBED_API")]
    Nonsense {
        /// Its host.
        host: String,
        /// What is wrong with the answer.
        what: &'static str,
    },
    /// The server's model makes vectors of another size than it did before.
    #[error("the model {model} at {host} makes vectors of {found} numbers, no longer of {expected}")]
    Dims {
        /// The server's host.
        host: String,
        /// The model's name.
        model: String,
        /// The size before.
        expected: usize,
        /// The size now.
        found: usize,
    },
    /// The installed model's tokenizer can't be read or fails on a text.
    #[error("the embedding model's tokenizer fails: {0}; `bastion models add embed` installs it anew")]
    Tokenizer(#[source] tokenizers::Error),
    /// The installed model's weights are not those of the model we know.
    #[error("the embedding model's weights can't be used ({what}); `bastion models add embed` installs them anew")]
    Weights {
        /// What is wrong with them.
        what: &'static str,
    },
    /// The installed model can't be loaded.
    #[error("the embedding model can't be loaded: {0}")]
    Load(#[from] rten::LoadError),
    /// The installed model fails on a text.
    #[error("the embedding model fails: {0}")]
    Run(#[from] rten::RunError),
}
