//! From plaintext to text that may be served: every value found is replaced by its token, and the vault learns it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use bastion_host::clock::Clock;
use bastion_private::{ExtractStore, Hidden, Vault};
use bastion_sanitize::{Found, Sanitized, TokenKey, sanitize as apply_rules};
use bastion_store::{DocId, DocRow, Draft};
use bastion_trust::Stage;

use crate::progress::Progress;
use crate::{Settings, StageError, Tally};

/// What a thread made of one document.
struct Done {
    piece: String,
    chars: u64,
    title: Option<String>,
    hidden: BTreeMap<String, u64>,
    found: Vec<Found>,
}

/// Sanitizes every document whose text is new or was made by older rules.
pub(crate) fn sanitize(
    settings: &Settings,
    draft: &mut Draft,
    vault: &Vault,
    extracts: &mut ExtractStore,
    progress: &dyn Progress,
    clock: &dyn Clock,
) -> Result<Tally, StageError> {
    let print = bastion_sanitize::FINGERPRINT;
    draft.forget_lost_pieces()?;
    let work = draft.docs_unsanitized(print)?;
    progress.begin(Stage::Sanitize, Some(work.len() as u64));
    let (_, with_text, _) = draft.counts()?;
    let redone = work.iter().filter(|row| row.piece.is_some()).count() as u64;
    let mut tally =
        Tally { unchanged: with_text - redone, changed: redone, new: work.len() as u64 - redone, ..Tally::default() };
    tally.seen = tally.unchanged + work.len() as u64;
    if work.is_empty() {
        return Ok(tally);
    }
    draft.mark_dirty()?;
    extracts.load().map_err(StageError::io(draft.layout().extract()))?;
    let key = TokenKey::new(vault.key().token_key());
    let done = run(&work, settings.workers, draft, extracts, &key, progress)?;
    vault.edit(|edit| {
        for (row, done) in work.iter().zip(&done) {
            edit.put_doc(&row.known.doc, &hidden(&done.found), clock)?;
        }
        Ok(())
    })?;
    for (row, done) in work.iter().zip(&done) {
        draft.put_sanitized(row.ord, print, &done.piece, done.chars, done.title.as_deref(), &done.hidden)?;
        for (kind, count) in &done.hidden {
            *tally.hidden.entry(kind.clone()).or_default() += count;
        }
    }
    Ok(tally)
}

/// The rules, held so that a fault in them can't put a text into a message.
pub(crate) fn rules(text: &str, key: &TokenKey, doc: &DocId) -> Result<Sanitized, StageError> {
    match std::panic::catch_unwind(|| apply_rules(text, key)) {
        Ok(applied) => applied.map_err(|source| StageError::Rules { doc: *doc, source }),
        Err(_) => Err(StageError::RulesBroke { doc: *doc }),
    }
}

/// The vault's view of what the rules found.
pub(crate) fn hidden(found: &[Found]) -> Vec<Hidden<'_>> {
    found
        .iter()
        .map(|found| Hidden {
            token: &found.token,
            kind: found.kind.as_str(),
            value: &found.value,
            normalised: &found.normal,
        })
        .collect()
}

/// Every document in `work`, in its order, made by several threads.
fn run(
    work: &[DocRow],
    workers: usize,
    draft: &Draft,
    extracts: &ExtractStore,
    key: &TokenKey,
    progress: &dyn Progress,
) -> Result<Vec<Done>, StageError> {
    let pieces = draft.pieces();
    let (next, broken) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (send, receive) = mpsc::channel();
    let mut done: Vec<Option<Done>> = work.iter().map(|_| None).collect();
    std::thread::scope(|threads| {
        for _ in 0..workers.clamp(1, work.len()) {
            let (send, next, broken, pieces) = (send.clone(), &next, &broken, &pieces);
            threads.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(row) = work.get(at).filter(|_| !broken.load(Ordering::Relaxed)) else { break };
                    progress.item(&row.known.doc.to_string()[..12]);
                    let made = one(row, pieces, extracts, key);
                    broken.fetch_or(made.is_err(), Ordering::Relaxed);
                    if send.send((at, made)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for (at, made) in receive {
            done[at] = Some(made?);
        }
        Ok(done.into_iter().flatten().collect())
    })
}

fn one(
    row: &DocRow,
    pieces: &bastion_store::Pieces,
    extracts: &ExtractStore,
    key: &TokenKey,
) -> Result<Done, StageError> {
    let doc = &row.known.doc;
    let text = extracts.text(doc).map_err(|source| StageError::LostText { doc: *doc, source })?;
    let rules = |text: &str| rules(text, key, doc);
    let Sanitized { text, mut found, counts } = rules(&text)?;
    let title = match extracts.any_row(doc).and_then(|row| row.title.as_deref()) {
        Some(title) => {
            let title = rules(title)?;
            found.extend(title.found);
            Some(title.text)
        }
        None => None,
    };
    let piece = pieces.write(doc, &text)?;
    let hidden = counts.into_iter().map(|(kind, count)| (kind.as_str().to_owned(), count as u64)).collect();
    Ok(Done { piece, chars: text.chars().count() as u64, title, hidden, found })
}
