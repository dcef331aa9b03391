//! `cargo run --release -p bastion-retrieval --example scale -- DIR WINDOWS [DIMS]`: build and search times of a made-up index.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation
)]

use std::path::PathBuf;
use std::time::Instant;

use bastion_retrieval::{ChunkKey, IndexWriter, ModelTag, Searcher};

/// xorshift
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn vector(&mut self, dims: usize) -> Vec<f32> {
        (0..dims).map(|_| (self.next() % 2_001) as f32 / 1_000.0 - 1.0).collect()
    }

    /// About 1,000 characters of words whose frequencies fall as those of a language do.
    fn text(&mut self) -> String {
        (0..150).map(|_| format!("w{} ", (200_000_f64.powf(self.next() as f64 / u64::MAX as f64)) as u64)).collect()
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (home, count): (PathBuf, u32) = (args[0].clone().into(), args[1].parse().unwrap());
    let dims: usize = args.get(2).map_or(384, |dims| dims.parse().unwrap());
    let mut random = Random(42);
    let dir = home.join("one");
    let start = Instant::now();
    let mut writer = IndexWriter::create(&dir, None).unwrap();
    writer.set_vectors(&ModelTag { name: "made-up".to_owned(), dims });
    let mut making = 0.0;
    for window in 0..count {
        let key = ChunkKey { doc: window / 10, index: window % 10 };
        let made = Instant::now();
        let (text, vector) = (random.text(), random.vector(dims));
        making += made.elapsed().as_secs_f64();
        writer.add(key, Some("en"), &text);
        writer.add_vector(key, &vector);
    }
    let added = start.elapsed().as_secs_f64() - making;
    writer.finish().unwrap();
    println!(
        "{count} windows: added in {added:.1} s, finished in {:.1} s more",
        start.elapsed().as_secs_f64() - making - added
    );

    let start = Instant::now();
    let mut writer = IndexWriter::create(&home.join("two"), Some(&dir)).unwrap();
    writer.remove_doc(5);
    writer.add(ChunkKey { doc: 5, index: 0 }, Some("en"), "one changed document");
    writer.add_vector(ChunkKey { doc: 5, index: 0 }, &random.vector(dims));
    writer.finish().unwrap();
    println!("one document changed: {:.1} s", start.elapsed().as_secs_f64());

    let start = Instant::now();
    let searcher = Searcher::open(&dir).unwrap();
    println!("opened in {:.2} s", start.elapsed().as_secs_f64());
    let question = |random: &mut Random| {
        (0..8)
            .map(|_| format!("w{} ", (200_000_f64.powf(random.next() as f64 / u64::MAX as f64)) as u64))
            .collect::<String>()
    };
    let questions: Vec<(String, Vec<f32>)> = (0..200).map(|_| (question(&mut random), random.vector(dims))).collect();
    let few = |doc: u32| doc % 1_000 == 7;
    let times = |name: &str, ask: &dyn Fn(&str, &[f32])| {
        let mut times: Vec<f64> = questions
            .iter()
            .map(|(text, vector)| {
                let start = Instant::now();
                ask(text, vector);
                start.elapsed().as_secs_f64() * 1_000.0
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{name}: p50 {:.1} ms, p99 {:.1} ms", times[times.len() / 2], times[times.len() * 99 / 100]);
    };
    times("vectors alone", &|_, vector| drop(searcher.search("", Some(vector), 10, &|_| true).unwrap()));
    times("words alone", &|text, _| drop(searcher.search(text, None, 10, &|_| true).unwrap()));
    times("both", &|text, vector| drop(searcher.search(text, Some(vector), 10, &|_| true).unwrap()));
    times("both, one document in a thousand allowed", &|text, vector| {
        drop(searcher.search(text, Some(vector), 10, &few).unwrap());
    });
}
