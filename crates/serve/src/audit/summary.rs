//! The audit summed up by day, common name and operation, over the current file and all that were set aside.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{AUDIT_FILE, AuditRow};

/// A line may be this many bytes long; a longer one is none of ours.
const MAX_LINE: u64 = 64 << 10;

/// What was asked and what went out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// By day, then common name, then operation.
    pub rows: Vec<SummaryRow>,
    /// Lines that are no record: torn by a power loss, or foreign.
    pub unreadable: u64,
}

/// The requests of one day, one common name, one operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SummaryRow {
    /// `YYYY-MM-DD`, UTC.
    pub day: String,
    /// The peer's common name; null where it had none, or several.
    pub cn: Option<String>,
    /// The operation; null where no route was named.
    pub op: Option<String>,
    /// Answers.
    pub requests: u64,
    /// Answers whose status was 400 or above.
    pub refused: u64,
    /// Windows that went out.
    pub hits: u64,
    /// Characters that went out by `read_range`.
    pub chars: u64,
    /// Bytes of all answers' bodies.
    pub bytes: u64,
}

/// Sums up the audit in the output folder `out`. No audit is an empty summary.
///
/// # Errors
/// A file that is there and can't be read, with its path.
pub fn summarize(out: &Path) -> Result<Summary, SummaryError> {
    let mut rows: BTreeMap<(String, Option<String>, Option<String>), SummaryRow> = BTreeMap::new();
    let mut unreadable = 0;
    for path in files(out)? {
        let failed = |source| SummaryError { path: path.clone(), source };
        let mut reader = BufReader::new(File::open(&path).map_err(failed)?);
        while let Some(line) = next_line(&mut reader).map_err(failed)? {
            match serde_json::from_slice::<AuditRow>(&line) {
                Ok(row) => add(&mut rows, row),
                Err(_) => unreadable += u64::from(!line.is_empty()),
            }
        }
    }
    Ok(Summary { rows: rows.into_values().collect(), unreadable })
}

/// An audit file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct SummaryError {
    path: PathBuf,
    source: io::Error,
}

fn add(rows: &mut BTreeMap<(String, Option<String>, Option<String>), SummaryRow>, row: AuditRow) {
    let day: String = row.ts.chars().take(10).collect();
    let sum = rows.entry((day.clone(), row.cn.clone(), row.op.clone())).or_insert_with(|| SummaryRow {
        day,
        cn: row.cn,
        op: row.op,
        ..SummaryRow::default()
    });
    sum.requests += 1;
    sum.refused += u64::from(row.status >= 400);
    sum.hits += row.hits.unwrap_or(0);
    sum.chars += row.chars.unwrap_or(0);
    sum.bytes += row.bytes;
}

/// The files that were set aside, oldest first, and then the current one.
fn files(out: &Path) -> Result<Vec<PathBuf>, SummaryError> {
    let failed = |source| SummaryError { path: out.to_owned(), source };
    let mut names = Vec::new();
    match fs::read_dir(out) {
        Ok(entries) => {
            for entry in entries {
                let name = entry.map_err(failed)?.file_name();
                if name.to_str().is_some_and(|name| name.starts_with("serve.audit.") && name.ends_with(".jsonl")) {
                    names.push(name);
                }
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    names.sort_by_key(|name| (name == AUDIT_FILE, name.clone()));
    Ok(names.into_iter().map(|name| out.join(name)).collect())
}

/// The next line without its newline; one that is too long is cut, so it won't parse.
fn next_line(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if reader.take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 == MAX_LINE {
        skip_line(reader)?;
    }
    Ok(Some(line))
}

fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_summed_over_all_files_and_torn_ones_counted() {
        let dir = tempfile::tempdir().unwrap();
        let row = |day: &str, cn: Option<&str>, status: u16, hits: u64| {
            serde_json::to_string(&AuditRow {
                ts: format!("{day}T10:00:00.000Z"),
                cn: cn.map(str::to_owned),
                op: Some("search".into()),
                path: Some("/search".into()),
                status,
                bytes: 10,
                q: None,
                hits: Some(hits),
                doc: None,
                chars: None,
                limit: None,
                total: None,
                bypassed: None,
            })
            .unwrap()
        };
        fs::write(
            dir.path().join("serve.audit.20260101T000000000Z.jsonl"),
            format!("{}\n{{\"ts\":\"2026\n{}\n", row("2026-01-01", Some("a"), 200, 3), "x".repeat(200_000)),
        )
        .unwrap();
        fs::write(
            dir.path().join(AUDIT_FILE),
            format!(
                "{}\n{}\n{}\n",
                row("2026-01-01", Some("a"), 429, 0),
                row("2026-01-01", None, 200, 1),
                row("2026-01-02", Some("a"), 200, 2)
            ),
        )
        .unwrap();
        fs::write(dir.path().join("serve.audit.jsonl.bak"), "junk\n").unwrap();
        let summary = summarize(dir.path()).unwrap();
        assert_eq!(summary.unreadable, 2);
        let short: Vec<_> = summary
            .rows
            .iter()
            .map(|row| (row.day.as_str(), row.cn.as_deref(), row.requests, row.refused, row.hits, row.bytes))
            .collect();
        assert_eq!(
            short,
            [
                ("2026-01-01", None, 1, 0, 1, 10),
                ("2026-01-01", Some("a"), 2, 1, 3, 20),
                ("2026-01-02", Some("a"), 1, 0, 2, 10)
            ]
        );
        assert_eq!(summarize(&dir.path().join("absent")).unwrap(), Summary::default());
    }
}
