//! The worker's side: cage first, then read files one after the other until the pipe closes.
//!
//! One thread does all the work, on a stack of its own that is large enough for documents nested as deep as honest
//! ones are; the first thread only waits for it. A reader that panics costs its file; a stack or memory that runs out
//! costs the process, which the pool replaces.

use std::fs::File;
use std::io::{self, Write};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use bastion_cage::{CageError, Profile, Restricted};

use crate::wire::{self, Answer, Ask};
use crate::{FailReason, Outcome, external, readers};

/// Address space of a worker in bytes, its stack and the program itself included.
const MEMORY: u64 = 1400 << 20;
/// Stack of the thread that reads, in bytes. Reserved, not used until it is needed.
const STACK: usize = 256 << 20;
/// The three standard pipes, the copy of one of them, and room for nothing much.
const OPEN_FILES: u64 = 8;

/// What the hidden command of the program runs. Never returns to the command line's own business: the exit code is all.
pub fn worker_main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // The pool sees the closed pipe. What went wrong with a pipe is not worth a word on another.
        Err(_) => ExitCode::FAILURE,
    }
}

fn run() -> io::Result<()> {
    // Without a buffer: what follows the first frame may be for another program.
    let mut stdin = File::from(rustix::io::dup(rustix::stdio::stdin())?);
    let uncaged = match wire::read::<Ask>(&mut stdin)? {
        Some((Ask::Start { uncaged }, _)) => uncaged,
        Some((Ask::Become { uncaged, program, arguments, folder, seconds }, _)) => {
            return external::become_program(uncaged, &program, &arguments, folder, seconds)
                .map(|never| match never {});
        }
        _ => return Err(wire::malformed("no start")),
    };
    let mut pipe = take_stdout()?;
    // What a panic says may quote the document.
    std::panic::set_hook(Box::new(|_| {}));
    let restricted = if uncaged { None } else { Some(restrict()) };
    let reader =
        std::thread::Builder::new().name("reader".to_owned()).stack_size(STACK).spawn(move || {
            match restricted.map(|step| step.and_then(Restricted::seal)).transpose() {
                Ok(_) => serve(&mut pipe),
                Err(error) => refuse(&mut pipe, &error),
            }
        })?;
    reader.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread ended")))
}

fn restrict() -> Result<Restricted, CageError> {
    bastion_cage::prepare(&Profile { memory: MEMORY, open_files: OPEN_FILES })?.restrict()
}

fn refuse(pipe: &mut impl Write, error: &CageError) -> io::Result<()> {
    let answer =
        Answer::Uncaged { layer: error.layer().to_string(), cause: error.to_string(), mend: error.mend().to_owned() };
    wire::write(pipe, &answer, &[])
}

/// The pipe behind standard output, which from now on leads to standard error: a library that prints can't break a
/// frame.
fn take_stdout() -> io::Result<File> {
    let pipe = rustix::io::dup(rustix::stdio::stdout())?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(pipe))
}

fn serve(pipe: &mut impl Write) -> io::Result<()> {
    // Libraries that share work among threads find one: this one.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    wire::write(pipe, &Answer::Ready, &[])?;
    let mut stdin = io::stdin().lock();
    while let Some((ask, bytes)) = wire::read::<Ask>(&mut stdin)? {
        let Ask::Read { name, max_doc_chars, archive_depth } = ask else {
            return Err(wire::malformed("started twice"));
        };
        let budget = readers::Budget::new(max_doc_chars, archive_depth);
        let read = std::panic::catch_unwind(AssertUnwindSafe(|| readers::read(&name, bytes, &budget)));
        answer(pipe, read.unwrap_or_else(|_| panicked()))?;
        docling::memory::release_free_memory();
    }
    Ok(())
}

fn panicked() -> Outcome {
    Outcome::Failed { mime: None, reason: FailReason::Crashed, detail: "its reader panicked".to_owned() }
}

fn answer(pipe: &mut impl Write, outcome: Outcome) -> io::Result<()> {
    match outcome {
        Outcome::Text(document) => {
            let crate::Document { mime, reader, text, pages, title, lang } = document;
            wire::write(pipe, &Answer::Text { mime, reader, pages, title, lang }, text.as_bytes())
        }
        Outcome::Empty { mime, reader } => wire::write(pipe, &Answer::Empty { mime, reader }, &[]),
        Outcome::Skipped { mime, reason } => wire::write(pipe, &Answer::Skipped { mime, reason }, &[]),
        Outcome::Failed { mime, reason, detail } => wire::write(pipe, &Answer::Failed { mime, reason, detail }, &[]),
    }
}
