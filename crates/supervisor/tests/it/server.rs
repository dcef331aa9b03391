//! A scripted model server on loopback: OpenAI's Responses and chat completions, Anthropic's messages, each as a
//! stream of events. It asks for one tool call where it has a command to run, then says its last words.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What a request said.
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) authorization: String,
    pub(crate) body: String,
}

/// What the server does.
#[derive(Default)]
pub(crate) struct Script {
    /// Run by the harness's shell tool, once a conversation.
    pub(crate) command: Option<String>,
    /// The last words, one for each conversation; the last one again and again.
    pub(crate) last: Vec<String>,
    /// Words for the conversation whose prompt has this text; no tool is called in it.
    pub(crate) special: Option<(String, String)>,
    /// Break off instead of saying last words, and never answer again.
    pub(crate) dies: bool,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    script: Script,
    requests: Mutex<Vec<Request>>,
    spoken: Mutex<usize>,
    dead: Mutex<bool>,
}

enum Say {
    Call(String),
    Text(String),
    Break,
}

impl Server {
    pub(crate) fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, spoken, dead) = (Mutex::default(), Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { script, requests, spoken, dead });
        let shares = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shares.clone();
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Self { port, shared }
    }

    pub(crate) fn requests<T>(&self, look: impl FnOnce(&[Request]) -> T) -> T {
        look(&self.shared.requests.lock().unwrap())
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        if *self.dead.lock().unwrap() {
            return None;
        }
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        let (mut length, mut chunked, mut authorization, mut upgrade) = (0, false, String::new(), false);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().ok()?,
                "transfer-encoding" => chunked = value.contains("chunked"),
                "authorization" | "x-api-key" => authorization = value.trim().to_owned(),
                "upgrade" => upgrade = true,
                _ => {}
            }
        }
        let body = String::from_utf8_lossy(&body(&mut reader, length, chunked)?).into_owned();
        let request = serde_json::from_str(&body).unwrap_or_default();
        self.requests.lock().unwrap().push(Request { path: path.clone(), authorization, body: body.clone() });
        if upgrade {
            return write(&mut stream, "426 Upgrade Required", "application/json", "{}");
        }
        let path = path.split('?').next()?;
        let events: fn(&Value, &Say) -> String = match path.rsplit('/').next()? {
            _ if method != "POST" => return write(&mut stream, "200 OK", "application/json", &plain(path)),
            "responses" => responses,
            "completions" => completions,
            "messages" => messages,
            _ => return write(&mut stream, "200 OK", "application/json", &plain(path)),
        };
        let say = self.next(&request, &body);
        if matches!(say, Say::Break) {
            *self.dead.lock().unwrap() = true;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\r\nevent: response.created\n";
            return stream.write_all(head.as_bytes()).ok();
        }
        write(&mut stream, "200 OK", "text/event-stream", &events(&request, &say))
    }

    fn next(&self, request: &Value, body: &str) -> Say {
        if tool(request).is_none() {
            return Say::Text("a title".into());
        }
        if let Some((_, words)) = self.script.special.as_ref().filter(|(mark, _)| body.contains(mark)) {
            return Say::Text(words.clone());
        }
        let answered =
            ["function_call_output", "\"tool_result\"", "\"role\":\"tool\""].iter().any(|mark| body.contains(mark));
        if let Some(command) = self.script.command.as_ref().filter(|_| !answered) {
            return Say::Call(command.clone());
        }
        if self.script.dies {
            return Say::Break;
        }
        let mut spoken = self.spoken.lock().unwrap();
        let words = self.script.last.get(*spoken).or(self.script.last.last()).cloned().unwrap_or_default();
        *spoken += 1;
        Say::Text(words)
    }
}

fn body(reader: &mut impl BufRead, length: usize, chunked: bool) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = if chunked {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            usize::from_str_radix(line.trim(), 16).ok()?
        } else {
            length
        };
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..]).ok()?;
        if !chunked || size == 0 {
            return Some(body);
        }
        reader.read_line(&mut String::new()).ok()?;
    }
}

fn write(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> Option<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all((head + body).as_bytes()).ok()
}

/// What is not about the model.
fn plain(path: &str) -> String {
    if path.ends_with("/models") {
        return json!({"object": "list", "models": [], "data": [{"id": "mock-model", "object": "model"}]}).to_string();
    }
    if path.ends_with("/accounts/check") {
        return json!({"accounts": [{"id": "acct", "account_user_id": "u", "structure": "personal", "plan_type": "plus",
            "is_deactivated": false, "is_fedramp_compliant_workspace": false, "name": null, "profile_picture_url": null,
            "can_access_with_session": true, "workspace_backend_origin": "https://chatgpt.com",
            "account_routing_override": "NO_CONSTRAINT"}], "account_ordering": ["acct"], "default_account_id": "acct"})
        .to_string();
    }
    "{}".into()
}

/// The shell tool that is offered: its name and whether its command is a list, a `cmd` or a `command`.
fn tool(request: &Value) -> Option<(String, &'static str)> {
    let tools = request["tools"].as_array()?;
    let flat = tools.iter().flat_map(|tool| tool["tools"].as_array().cloned().unwrap_or_else(|| vec![tool.clone()]));
    let names: Vec<String> =
        flat.filter_map(|tool| Some(tool["name"].as_str().or(tool["function"]["name"].as_str())?.to_owned())).collect();
    let known = [
        ("exec_command", "cmd"),
        ("shell_command", "command"),
        ("shell", "list"),
        ("Bash", "command"),
        ("bash", "command"),
    ];
    known
        .into_iter()
        .find(|(name, _)| names.iter().any(|offered| offered == name))
        .map(|(name, form)| (name.into(), form))
}

fn arguments(request: &Value, command: &str) -> (String, Value) {
    let (name, form) = tool(request).unwrap();
    let arguments = match form {
        "cmd" => json!({"cmd": command}),
        "list" => json!({"command": ["sh", "-c", command]}),
        _ => json!({"command": command, "description": "a test"}),
    };
    (name, arguments)
}

fn sse(events: &[(&str, Value)]) -> String {
    events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect()
}

fn responses(request: &Value, say: &Say) -> String {
    let item = match say {
        Say::Call(command) => {
            let (name, arguments) = arguments(request, command);
            json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "status": "completed",
                "arguments": arguments.to_string()})
        }
        Say::Text(text) => json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}),
        Say::Break => unreachable!(),
    };
    let usage = json!({"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2});
    let response = |status: &str, output: Value| {
        json!({"id": "resp_1", "object": "response", "created_at": 1,
        "model": "mock-model", "status": status, "output": output, "usage": usage})
    };
    sse(&[
        ("response.created", json!({"type": "response.created", "response": response("in_progress", json!([]))})),
        ("response.output_item.added", json!({"type": "response.output_item.added", "output_index": 0, "item": item})),
        ("response.output_item.done", json!({"type": "response.output_item.done", "output_index": 0, "item": item})),
        ("response.completed", json!({"type": "response.completed", "response": response("completed", json!([item]))})),
    ])
}

fn completions(request: &Value, say: &Say) -> String {
    let (delta, finish) = match say {
        Say::Call(command) => {
            let (name, arguments) = arguments(request, command);
            let call = json!({"index": 0, "id": "call_1", "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}});
            (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
        }
        Say::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Say::Break => unreachable!(),
    };
    let chunk = |delta: Value, finish: Option<&str>| {
        json!({"id": "chat_1", "object": "chat.completion.chunk", "created": 1,
        "model": "mock-model", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
    };
    format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", chunk(delta, None), chunk(json!({}), Some(finish)))
}

fn messages(request: &Value, say: &Say) -> String {
    let (block, delta, stop) = match say {
        Say::Call(command) => {
            let (name, arguments) = arguments(request, command);
            let delta = json!({"type": "input_json_delta", "partial_json": arguments.to_string()});
            (json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}), delta, "tool_use")
        }
        Say::Text(text) => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}), "end_turn")
        }
        Say::Break => unreachable!(),
    };
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "mock-model", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    let stopped = json!({"stop_reason": stop, "stop_sequence": null});
    sse(&[
        ("message_start", json!({"type": "message_start", "message": message})),
        ("content_block_start", json!({"type": "content_block_start", "index": 0, "content_block": block})),
        ("content_block_delta", json!({"type": "content_block_delta", "index": 0, "delta": delta})),
        ("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
        ("message_delta", json!({"type": "message_delta", "delta": stopped, "usage": {"output_tokens": 1}})),
        ("message_stop", json!({"type": "message_stop"})),
    ])
}
