//! `cargo xtask bench`: each row is our time against a named peer's, on the same work in the same run.
//!
//! A peer that is not installed is said to be missing and its row is left out: a ratio is measured or it is not there.

mod endpoint;
mod files;
mod proxy;
mod sandbox;
mod tools;
mod words;

use std::path::PathBuf;

use anyhow::{Context, Result};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The rows to measure; all where none is named
    #[arg(value_enum)]
    rows: Vec<Row>,
    /// Files in the tree of the walk and the unchanged sweep
    #[arg(long, default_value_t = 100_000)]
    files: usize,
    /// A folder with PDFs, for `pdf`
    #[arg(long, value_name = "DIR")]
    pdfs: Option<PathBuf>,
    /// A text file of ordinary prose, for `rules`
    #[arg(long, value_name = "FILE")]
    prose: Option<PathBuf>,
    /// A text file full of values, for `rules`
    #[arg(long, value_name = "FILE")]
    dense: Option<PathBuf>,
    /// The Python package with the model (a wheel), for `embed`
    #[arg(long, value_name = "WHEEL")]
    wheel: Option<PathBuf>,
    /// A Python package with the same model in ONNX, for the peer in `embed`
    #[arg(long, value_name = "WHEEL")]
    onnx: Option<PathBuf>,
    /// Windows in the index of `search`
    #[arg(long, default_value_t = 1_000_000)]
    windows: usize,
    /// Seconds of load on each endpoint
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// MiB of each body that goes through the proxy
    #[arg(long, default_value_t = 1_024)]
    megabytes: u64,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Row {
    /// Walk of a tree, and a sweep with nothing changed, against `find` and `fd`
    Walk,
    /// PDF text against `pdftotext`, in CPU time
    Pdf,
    /// The rules pass, one core
    Rules,
    /// Embedding against Python's onnxruntime
    Embed,
    /// Search over many windows against an exact scan in numpy
    Search,
    /// The endpoint against nginx
    Endpoint,
    /// A sandbox's start against bare bubblewrap and srt
    Sandbox,
    /// What the egress proxy costs, against the same host without it
    Proxy,
}

const ALL: [Row; 8] =
    [Row::Walk, Row::Pdf, Row::Rules, Row::Embed, Row::Search, Row::Endpoint, Row::Sandbox, Row::Proxy];

/// Measures and prints.
pub(crate) fn bench(args: &Args) -> Result<()> {
    let rows = if args.rows.is_empty() { &ALL[..] } else { &args.rows };
    let program = tools::release("", "bastion")?;
    for row in rows {
        match row {
            Row::Walk => files::walk(&program, args.files)?,
            Row::Pdf => match &args.pdfs {
                Some(dir) => files::pdf(&program, dir)?,
                None => println!("pdf: left out, name a folder with --pdfs"),
            },
            Row::Rules => match (&args.prose, &args.dense) {
                (Some(prose), Some(dense)) => words::rules(prose, dense)?,
                _ => println!("rules: left out, name texts with --prose and --dense"),
            },
            Row::Embed => match &args.wheel {
                Some(wheel) => words::embed(wheel, args.onnx.as_deref())?,
                None => println!("embed: left out, name the model's package with --wheel"),
            },
            Row::Search => words::search(args.windows)?,
            Row::Sandbox => sandbox::start(&program, 41)?,
            Row::Proxy => proxy::proxy(args.megabytes)?,
            Row::Endpoint => endpoint::endpoint(&program, args.seconds).context("endpoint")?,
        }
    }
    Ok(())
}
