//! What a worker's answer, or its death, says about the file it had.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::wire::Answer;
use crate::{Document, FailReason, Limits, Outcome, tidy};

/// How a worker came to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Death {
    /// Killed at the deadline, having used this many processor seconds in its life.
    Late { processor: f64 },
    /// It ran out of processor seconds (`SIGXCPU`).
    Processor,
    /// An allocation failed.
    Memory,
    /// Somebody killed it: the kernel, most often, being short of memory.
    Killed,
    /// The stack ran out.
    Stack,
    /// Another signal or an exit in the middle of a file.
    Signal(Option<i32>),
    /// It answered something no worker says.
    Nonsense,
}

/// Reads a death from the exit status and the last words on standard error.
pub(super) fn death(status: Option<ExitStatus>, said: &[u8]) -> Death {
    // Signal numbers of Linux, signal(7), the same on x86-64 and ARM64.
    const SIGABRT: i32 = 6;
    const SIGKILL: i32 = 9;
    const SIGXCPU: i32 = 24;
    let says = |words: &str| memchr::memmem::find(said, words.as_bytes()).is_some();
    match status.and_then(|status| status.signal()) {
        Some(SIGXCPU) => Death::Processor,
        Some(SIGKILL) => Death::Killed,
        // The standard library's words before it aborts.
        Some(SIGABRT) if says("memory allocation of ") => Death::Memory,
        Some(SIGABRT) if says("has overflowed its stack") => Death::Stack,
        signal => Death::Signal(signal),
    }
}

impl Death {
    /// Whether the file may have been innocent: not where it was late although it had a fair share of the processor.
    pub(super) fn worth_another_try(&self, limits: &Limits) -> bool {
        match *self {
            Self::Late { processor } => processor < f64::from(limits.seconds) / 4.0,
            Self::Processor => false,
            _ => true,
        }
    }

    /// What the file is reported as.
    pub(super) fn verdict(&self, limits: &Limits) -> Outcome {
        let (reason, detail) = match self {
            Self::Late { .. } | Self::Processor => {
                (FailReason::Timeout, format!("not read within {} s", limits.seconds))
            }
            Self::Memory => (FailReason::Memory, "wanted more memory than a worker may have".to_owned()),
            Self::Killed => {
                (FailReason::Memory, "the worker was killed, as the kernel does when memory is short".to_owned())
            }
            Self::Stack => (FailReason::Crashed, "nested too deep for its reader".to_owned()),
            Self::Signal(Some(signal)) => (FailReason::Crashed, format!("the worker was ended by signal {signal}")),
            Self::Signal(None) => (FailReason::Crashed, "the worker ended in the middle".to_owned()),
            Self::Nonsense => (FailReason::Crashed, "the worker answered nonsense".to_owned()),
        };
        Outcome::Failed { mime: None, reason, detail }
    }
}

/// An answer as an outcome, `None` where no honest worker would say it.
pub(super) fn outcome(answer: Answer, body: Vec<u8>, limits: &Limits) -> Option<Outcome> {
    let word = |text: &str| text.len() <= 300 && text.chars().all(|c| !c.is_control());
    match answer {
        Answer::Text { mime, reader, pages, title, lang } => {
            let text = String::from_utf8(body).ok()?;
            let chars = text.chars().count() as u64;
            let sound = (1..=limits.max_doc_chars).contains(&chars)
                && text.chars().all(tidy::allowed)
                && word(&mime)
                && word(&reader)
                && title.as_deref().is_none_or(|title| tidy::title(title).as_deref() == Some(title))
                && lang
                    .as_deref()
                    .is_none_or(|lang| lang.len() == 2 && lang.bytes().all(|byte| byte.is_ascii_lowercase()));
            sound.then_some(Outcome::Text(Document { mime, reader, text, pages, title, lang }))
        }
        Answer::Empty { mime, reader } => (word(&mime) && word(&reader)).then_some(Outcome::Empty { mime, reader }),
        Answer::Skipped { mime, reason } => {
            mime.as_deref().is_none_or(word).then_some(Outcome::Skipped { mime, reason })
        }
        Answer::Failed { mime, reason, detail } => {
            (mime.as_deref().is_none_or(word) && word(&detail)).then_some(Outcome::Failed { mime, reason, detail })
        }
        Answer::Ready | Answer::Uncaged { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(title: Option<&str>, body: &[u8]) -> Option<Outcome> {
        let answer = Answer::Text {
            mime: "text/plain".into(),
            reader: "text".into(),
            pages: None,
            title: title.map(str::to_owned),
            lang: None,
        };
        outcome(answer, body.to_vec(), &Limits { max_doc_chars: 5, ..Limits::default() })
    }

    #[test]
    fn what_no_honest_worker_says_is_no_outcome() {
        assert!(text(None, "äöüäö".as_bytes()).is_some());
        assert!(text(None, b"sixsix").is_none(), "longer than the limit");
        assert!(text(None, b"").is_none(), "empty is another answer");
        assert!(text(None, b"a\0b").is_none());
        assert!(text(None, b"\xff").is_none());
        assert!(text(Some("two\nlines"), b"a").is_none());
        assert!(outcome(Answer::Ready, Vec::new(), &Limits::default()).is_none());
    }

    #[test]
    fn deaths_are_told_apart() {
        let by = |signal, said: &[u8]| death(Some(ExitStatus::from_raw(signal)), said);
        assert_eq!(by(6, b"memory allocation of 12 bytes failed"), Death::Memory);
        assert_eq!(by(6, b"thread 'x' has overflowed its stack"), Death::Stack);
        assert_eq!(by(6, b""), Death::Signal(Some(6)));
        assert_eq!(by(9, b""), Death::Killed);
        assert_eq!(by(24, b""), Death::Processor);
        assert_eq!(by(11, b""), Death::Signal(Some(11)));
        assert_eq!(death(None, b""), Death::Signal(None));
    }

    #[test]
    fn a_file_that_used_up_its_seconds_is_not_tried_again() {
        let limits = Limits { seconds: 30, ..Limits::default() };
        assert!(!Death::Late { processor: 29.0 }.worth_another_try(&limits));
        assert!(Death::Late { processor: 3.0 }.worth_another_try(&limits));
        assert!(Death::Memory.worth_another_try(&limits));
    }
}
