//! `speed FILE…`: megabytes per second of `scan` on each file, the best of several runs, and what it finds by rule.

use std::{collections::BTreeMap, time::Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        let mut best = f64::INFINITY;
        let mut spans = Vec::new();
        for _ in 0..5 {
            let start = Instant::now();
            spans = bastion_sanitize::scan(&text);
            best = best.min(start.elapsed().as_secs_f64());
        }
        let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
        for span in &spans {
            *rules.entry(span.rule).or_default() += 1;
        }
        let megabytes = text.len() as f64 / 1e6;
        println!("{path}: {megabytes:.2} MB, {:.0} MB/s, {} hits, {:.1} a MB, {rules:?}", megabytes / best, spans.len(), spans.len() as f64 / megabytes);
    }
    Ok(())
}
