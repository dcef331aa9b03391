//! A small HTTP server on this machine that answers as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A request as it came in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: serde_json::Value,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// How many texts were asked for.
    pub(crate) fn texts(&self) -> Vec<String> {
        let list = self
            .body
            .get("input")
            .or(self.body.get("inputs"))
            .and_then(|list| list.as_array())
            .cloned()
            .unwrap_or_default();
        list.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// What the server does with a request.
pub(crate) enum Reply {
    Answer(u16, String),
    /// Never answers.
    Silence,
    /// Closes the connection in the middle of the answer.
    Cut,
    Redirect(String),
}

pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Request>>>,
    stop: Arc<std::sync::atomic::AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// `reply` gets the number of the request, from 0, and the request.
    pub(crate) fn start(reply: impl Fn(usize, &Request) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, stop) = (Arc::<Mutex<Vec<Request>>>::default(), Arc::<std::sync::atomic::AtomicBool>::default());
        let (seen_too, stop_too) = (Arc::clone(&seen), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                if stop_too.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                let mut stream = stream.unwrap();
                let Some(request) = read(&mut stream) else { continue };
                let number = {
                    let mut seen = seen_too.lock().unwrap();
                    seen.push(request.clone());
                    seen.len() - 1
                };
                let answer = match reply(number, &request) {
                    Reply::Answer(status, body) => format!(
                        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                        body.len()
                    ),
                    Reply::Cut => "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n[[1".to_owned(),
                    Reply::Redirect(to) => {
                        format!("HTTP/1.1 307 X\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                    }
                    Reply::Silence => {
                        silent.push(stream);
                        continue;
                    }
                };
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { url, seen, stop, thread: Some(thread) }
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
        let _ = self.thread.take().unwrap().join();
    }
}

fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { path, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}
