//! The pool with a real worker process, on small real files made here.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod archives;
mod charsets;
mod external;
mod formats;
mod hostile;
mod made;
mod mail;
mod pool;

use bastion_extract::{Document, ExternalReaders, FailReason, Job, Limits, Outcome, Pool, PoolConfig, SkipReason};

/// The sentence that every made file holds.
const PLANTED: &str = "The heron waits by the quiet harbour.";

fn config() -> PoolConfig {
    PoolConfig {
        worker: env!("CARGO_BIN_EXE_extract_worker").into(),
        worker_args: Vec::new(),
        workers: 1,
        uncaged: false,
        external: ExternalReaders::none(),
    }
}

/// A pool for one test.
fn pool() -> Pool {
    Pool::new(config()).expect("this machine can cage a worker")
}

fn extract_with(pool: &Pool, name: &str, bytes: &[u8], limits: Limits) -> Outcome {
    pool.extract(Job { name, bytes, limits }).expect("the machine is sound")
}

fn extract(name: &str, bytes: &[u8]) -> Outcome {
    extract_with(&pool(), name, bytes, Limits::default())
}

/// The document in a file that has to be readable.
fn document(name: &str, bytes: &[u8]) -> Document {
    match extract(name, bytes) {
        Outcome::Text(document) => document,
        other => panic!("{name}: {other:?}"),
    }
}

/// The document, with the planted sentence in it.
fn planted(name: &str, bytes: &[u8]) -> Document {
    let document = document(name, bytes);
    // Line breaks are the reader's own affair.
    let words: Vec<&str> = document.text.split_whitespace().collect();
    assert!(words.join(" ").contains(PLANTED), "{name}: {:?}", document.text);
    document
}

fn failure(outcome: &Outcome) -> Option<FailReason> {
    match outcome {
        Outcome::Failed { reason, .. } => Some(*reason),
        _ => None,
    }
}

fn skipped(outcome: &Outcome) -> Option<SkipReason> {
    match outcome {
        Outcome::Skipped { reason, .. } => Some(*reason),
        _ => None,
    }
}
