//! Cards: what an owner sees of each file and folder without opening it.
//!
//! Names and titles are sanitized like text. The stage stops rather than make a card for a document that was read
//! and has no sanitized text of its current bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bastion_host::clock::{Clock, rfc3339_millis};
use bastion_private::Vault;
use bastion_sanitize::{Found, TokenKey};
use bastion_store::{DocId, DocRow, Draft, PathRow, PathStatus};
use bastion_trust::Stage;
use serde::Serialize;

use crate::progress::Progress;
use crate::summarize::Summarizer;
use crate::{StageError, Tally, names};

/// Characters of a card's head, at the most.
const HEAD_CHARS: usize = 400;

/// Where the vault keeps the values that stand in names, since they belong to no document's text.
pub(crate) const NAMES: DocId = DocId::from_bytes([0; 32]);

/// What is shown of one file.
#[derive(Debug, Serialize)]
struct FileCard<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<DocId>,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime: Option<&'a str>,
    bytes: u64,
    mtime: String,
    chars: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lang: Option<&'a str>,
    hidden: &'a BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
}

/// What is shown of one folder: all that lies below it.
#[derive(Debug, Default, Serialize)]
struct DirCard {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    files: u64,
    bytes: u64,
    mimes: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<String>,
    hidden: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

/// Makes the cards anew. A sweep in which nothing changed makes none.
pub(crate) fn catalog(
    draft: &mut Draft,
    vault: &Vault,
    summarizer: Option<&Summarizer>,
    several_roots: bool,
    progress: &dyn Progress,
    clock: &dyn Clock,
) -> Result<Tally, StageError> {
    let mut tally = Tally { seen: draft.path_count()?, ..Tally::default() };
    let made_by = format!("{} {}", bastion_sanitize::FINGERPRINT, summarizer.map_or("", Summarizer::model));
    let made = draft.meta("catalog")?.as_deref() == Some(&made_by);
    if !draft.is_changed() && made {
        progress.begin(Stage::Catalog, Some(0));
        tally.unchanged = tally.seen;
        return Ok(tally);
    }
    progress.begin(Stage::Catalog, Some(tally.seen));
    let paths = draft.paths()?;
    summarize_docs(draft, summarizer, &mut tally)?;
    let docs: HashMap<DocId, DocRow> = draft.docs()?.into_iter().map(|row| (row.known.doc, row)).collect();
    let mut names =
        Names { key: TokenKey::new(vault.key().token_key()), found: BTreeMap::new(), shown: HashMap::new() };
    let mut dirs: BTreeMap<(String, String), DirCard> = BTreeMap::new();
    for path in &paths {
        progress.item(&path.path);
        if path.doc.is_none()
            && !matches!(path.reason.as_deref(), Some("permission" | "too_large" | "placeholder" | "io" | "changing"))
        {
            continue; // a link, a pipe, a device: not a document
        }
        // What a changed file held before says nothing of what it holds now.
        let doc = path.doc.as_ref().filter(|_| path.status != PathStatus::Pending).and_then(|doc| docs.get(doc));
        let shown = names.show(&path.path)?;
        let root = if several_roots { Some(names.show(&path.root)?) } else { None };
        let print = print(path, doc, &shown, root.as_deref());
        match draft.card_print(&path.root, &path.path)? {
            Some(old) if old == print => tally.unchanged += 1,
            old => {
                if old.is_some() {
                    tally.changed += 1;
                } else {
                    tally.new += 1;
                }
                let card = card(draft, path, doc, &shown, root.as_deref())?;
                draft.put_card(&path.root, &path.path, &shown, &card, print)?;
            }
        }
        add_to_dirs(&mut dirs, path, doc, &shown, root.as_deref());
    }
    let lines =
        dirs.into_values().map(|card| Ok((card.path.clone(), card.root.clone().unwrap_or_default(), json(&card))));
    draft.put_dirs(&lines.collect::<Result<Vec<_>, StageError>>()?)?;
    draft.set_meta("catalog", &made_by)?;
    let found: Vec<Found> = names.found.into_values().collect();
    vault.edit(|edit| edit.put_doc(&NAMES, &crate::sanitize::hidden(&found), clock))?;
    Ok(tally)
}

/// All that a card is made of, as one number: where it is the same, so is the card. A piece's name says its content.
fn print(path: &PathRow, doc: Option<&DocRow>, shown: &str, root: Option<&str>) -> i64 {
    let of_doc = doc.map(|row| {
        let known = &row.known;
        let first = (&known.mime, &known.status, &known.reason, &known.pages, &known.lang);
        (first, &row.piece, row.chars, &row.title, &row.hidden, &row.summary)
    });
    let of_path = (path.doc, path.bytes, path.mtime_ns, path.status.as_str(), &path.reason);
    crate::chunk::text_print(&json(&(shown, root, of_path, of_doc)))
}

fn card(
    draft: &Draft,
    path: &PathRow,
    doc: Option<&DocRow>,
    shown: &str,
    root: Option<&str>,
) -> Result<String, StageError> {
    let text = match doc {
        Some(row) if row.known.status == "ok" => {
            let piece = row.piece.as_deref().ok_or(StageError::Unsanitized { doc: row.known.doc })?;
            Some(draft.read_piece_head(piece, HEAD_CHARS * 4)?)
        }
        _ => None,
    };
    let none = BTreeMap::new();
    let (status, reason) = match (doc, path.reason.as_deref()) {
        (Some(row), None) => (row.known.status.as_str(), row.known.reason.as_deref()),
        (_, reason) => (path.status.as_str(), reason),
    };
    Ok(json(&FileCard {
        path: shown,
        root,
        doc: path.doc,
        status,
        reason,
        title: doc.and_then(|row| row.title.as_deref()),
        mime: doc.and_then(|row| row.known.mime.as_deref()),
        bytes: path.bytes,
        mtime: mtime(path),
        chars: doc.map_or(0, |row| row.chars),
        pages: doc.and_then(|row| row.known.pages),
        lang: doc.and_then(|row| row.known.lang.as_deref()),
        hidden: doc.map_or(&none, |row| &row.hidden),
        head: text.as_deref().map(head),
        summary: doc.and_then(|row| row.summary.as_deref()),
    }))
}

/// The first characters of a text, never ending inside a token.
fn head(text: &str) -> &str {
    let end = text.char_indices().nth(HEAD_CHARS).map_or(text.len(), |(at, _)| at);
    let cut = bastion_sanitize::tokens(text)
        .find(|token| token.start < end && end < token.end)
        .map_or(end, |token| token.start);
    text[..cut].trim_end()
}

fn mtime(path: &PathRow) -> String {
    rfc3339_millis(jiff::Timestamp::from_nanosecond(path.mtime_ns.into()).unwrap_or_default())
}

fn add_to_dirs(
    dirs: &mut BTreeMap<(String, String), DirCard>,
    path: &PathRow,
    doc: Option<&DocRow>,
    shown: &str,
    root: Option<&str>,
) {
    let newest = mtime(path);
    let mut folder = shown;
    loop {
        folder = names::parent(folder);
        let card = dirs.entry((folder.to_owned(), path.root.clone())).or_insert_with(|| DirCard {
            path: folder.to_owned(),
            root: root.map(str::to_owned),
            ..DirCard::default()
        });
        card.files += 1;
        card.bytes += path.bytes;
        if card.newest.as_ref().is_none_or(|known| *known < newest) {
            card.newest = Some(newest.clone());
        }
        if let Some(row) = doc {
            if let Some(mime) = &row.known.mime {
                *card.mimes.entry(mime.clone()).or_default() += 1;
            }
            for (kind, count) in &row.hidden {
                *card.hidden.entry(kind.clone()).or_default() += count;
            }
        }
        if folder.is_empty() {
            break;
        }
    }
}

/// Sanitized names, each part of a path once.
struct Names {
    key: TokenKey,
    found: BTreeMap<String, Found>,
    shown: HashMap<String, String>,
}

impl Names {
    fn show(&mut self, path: &str) -> Result<String, StageError> {
        let mut parts = Vec::new();
        for part in path.split('/') {
            if let Some(shown) = self.shown.get(part) {
                parts.push(shown.clone());
                continue;
            }
            let clean = crate::sanitize::rules(part, &self.key, &NAMES)?;
            for found in clean.found {
                self.found.entry(found.token.clone()).or_insert(found);
            }
            self.shown.insert(part.to_owned(), clean.text.clone());
            parts.push(clean.text);
        }
        Ok(parts.join("/"))
    }
}

/// Asks for the summaries that are missing.
fn summarize_docs(draft: &mut Draft, summarizer: Option<&Summarizer>, tally: &mut Tally) -> Result<(), StageError> {
    let Some(summarizer) = summarizer else { return Ok(()) };
    let hosts: BTreeSet<String> = BTreeSet::from([summarizer.host().to_owned()]);
    for row in draft.docs()? {
        let (Some(piece), None) = (&row.piece, &row.summary) else { continue };
        let text = draft.read_piece_head(piece, 32 << 10)?;
        let summary = summarizer.summarize(&text)?;
        tally.hosts = hosts.iter().cloned().collect();
        // A model can make up what was hidden, or something like it: then there is no summary.
        if bastion_sanitize::scan(&summary).is_empty() {
            draft.put_summary(row.ord, &summary)?;
        }
    }
    Ok(())
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_never_ends_inside_a_token() {
        let text = format!("{}[EMAIL_abcdefghijkl] and more", "x".repeat(HEAD_CHARS - 5));
        assert_eq!(head(&text), "x".repeat(HEAD_CHARS - 5));
        assert_eq!(head("short"), "short");
        assert_eq!(head(&"é".repeat(500)).chars().count(), HEAD_CHARS);
    }
}
