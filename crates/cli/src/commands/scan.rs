//! `bastion scan`: what the rules would hide.

use std::io::{BufRead, BufWriter, Read, Write, stdin, stdout};
use std::process::ExitCode;

use anyhow::{Context, Result};
use bastion_sanitize::Span;
use serde::{Deserialize, Serialize};

use crate::args;
use crate::terminal::{print_line, printable, styled};
use crate::words::Exit;

/// One row of `--jsonl` input.
#[derive(Deserialize)]
struct Row {
    id: serde_json::Value,
    text: String,
}

/// One row of output.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a serde_json::Value>,
    spans: Vec<Place>,
}

/// A value's place, in characters.
#[derive(Serialize)]
struct Place {
    start: usize,
    end: usize,
    #[serde(rename = "type")]
    kind: &'static str,
    rule: &'static str,
}

/// `bastion scan [FILE]`.
pub(crate) fn scan(args: &args::Scan) -> Result<ExitCode> {
    if args.jsonl {
        return rows(args);
    }
    let mut bytes = Vec::new();
    match &args.file {
        Some(path) => bytes = std::fs::read(path).with_context(|| format!("{}", path.display()))?,
        None => drop(stdin().lock().read_to_end(&mut bytes).context("standard input")?),
    }
    if bytes.contains(&0) {
        return Err(
            Exit::Usage("this is not text; `bastion up` reads such files and hides what is in them".into()).into()
        );
    }
    let text = String::from_utf8_lossy(&bytes);
    let spans = bastion_sanitize::scan(&text);
    if args.json {
        print_line(&serde_json::to_string(&Answer { id: None, spans: places(&text, &spans) })?);
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = Lines { text: &text, at: 0, line: 1, start: 0 };
    for span in &spans {
        let (line, column) = lines.place(span.start);
        let value = printable(&text[span.start..span.end]);
        print_line(&format!("{line}:{column}\t{}\t{value}\t({})", styled("33", span.kind.as_str()), span.rule));
    }
    eprintln!("{} found", spans.len());
    Ok(ExitCode::SUCCESS)
}

fn rows(args: &args::Scan) -> Result<ExitCode> {
    let input: Box<dyn BufRead> = match &args.file {
        Some(path) => {
            Box::new(std::io::BufReader::new(std::fs::File::open(path).with_context(|| format!("{}", path.display()))?))
        }
        None => Box::new(stdin().lock()),
    };
    let mut out = BufWriter::new(stdout().lock());
    for (number, line) in input.lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let row: Row =
            serde_json::from_str(&line).with_context(|| format!("line {}: not a row {{id, text}}", number + 1))?;
        let spans = places(&row.text, &bastion_sanitize::scan(&row.text));
        serde_json::to_writer(&mut out, &Answer { id: Some(&row.id), spans })?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Byte positions as character positions, in one pass.
fn places(text: &str, spans: &[Span]) -> Vec<Place> {
    let (mut byte, mut chars) = (0, 0);
    let mut to_chars = |at: usize| {
        chars += text[byte..at].chars().count();
        byte = at;
        chars
    };
    spans
        .iter()
        .map(|span| Place {
            start: to_chars(span.start),
            end: to_chars(span.end),
            kind: span.kind.as_str(),
            rule: span.rule,
        })
        .collect()
}

/// Line and column (both from 1, the column in characters) of ascending byte positions.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    start: usize,
}

impl Lines<'_> {
    fn place(&mut self, byte: usize) -> (usize, usize) {
        for (offset, _) in self.text[self.at..byte].match_indices('\n') {
            self.line += 1;
            self.start = self.at + offset + 1;
        }
        self.at = byte;
        (self.line, self.text[self.start..byte].chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_in_characters() {
        let text = "é\nmail: a@example.org";
        let spans = bastion_sanitize::scan(text);
        let places = places(text, &spans);
        assert_eq!((places[0].start, places[0].end), (8, 21));
        assert_eq!(Lines { text, at: 0, line: 1, start: 0 }.place(spans[0].start), (2, 7));
    }
}
