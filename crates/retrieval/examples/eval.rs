//! `cargo run --release -p bastion-retrieval --example eval -- FOLDER [MODELS_DIR]`: quality on a folder in BEIR's shape.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::path::PathBuf;

use bastion_retrieval::embed::Embedder;
use bastion_retrieval::{eval, models};

fn main() {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = args.next().unwrap();
    let embedder = args.next().and_then(|dir| models::open_embedder(&dir).unwrap());
    let start = std::time::Instant::now();
    let found =
        eval::evaluate(&folder, Some("en"), embedder.as_ref().map(|embedder| embedder as &dyn Embedder)).unwrap();
    println!("{found:#?} in {:.1} s", start.elapsed().as_secs_f64());
}
