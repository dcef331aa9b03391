//! `cargo run --release -p bastion-retrieval --example embed_rate -- MODELS_DIR WHEEL [TEXT_FILE]`: windows embedded a second.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::cast_precision_loss)]

use std::path::PathBuf;
use std::time::Instant;

use bastion_retrieval::embed::{Embedder, Role};
use bastion_retrieval::models::{self, Source, What};
use bastion_retrieval::windows;

fn main() {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    models::add(&args[0], What::Embed, Source::Path(&args[1]), &mut |step| println!("{step:?}")).unwrap();
    let start = Instant::now();
    let embedder = models::open_embedder(&args[0]).unwrap().unwrap();
    println!("loaded in {:.2} s", start.elapsed().as_secs_f64());
    let text = args.get(2).map_or_else(
        || {
            "An investigation of the aerodynamic heating of slender bodies in hypersonic flow was conducted. "
                .repeat(1_000)
        },
        |path| std::fs::read_to_string(path).unwrap(),
    );
    let windows = windows(&text, &[]);
    let texts: Vec<&str> = windows.iter().take(256).map(|window| &text[window.bytes.clone()]).collect();
    for _ in 0..3 {
        let start = Instant::now();
        let vectors = embedder.embed(&texts, Role::Passage).unwrap();
        println!(
            "{} windows, {:.1} a second; first {:?}",
            vectors.len(),
            vectors.len() as f64 / start.elapsed().as_secs_f64(),
            &vectors[0][..3]
        );
    }
}
