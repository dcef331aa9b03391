//! `speed FILE…`: megabytes per second of CPU time of `scan` on each file, over two seconds, and what it finds by rule.

use std::{collections::BTreeMap, time::Instant};

/// Seconds that this thread was on a CPU, where the kernel says; else seconds since `start`.
fn spent(start: Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ')
        .next()
        .and_then(|ns| ns.parse::<f64>().ok())
        .map_or_else(|| start.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    bastion_sanitize::scan("tel 1");
    for path in std::env::args().skip(1) {
        let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        // The kernel counts in ticks: only a second and more of it can be trusted.
        let before = spent(start);
        let (mut runs, mut took) = (0.0, 0.0);
        let mut spans = Vec::new();
        while took < 2.0 {
            spans = bastion_sanitize::scan(&text);
            runs += 1.0;
            took = spent(start) - before;
        }
        let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
        for span in &spans {
            *rules.entry(span.rule).or_default() += 1;
        }
        let megabytes = text.len() as f64 / 1e6;
        println!(
            "{path}: {megabytes:.2} MB, {:.0} MB/s, {} hits, {:.1} a MB, {rules:?}",
            megabytes * runs / took,
            spans.len(),
            spans.len() as f64 / megabytes
        );
    }
    Ok(())
}
