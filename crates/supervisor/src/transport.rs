//! Did the harness lose its model server, as far as its own words tell?
//!
//! Only the harness's stderr and its error events are looked at, and only for words that model clients use: a tool
//! that says "Broken pipe" says nothing about the model.

use serde_json::Value;

/// Words, lower case, that clients of model servers use for a lost or failing connection.
const PHRASES: [&str; 9] = [
    "stream disconnected before completion", // Codex
    "error sending request for url",         // reqwest, in Codex
    "exceeded retry limit",                  // Codex
    "unexpected status 50",                  // Codex: 500 to 504
    "stream closed before response.completed",
    "api error: connection error", // Claude Code
    "unable to connect to api",    // Claude Code
    "overloaded_error",            // Anthropic's API
    "cannot connect to api",       // opencode
];

/// Whether stderr, or an error event among the lines of stdout, shows a transport failure.
pub fn shown(stdout: &[u8], stderr: &[u8]) -> bool {
    speaks(&String::from_utf8_lossy(stderr)) || stdout.split(|byte| *byte == b'\n').any(error_event)
}

/// Whether a line is a JSON event that itself says it is an error, and speaks of the transport.
fn error_event(line: &[u8]) -> bool {
    if !line.starts_with(b"{") {
        return false;
    }
    let Ok(Value::Object(event)) = serde_json::from_slice(line) else { return false };
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    let failed = event.get("is_error") == Some(&Value::Bool(true));
    (matches!(kind, "error" | "turn.failed") || kind == "result" && failed) && speaks(&Value::Object(event).to_string())
}

fn speaks(text: &str) -> bool {
    let text = text.to_lowercase();
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tools_words_are_not_the_harnesss() {
        let words = "stream disconnected before completion: oh";
        for (stdout, stderr, expected) in [
            ("", words, true),
            ("", "Stream Disconnected Before Completion", true),
            ("", "head: write error: Broken pipe", false),
            (words, "", false),
            (r#"{"type":"error","message":"stream disconnected before completion"}"#, "", true),
            (r#"{"type":"turn.failed","error":{"message":"stream disconnected before completion"}}"#, "", true),
            (
                r#"{"type":"item.completed","item":{"aggregated_output":"stream disconnected before completion"}}"#,
                "",
                false,
            ),
            (r#"{"type":"result","is_error":false,"result":"API Error: Connection error."}"#, "", false),
            (r#"{"type":"result","is_error":true,"result":"API Error: Connection error."}"#, "", true),
        ] {
            assert_eq!(shown(stdout.as_bytes(), stderr.as_bytes()), expected, "{stdout} {stderr}");
        }
    }
}
