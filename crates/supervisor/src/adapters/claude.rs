//! Claude Code: `claude -p`, the prompt on stdin, the final message in the last `result` event of its stream.

use std::io;

use super::{Adapter, Help, Task, Tools, allowed, events_backwards, setting};
use crate::launch::Launch;
use crate::payload::Payload;
use crate::tail::Tail;

struct Claude {
    payload: Payload,
    help: Option<Help>,
}

/// The adapter.
pub(super) fn adapter(payload: &Payload) -> Box<dyn Adapter> {
    Box::new(Claude { payload: payload.clone(), help: None })
}

impl Adapter for Claude {
    fn launch(&mut self, task: &Task<'_>, tools: &mut Tools<'_>) -> io::Result<Launch> {
        let program = self.payload.program("claude");
        if self.help.is_none() {
            self.help = tools.help(&program, &["--help"]);
        }
        let args = ["-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"];
        let mut launch = Launch::new(program, args).stdin(task.prompt);
        if rustix::process::geteuid().is_root() {
            // It refuses to skip permissions as root unless it is told that this is a sandbox, which it is.
            launch = launch.env("IS_SANDBOX", "1");
        }
        if let Some(model) = setting(&self.payload, "claude", "model") {
            launch = launch.option("--model", model);
        }
        let reasoning = setting(&self.payload, "claude", "reasoning");
        if let Some(reasoning) = reasoning.filter(|_| allowed(self.help.as_ref(), "--effort")) {
            launch = launch.option("--effort", reasoning);
        }
        Ok(launch)
    }

    fn message(&self, _: &Task<'_>, stdout: &mut Tail) -> Vec<u8> {
        let result = events_backwards(stdout.lines()).find(|event| event["type"] == "result");
        result.and_then(|event| event["result"].as_str().map(|text| text.as_bytes().to_vec())).unwrap_or_default()
    }
}
