//! One call of a program: its words, what is in its environment, how long it may take, and what it said.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use bastion_host::child::{self, End, Job};

use crate::driver::{Notice, Session};
use crate::error::LaunchError;
use crate::passing::Passing;
use crate::secret::{Masker, Secret};
use crate::text::{plain, plain_lines, tail};

/// Bytes kept of what a program prints.
const KEEP: usize = 1 << 20;
/// Characters of it that a message shows.
const SHOWN: usize = 4_000;

/// A call to make.
pub(super) struct Call<'c> {
    program: &'c Path,
    /// Words of the command line. No secret belongs here.
    pub(super) words: Vec<String>,
    /// Variables of the child alone.
    pub(super) env: Vec<(String, Secret)>,
    /// Variables that the child does not get.
    pub(super) unset: Vec<&'static str>,
    /// How long it may take; none: any time.
    pub(super) limit: Option<Duration>,
    /// Bytes kept of each output.
    pub(super) keep: usize,
    /// Whether its output is the user's to see.
    pub(super) pass: bool,
}

/// What came back.
pub(super) struct Answer {
    /// The exit status; 128 and more where a signal ended it.
    pub(super) status: i32,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) truncated: bool,
}

impl<'c> Call<'c> {
    pub(super) fn new(program: &'c Path, limit: Duration) -> Self {
        Self { program, words: vec![], env: vec![], unset: vec![], limit: Some(limit), keep: KEEP, pass: false }
    }

    /// The call as it could be typed.
    pub(super) fn shown(&self) -> String {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut text = plain(&name);
        for word in &self.words {
            text.push(' ');
            let safe = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:=@,+".contains(&b));
            if safe {
                text.push_str(word);
            } else {
                text.push_str(&format!("'{}'", plain(word)));
            }
        }
        text
    }

    pub(super) fn job(&self) -> Job {
        Job {
            program: self.program.into(),
            args: self.words.iter().map(OsString::from).collect(),
            env: self.env.iter().map(|(name, value)| (name.into(), value.reveal().into())).collect(),
            unset: self.unset.iter().map(OsString::from).collect(),
            cwd: None,
            limit: self.limit,
            keep: self.keep,
        }
    }

    /// Makes the call and gives whatever came back.
    ///
    /// # Errors
    /// Where it can't be started, took too long, or a stop was requested.
    pub(super) fn run(&self, session: &mut Session<'_>) -> Result<Answer, LaunchError> {
        let step = self.shown();
        session.check(&format!("before {step}"))?;
        session.tell(Notice::Step(&step));
        let (stop, masker) = (session.stop, session.masker);
        let mut streams = Passing::default();
        let ended = child::run(&self.job(), stop, &mut |stream, bytes| {
            if self.pass {
                streams.push(stream, bytes, masker, &mut |text| session.tell(Notice::Output(stream, text)));
            }
        })
        .map_err(|error| session.failed(&step, format!("it can't be started: {error}")))?;
        if self.pass {
            streams.finish(masker, &mut |stream, text| session.tell(Notice::Output(stream, text)));
        }
        match ended.how {
            End::Exited(status) => {
                use std::os::unix::process::ExitStatusExt as _;
                let status = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
                let lost = ended.truncated;
                Ok(Answer { status, stdout: ended.stdout, stderr: ended.stderr, truncated: lost })
            }
            End::TimedOut => {
                let seconds = self.limit.map_or(0.0, |limit| limit.as_secs_f32());
                Err(session.failed(&step, format!("it took longer than {seconds} s and was ended")))
            }
            End::Interrupted(signal) => Err(LaunchError::Interrupted {
                signal,
                during: format!("during {step}, which may have been done"),
                done: session.so_far(),
            }),
        }
    }

    /// Makes the call, which must succeed.
    ///
    /// # Errors
    /// As [`Call::run`], and where it fails.
    pub(super) fn ok(&self, session: &mut Session<'_>) -> Result<Answer, LaunchError> {
        let answer = self.run(session)?;
        match answer.status {
            0 => Ok(answer),
            _ => Err(session.failed(&self.shown(), answer.message(session.masker))),
        }
    }
}

impl Answer {
    /// All that was said, for a look at it.
    pub(super) fn text(&self) -> String {
        format!("{}\n{}", String::from_utf8_lossy(&self.stderr), String::from_utf8_lossy(&self.stdout))
    }

    /// Whether it was said, in whatever case.
    pub(super) fn says(&self, what: &str) -> bool {
        self.text().to_lowercase().contains(&what.to_lowercase())
    }

    /// Whether it failed because there is no such thing: `thing not found`, or with one name between the words. What ran
    /// inside a sandbox and was not found there is something else.
    pub(super) fn misses(&self, thing: &str) -> bool {
        let text = self.text().to_lowercase();
        let missed = text.match_indices(thing).any(|(at, _)| {
            let behind = &text[at + thing.len()..];
            let words: Vec<&str> = behind.split_whitespace().take(3).collect();
            behind.starts_with(char::is_whitespace)
                && (words.starts_with(&["not", "found"])
                    || matches!(words.as_slice(), [_, "not", found] if found.starts_with("found")))
        });
        self.status != 0 && self.status != 127 && missed
    }

    /// The program's own words, without secrets and fit for a terminal.
    pub(super) fn message(&self, masker: &Masker) -> String {
        let said = if self.stderr.iter().all(u8::is_ascii_whitespace) { &self.stdout } else { &self.stderr };
        let whole = String::from_utf8_lossy(said);
        // where the beginning was cut off, so may a secret have been
        let whole = if self.truncated { whole.chars().skip(masker.longest()).collect() } else { whole.into_owned() };
        let text = tail(plain_lines(masker.mask(&whole).trim()).trim(), SHOWN);
        if text.is_empty() { format!("it ended with status {} and said nothing", self.status) } else { text }
    }
}
