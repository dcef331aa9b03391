//! What goes in and what comes out: a job, its limits, and the four ways it can end.

use std::fmt;

/// One file to read.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The file's name without its folders: a hint where the content does not say what it is.
    pub name: &'a str,
    /// The whole file.
    pub bytes: &'a [u8],
    /// What it may cost.
    pub limits: Limits,
}

/// What reading one file may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Characters (Unicode scalar values) of text; a longer text is `too_large`.
    pub max_doc_chars: u64,
    /// Seconds of wall time, and of processor time.
    pub seconds: u32,
    /// How many archives deep files are read; 0 lists an archive's entries and opens none.
    pub archive_depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_doc_chars: 10_000_000, seconds: 30, archive_depth: 0 }
    }
}

/// The text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Media type of the file.
    pub mime: String,
    /// The reader that made the text.
    pub reader: String,
    /// UTF-8 with `\n` line ends. No control characters but `\n`, `\t`, and `\f` between pages.
    pub text: String,
    /// Pages (PDF), slides or sheets, where the format has them.
    pub pages: Option<u32>,
    /// The title the file itself gives, one line.
    pub title: Option<String>,
    /// ISO 639-1 code of the language, where that is sure.
    pub lang: Option<String>,
}

/// How reading a file ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It has text.
    Text(Document),
    /// It was read and has none.
    Empty {
        /// Media type of the file.
        mime: String,
        /// The reader that found nothing.
        reader: String,
    },
    /// It was not read, and that is right.
    Skipped {
        /// Media type where known.
        mime: Option<String>,
        /// Why.
        reason: SkipReason,
    },
    /// It could not be read.
    Failed {
        /// Media type where known.
        mime: Option<String>,
        /// Why.
        reason: FailReason,
        /// A few words for a log. Never text of the document.
        detail: String,
    },
}

/// Why a file was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// It asks for a password.
    Encrypted,
    /// No reader for this kind.
    Unsupported,
}

/// Why a file could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailReason {
    /// The reader or its worker died.
    Crashed,
    /// It took longer than [`Limits::seconds`].
    Timeout,
    /// More than [`Limits::max_doc_chars`] characters, or more than a format's own bound when unpacked.
    TooLarge,
    /// It wanted more memory than a worker has.
    Memory,
    /// It is not what it says it is, or a part of it is missing.
    Damaged,
}

impl SkipReason {
    /// The word used in every record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Encrypted => "encrypted",
            Self::Unsupported => "unsupported",
        }
    }
}

impl FailReason {
    /// The word used in every record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Crashed => "crashed",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::Memory => "memory",
            Self::Damaged => "damaged",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
