//! opencode: `opencode run`, the prompt on stdin, the final message in the last text events of its stream.

use std::io;

use super::{Adapter, Help, Task, Tools, allowed, events_backwards, setting};
use crate::launch::Launch;
use crate::payload::Payload;
use crate::tail::Tail;

struct OpenCode {
    payload: Payload,
    help: Option<Help>,
}

/// The adapter.
pub(super) fn adapter(payload: &Payload) -> Box<dyn Adapter> {
    Box::new(OpenCode { payload: payload.clone(), help: None })
}

impl Adapter for OpenCode {
    fn launch(&mut self, task: &Task<'_>, tools: &mut Tools<'_>) -> io::Result<Launch> {
        let program = self.payload.program("opencode");
        if self.help.is_none() {
            self.help = tools.help(&program, &["run", "--help"]);
        }
        let has = |flag: &str| self.help.as_ref().is_some_and(|help| help.has(flag));
        let mut launch = Launch::new(program, ["run", "--format", "json"]).stdin(task.prompt);
        if has("--auto") {
            launch.args.push("--auto".into()); // older versions approve by themselves when nobody can be asked
        }
        if let Some(model) = setting(&self.payload, "opencode", "model") {
            launch = launch.option("--model", model);
        }
        let reasoning = setting(&self.payload, "opencode", "reasoning");
        if let Some(reasoning) = reasoning.filter(|_| allowed(self.help.as_ref(), "--variant")) {
            launch = launch.option("--variant", reasoning);
        }
        Ok(launch)
    }

    fn message(&self, _: &Task<'_>, stdout: &mut Tail) -> Vec<u8> {
        let mut parts = Vec::new();
        for event in events_backwards(stdout.lines()) {
            match event["type"].as_str() {
                Some("text") => parts.extend(event["part"]["text"].as_str().map(str::to_owned)),
                Some("step_finish") if parts.is_empty() => {}
                // What comes before the last step, or before a tool's answer, is not the last word.
                _ if !parts.is_empty() => break,
                Some("tool_use" | "error" | "step_start") => break,
                _ => {}
            }
        }
        parts.reverse();
        parts.join("\n").into_bytes()
    }
}
