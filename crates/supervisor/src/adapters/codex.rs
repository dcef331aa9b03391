//! Codex: `codex exec`, the prompt on stdin, the final message in a file of its own.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::credential::lasting;
use super::{Adapter, Help, Task, Tools, allowed, setting};
use crate::clock::{rfc3339, wall_millis};
use crate::files;
use crate::launch::Launch;
use crate::payload::Payload;
use crate::tail::Tail;

/// A final message is not larger, in bytes.
const LARGEST_MESSAGE: u64 = 1 << 20;
const LAST_MESSAGE: &str = "--output-last-message";

struct Codex {
    payload: Payload,
    help: Option<Help>,
}

/// The adapter.
pub(super) fn adapter(payload: &Payload) -> Box<dyn Adapter> {
    Box::new(Codex { payload: payload.clone(), help: None })
}

impl Adapter for Codex {
    fn launch(&mut self, task: &Task<'_>, tools: &mut Tools<'_>) -> io::Result<Launch> {
        let program = self.payload.program("codex");
        if self.help.is_none() {
            self.help = tools.help(&program, &["exec", "--help"]);
        }
        let has = |flag: &str| allowed(self.help.as_ref(), flag);
        let home = tools.home("CODEX_HOME", ".codex");
        files::create_private_dir(&home)?;

        let mut launch = Launch::new(program, ["exec"]).stdin(task.prompt).env("CODEX_HOME", &home);
        for flag in ["--skip-git-repo-check", "--ephemeral"].into_iter().filter(|flag| has(flag)) {
            launch.args.push(flag.into());
        }
        if has("--sandbox") {
            // The sandbox around us is the boundary; one inside it would only break tools.
            launch = launch.option("--sandbox", "danger-full-access");
        }
        if has(LAST_MESSAGE) {
            launch = launch.option(LAST_MESSAGE, last_message(task));
            if has("--json") {
                launch.args.push("--json".into()); // errors as events, apart from what tools print
            }
        }
        if let Some(model) = setting(&self.payload, "codex", "model") {
            launch = launch.option("--model", model);
        }
        if let Some(reasoning) = setting(&self.payload, "codex", "reasoning") {
            launch = launch.option("-c", format!("model_reasoning_effort={}", json!(reasoning)));
        }
        launch.args.push("-".into());
        authenticate(launch, &home, tools)
    }

    fn message(&self, task: &Task<'_>, stdout: &mut Tail) -> Vec<u8> {
        if !allowed(self.help.as_ref(), LAST_MESSAGE) {
            return stdout.lines().to_vec();
        }
        files::read_end(&last_message(task), LARGEST_MESSAGE).map(|(text, _)| text).unwrap_or_default()
    }
}

fn last_message(task: &Task<'_>) -> PathBuf {
    task.scratch.join("last-message")
}

/// Writes `auth.json` where tokens are given, hands over the key where one is.
fn authenticate(launch: Launch, home: &Path, tools: &Tools<'_>) -> io::Result<Launch> {
    if let Some(token) = tools.text("CODEX_AUTH_ACCESS_TOKEN") {
        let account = lasting(&tools.text("CODEX_AUTH_ACCOUNT_ID").unwrap_or_default());
        let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": account}});
        let auth = json!({
            "OPENAI_API_KEY": null,
            "tokens": {
                "id_token": unsigned_token(&claims.to_string()),
                "access_token": lasting(&token),
                "refresh_token": "", // refreshing is the gateway's work, never the sandbox's
                "account_id": account,
            },
            "last_refresh": rfc3339(wall_millis()),
        });
        files::replace(&home.join("auth.json"), auth.to_string().as_bytes())?;
        return Ok(launch);
    }
    Ok(match tools.text("OPENAI_API_KEY") {
        // `codex exec` takes a key from this variable alone.
        Some(key) if tools.text("CODEX_API_KEY").is_none() => launch.env("CODEX_API_KEY", lasting(&key)),
        _ => launch,
    })
}

/// A token in the form that Codex insists on parsing, with nothing in it to trust: header, claims, a made-up
/// signature, each base64url.
fn unsigned_token(claims: &str) -> String {
    [r#"{"alg":"none","typ":"JWT"}"#, claims, "unsigned"].map(|part| base64url(part.as_bytes())).join(".")
}

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..=chunk.len() {
            text.push(DIGITS[(word >> (18 - 6 * digit) & 63) as usize].into());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_is_that_of_rfc_4648() {
        for (bytes, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64url(bytes.as_bytes()), text);
        }
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
    }
}
