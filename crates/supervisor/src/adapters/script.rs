//! A harness that came with the payload: `runtime/harnesses/<name>/exec.sh PROMPT_FILE`.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Adapter, Task, Tools};
use crate::launch::Launch;

struct Script {
    exec: PathBuf,
    subagent: Option<PathBuf>,
}

/// The adapter.
pub(super) fn adapter(exec: PathBuf, subagent: Option<PathBuf>) -> Box<dyn Adapter> {
    Box::new(Script { exec, subagent })
}

impl Adapter for Script {
    fn launch(&mut self, task: &Task<'_>, _: &mut Tools<'_>) -> io::Result<Launch> {
        Ok(match (task.subagent, &self.subagent) {
            (Some((id, text)), Some(script)) => start(script, OsStr::new(id)).stdin(text),
            _ => start(&self.exec, task.prompt.as_os_str()),
        })
    }
}

/// The script itself, or a shell with it where a copy lost its executable bit.
fn start(script: &Path, argument: &OsStr) -> Launch {
    let executable = script.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0);
    if executable {
        return Launch::new(script, [argument]);
    }
    Launch::new("/bin/sh", [script.as_os_str(), argument])
}
