//! Any command of the manifest's: the prompt on stdin, the result on stdout or in its exit status.

use std::io;

use serde_json::Value;

use super::{Adapter, Task, Tools, Unusable};
use crate::launch::Launch;
use crate::payload::Payload;

struct Command {
    argv: Vec<String>,
}

/// The adapter.
pub(super) fn adapter(payload: &Payload) -> Box<dyn Adapter> {
    let words = payload.harness_settings("command").remove("argv");
    Box::new(Command { argv: words.and_then(words_of).unwrap_or_default() })
}

/// A list of nothing but words.
fn words_of(value: Value) -> Option<Vec<String>> {
    serde_json::from_value(value).ok()
}

impl Adapter for Command {
    fn check(&self) -> Result<(), Unusable> {
        let named = self.argv.first().is_some_and(|program| !program.is_empty());
        if named { Ok(()) } else { Err(Unusable::NoArgv) }
    }

    fn launch(&mut self, task: &Task<'_>, _: &mut Tools<'_>) -> io::Result<Launch> {
        let (program, args) = self.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Launch::new(program, args).stdin(task.prompt))
    }

    fn exit_is_result(&self) -> bool {
        true
    }
}
