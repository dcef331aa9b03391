//! Reads `{id, text}` rows on standard input, prints `{id, spans: [{start, end, type, rule}]}` with offsets in characters.

use std::io::{self, BufRead, Write};

#[derive(serde::Deserialize)]
struct Row {
    id: String,
    text: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let row: Row = serde_json::from_str(&line?)?;
        let chars = |byte: usize| row.text[..byte].chars().count();
        let spans: Vec<_> = bastion_sanitize::scan(&row.text)
            .into_iter()
            .map(|span| serde_json::json!({"start": chars(span.start), "end": chars(span.end), "type": span.kind.as_str(), "rule": span.rule}))
            .collect();
        writeln!(out, "{}", serde_json::json!({"id": row.id, "spans": spans}))?;
    }
    Ok(())
}
