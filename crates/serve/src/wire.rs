//! What goes over the wire, for the endpoint and its client: one version of the JSON, in one place.
//!
//! Adding a field is no new version (a reader passes over what it does not know); changing or taking one away is.

/// The interface that serve.md describes.
pub mod v1 {
    use serde::{Deserialize, Serialize};

    /// Where a search is posted.
    pub const SEARCH: &str = "/search";
    /// Where a range of a text is asked for.
    pub const READ_RANGE: &str = "/read_range";
    /// The file cards.
    pub const CATALOG: &str = "/catalog";
    /// The folder cards.
    pub const CATALOG_DIRS: &str = "/catalog/dirs";
    /// The state of the last sweep.
    pub const STATUS: &str = "/status";
    /// Whether the endpoint serves.
    pub const HEALTH: &str = "/health";

    /// Windows that a search gives where `k` is absent.
    pub const DEFAULT_K: i64 = 5;
    /// The most windows that a search gives.
    pub const MAX_K: i64 = 50;
    /// The most characters that one `read_range` gives.
    pub const MAX_RANGE_CHARS: u64 = 65_536;
    /// Cards on a page where `limit` is absent.
    pub const DEFAULT_LIMIT: u64 = 500;
    /// The most cards on a page.
    pub const MAX_LIMIT: u64 = 2_000;

    /// The body of `POST /search`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct SearchRequest {
        /// What to look for, in words.
        pub query: String,
        /// How many windows; held to 1–50.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub k: Option<serde_json::Number>,
    }

    /// How the hits were ranked.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Ranking {
        /// By words alone: there is no embedding model, or it is not that of the index.
        #[serde(rename = "bm25")]
        Words,
        /// By words and by meaning.
        #[serde(rename = "bm25+vectors")]
        WordsAndVectors,
    }

    impl Ranking {
        /// The word on the wire.
        pub const fn as_str(self) -> &'static str {
            match self {
                Self::Words => "bm25",
                Self::WordsAndVectors => "bm25+vectors",
            }
        }
    }

    /// The answer to a search.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct SearchAnswer {
        /// The windows, best first.
        pub hits: Vec<Hit>,
        /// How many were asked for, as it was held.
        pub k: u32,
        /// How they were ranked.
        pub ranking: Ranking,
    }

    /// One sanitized window.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Hit {
        /// Higher is better; to be compared within one answer only.
        pub score: f32,
        /// The document's id.
        pub doc: String,
        /// `<doc>:<index>`.
        pub chunk: String,
        /// The window's number within its document, from 0.
        pub index: u32,
        /// The window's first character in the sanitized text.
        pub start: u64,
        /// One past its last character.
        pub end: u64,
        /// The window's text.
        pub text: String,
        /// For the owner: a path of the document, sanitized as in its card.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub path: Option<String>,
    }

    /// The body of `POST /read_range`. Positions are characters (Unicode scalar values).
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ReadRangeRequest {
        /// The document's id.
        pub doc: String,
        /// First character.
        #[serde(default)]
        pub start: u64,
        /// One past the last character; past the text's end is its end.
        pub end: u64,
    }

    /// The answer to `read_range`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ReadRangeAnswer {
        /// The document's id.
        pub doc: String,
        /// First character of `text`.
        pub start: u64,
        /// One past the last character of `text`.
        pub end: u64,
        /// The sanitized text between them.
        pub text: String,
        /// Characters in the whole text.
        pub total: u64,
    }

    /// Which cards.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum CardKind {
        /// One for each file.
        Files,
        /// One for each folder.
        Dirs,
    }

    /// A page of the catalog.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct CatalogAnswer<Card> {
        /// The cards, in the order of their paths.
        pub cards: Vec<Card>,
        /// What they are of.
        pub kind: CardKind,
        /// How many there are in all.
        pub total: u64,
        /// How many came before these.
        pub offset: u64,
        /// How many the page may have.
        pub limit: u64,
        /// Where the next page begins; null on the last one.
        pub next_offset: Option<u64>,
        /// What their sanitized paths begin with.
        pub prefix: String,
    }

    /// The answer to `GET /status`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct StatusAnswer<State> {
        /// `run.state.json` as it is; null before the first sweep.
        pub state: State,
        /// How a search would be ranked now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ranking: Option<Ranking>,
    }

    /// The answer to `GET /health`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct HealthAnswer {
        /// The endpoint is there.
        pub ok: bool,
        /// The agent's id; null where its manifest can't be read.
        pub id: Option<String>,
        /// Whether the manifest verifies and the audit can be written.
        pub serving: bool,
    }

    /// Every answer that is no success.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ErrorAnswer {
        /// A short code.
        pub error: String,
        /// In words, as much as the peer may know.
        pub detail: String,
    }
}
