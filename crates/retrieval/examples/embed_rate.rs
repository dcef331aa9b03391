//! `cargo run --release -p bastion-retrieval --example embed_rate -- MODELS_DIR WHEEL`: windows of 256 tokens embedded a second.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::cast_precision_loss)]

use std::path::PathBuf;
use std::time::Instant;

use bastion_retrieval::embed::{Embedder, Role};
use bastion_retrieval::models::{self, Source, What};

fn main() {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    models::add(&args[0], What::Embed, Source::Path(&args[1]), &mut |step| println!("{step:?}")).unwrap();
    let start = Instant::now();
    let embedder = models::open_embedder(&args[0]).unwrap().unwrap();
    println!("loaded in {:.2} s", start.elapsed().as_secs_f64());
    // each is cut to the 256 tokens that a window has at the most
    let sentence = "An investigation of the aerodynamic heating of slender bodies in hypersonic flow was conducted. ";
    let texts: Vec<String> = (0..128).map(|n| format!("{n} {}", sentence.repeat(24))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for _ in 0..3 {
        let start = Instant::now();
        let vectors = embedder.embed(&texts, Role::Passage).unwrap();
        println!("{} windows, {:.1} a second", vectors.len(), vectors.len() as f64 / start.elapsed().as_secs_f64());
    }
}
