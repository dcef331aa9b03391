//! Programs of the machine that read what the built-in readers can't: `pdftotext`, `tesseract`, `soffice`.
//!
//! The built-in readers come first. A program is asked only for a PDF that they found damaged, crashed on or found
//! empty, for an image, and for an office file they can't read. It runs in a cage of its own (`bastion_cage`'s program
//! cage: the system's folders to read, one private folder to write, no network) and is never run without, unless the
//! owner gave `--uncaged`. What goes wrong with a program changes nothing: the built-in outcome stands.

mod find;
mod run;

use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use find::probe_external;
pub(crate) use run::become_program;
use run::{Order, Runner};

use crate::pool::Recipe;
use crate::{Document, FailReason, Job, Outcome, SkipReason, language, tidy};

/// A program and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Where it is, `None` where it is not.
    pub path: Option<PathBuf>,
    /// What it says of its version, one line.
    pub version: Option<String>,
}

/// The programs in use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExternalReaders {
    tools: Vec<Tool>,
}

impl ExternalReaders {
    /// No program is started (`FREEAGENT_NO_EXTERNAL=1`).
    pub fn none() -> Self {
        Self::default()
    }

    /// Every program that is found on the search path.
    pub fn found() -> Self {
        Self::of(probe_external())
    }

    /// Those of `tools` that have a path.
    pub fn of(tools: Vec<Tool>) -> Self {
        Self { tools: tools.into_iter().filter(|tool| tool.path.is_some()).collect() }
    }

    /// The programs in use.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter()
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.tools.iter().find(|tool| tool.name == name).and_then(|tool| tool.path.clone())
    }
}

/// Pages of a PDF without text that are looked at.
const OCR_PAGES: u32 = 50;

/// What the built-in readers could not do, done by a program, or `outcome` as it was. `reread` reads a file with the
/// built-in readers.
pub(crate) fn fill(
    external: &ExternalReaders,
    recipe: &Recipe,
    job: &Job<'_>,
    outcome: Outcome,
    reread: &dyn Fn(&Job<'_>) -> Option<Outcome>,
) -> Outcome {
    if external.tools.is_empty() {
        return outcome;
    }
    let deadline = Instant::now() + Duration::from_secs(job.limits.seconds.into());
    let runner = Runner { recipe, deadline, max_output: job.limits.max_doc_chars.saturating_mul(4) };
    let filled = if is_pdf(job.bytes) {
        match &outcome {
            Outcome::Empty { .. } | Outcome::Failed { reason: FailReason::Damaged | FailReason::Crashed, .. } => {
                pdf(external, &runner, job)
            }
            _ => None,
        }
    } else {
        match &outcome {
            Outcome::Skipped { mime: Some(mime), reason: SkipReason::Unsupported } if mime.starts_with("image/") => {
                image(external, &runner, job, mime)
            }
            Outcome::Failed { mime: Some(mime), reason: FailReason::Damaged | FailReason::Crashed, .. }
                if is_office(mime) =>
            {
                office(external, &runner, job, mime, reread)
            }
            _ => None,
        }
    };
    filled.unwrap_or(outcome)
}

/// By signature only: the pool's own process parses nothing of a file.
fn is_pdf(bytes: &[u8]) -> bool {
    memchr::memmem::find(&bytes[..bytes.len().min(1024)], b"%PDF-").is_some()
}

fn is_office(mime: &str) -> bool {
    ["application/vnd.", "application/msword", "application/rtf"].iter().any(|start| mime.starts_with(start))
}

fn pdf(external: &ExternalReaders, runner: &Runner<'_>, job: &Job<'_>) -> Option<Outcome> {
    let program = external.path("pdftotext")?;
    let arguments = ["-q", "-enc", "UTF-8", "-", "-"];
    let text = runner.run(&Order { program: &program, arguments: &arguments, folder: None }, job.bytes)?;
    let text = String::from_utf8_lossy(&text);
    let pages = u32::try_from(text.matches(tidy::PAGE_BREAK).count()).ok();
    if let Some(found) = finish("application/pdf", "pdftotext", &text, pages, job) {
        return Some(found);
    }
    let tesseract = external.path("tesseract")?;
    // It comes in the same package as the other.
    let painter = program.with_file_name("pdftoppm");
    let mut text = String::new();
    for page in 1..=pages?.min(OCR_PAGES) {
        let page = page.to_string();
        let arguments = ["-q", "-f", &page, "-l", &page, "-r", "200", "-gray", "-png", "-"];
        let picture = runner.run(&Order { program: &painter, arguments: &arguments, folder: None }, job.bytes)?;
        text.push_str(&recognise(&tesseract, runner, &picture)?);
        text.push(tidy::PAGE_BREAK);
    }
    finish("application/pdf", "tesseract", &text, pages, job)
}

fn image(external: &ExternalReaders, runner: &Runner<'_>, job: &Job<'_>, mime: &str) -> Option<Outcome> {
    let text = recognise(&external.path("tesseract")?, runner, job.bytes)?;
    finish(mime, "tesseract", &text, None, job)
}

fn recognise(tesseract: &std::path::Path, runner: &Runner<'_>, picture: &[u8]) -> Option<String> {
    let order = Order { program: tesseract, arguments: &["stdin", "stdout"], folder: None };
    Some(String::from_utf8_lossy(&runner.run(&order, picture)?).into_owned())
}

/// By way of PDF, which every kind of office file becomes and a built-in reader reads.
fn office(
    external: &ExternalReaders,
    runner: &Runner<'_>,
    job: &Job<'_>,
    mime: &str,
    reread: &dyn Fn(&Job<'_>) -> Option<Outcome>,
) -> Option<Outcome> {
    let program = external.path("soffice")?;
    let folder = tempfile::Builder::new().prefix("bastion-").tempdir().ok()?;
    let ending: String = crate::detect::ending(job.name).chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    let input = folder.path().join(format!("input.{ending}"));
    bastion_host::files::replace(&input, job.bytes, bastion_host::files::PRIVATE_FILE).ok()?;
    let (here, input) = (folder.path().to_str()?, input.to_str()?);
    let profile = format!("-env:UserInstallation=file://{here}/profile");
    let arguments = [&profile, "--headless", "--norestore", "--convert-to", "pdf", "--outdir", here, input];
    runner.run(&Order { program: &program, arguments: &arguments, folder: Some(folder.path()) }, &[])?;
    let made = bastion_host::files::read_capped(&folder.path().join("input.pdf"), 256 << 20).ok()?;
    match reread(&Job { name: "input.pdf", bytes: &made, limits: job.limits })? {
        Outcome::Text(document) => Some(Outcome::Text(Document {
            mime: mime.to_owned(),
            reader: "soffice".to_owned(),
            title: None,
            ..document
        })),
        _ => None,
    }
}

/// A program's text as an outcome; `None` where it has none or too much.
fn finish(mime: &str, reader: &str, text: &str, pages: Option<u32>, job: &Job<'_>) -> Option<Outcome> {
    let text = tidy::tidy(text);
    let too_long = text.chars().count() as u64 > job.limits.max_doc_chars;
    if too_long || text.trim().is_empty() {
        return None;
    }
    let lang = language::of(&text);
    let (mime, reader) = (mime.to_owned(), reader.to_owned());
    Some(Outcome::Text(Document { mime, reader, text, pages, title: None, lang }))
}
