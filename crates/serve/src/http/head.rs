//! A request's head: what it asks for and where its body ends.

use super::{MAX_BODY_BYTES, MAX_HEAD_BYTES, MAX_HEADERS, Violation};

/// The methods that a route has; the rest are told apart from them, not from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Other,
}

/// How the body's end is found (RFC 9112 §6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// This many bytes; 0 is no body.
    Length(u64),
    /// Chunks (RFC 9112 §7.1).
    Chunked,
}

/// One request, but for its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) method: Method,
    /// The target up to its `?`, as it was sent.
    pub(crate) path: String,
    /// The target behind its `?`, as it was sent.
    pub(crate) query: String,
    pub(crate) framing: Framing,
    /// Whether the body is JSON as far as the head says: `application/json`, not compressed.
    pub(crate) is_json: bool,
    pub(crate) keep_alive: bool,
    pub(crate) expects_continue: bool,
}

impl Head {
    /// Reads a head from the start of `buffer`: it and its length in bytes, or `None` where its end is not there yet.
    pub(crate) fn parse(buffer: &[u8]) -> Result<Option<(Self, usize)>, Violation> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut fields);
        let length = match request.parse(buffer) {
            Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD_BYTES => length,
            Ok(httparse::Status::Partial) if buffer.len() < MAX_HEAD_BYTES => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Violation::HeadTooLarge),
            Err(_) => return Err(Violation::Syntax),
        };
        if has_bare_line_feed(&buffer[..length]) {
            return Err(Violation::BareLineFeed);
        }
        let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
            return Err(Violation::Syntax);
        };
        Self::read(method, target, minor, request.headers).map(|head| Some((head, length)))
    }

    /// Whether the head alone says that the body is larger than any may be.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self.framing, Framing::Length(length) if length > MAX_BODY_BYTES as u64)
    }

    fn read(method: &str, target: &str, minor: u8, fields: &[httparse::Header<'_>]) -> Result<Self, Violation> {
        if !target.starts_with('/') || target.contains('#') {
            return Err(Violation::Target);
        }
        let mut length = None;
        let mut chunked = false;
        let mut hosts = 0;
        let mut content_type = None;
        let mut encoded = false;
        let mut keep_alive = minor == 1;
        let mut expects_continue = false;
        for field in fields {
            let name = field.name;
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            if is("content-length") {
                if length.replace(content_length(field.value)?).is_some() {
                    return Err(Violation::ContentLengthTwice);
                }
            } else if is("transfer-encoding") {
                if chunked || minor == 0 || !field.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Violation::TransferEncoding);
                }
                chunked = true;
            } else if is("host") {
                hosts += 1;
            } else if is("content-type") {
                // two of them are none that could be obeyed
                content_type = Some(content_type.is_none() && names_json(field.value));
            } else if is("content-encoding") {
                encoded |= !field.value.eq_ignore_ascii_case(b"identity");
            } else if is("connection") {
                for option in field.value.split(|byte| *byte == b',') {
                    let option = option.trim_ascii();
                    if option.eq_ignore_ascii_case(b"close") {
                        keep_alive = false;
                    } else if option.eq_ignore_ascii_case(b"keep-alive") && minor == 0 {
                        keep_alive = true;
                    }
                }
            } else if is("expect") {
                if !field.value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(Violation::Expect);
                }
                expects_continue = minor == 1;
            }
        }
        if hosts > 1 || (hosts == 0 && minor == 1) {
            return Err(Violation::Host);
        }
        let framing = match (length, chunked) {
            (Some(_), true) => return Err(Violation::ContentLengthBesideTransferEncoding),
            (None, true) => Framing::Chunked,
            (length, false) => Framing::Length(length.unwrap_or(0)),
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ok(Self {
            method: match method {
                "GET" => Method::Get,
                "POST" => Method::Post,
                _ => Method::Other,
            },
            path: path.to_owned(),
            query: query.to_owned(),
            framing,
            is_json: content_type == Some(true) && !encoded,
            keep_alive,
            expects_continue,
        })
    }
}

/// Digits alone: no sign, no list, no space (RFC 9112 §6.2 lets a recipient repair `5, 5`; we don't).
fn content_length(value: &[u8]) -> Result<u64, Violation> {
    if value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return Err(Violation::ContentLength);
    }
    Ok(value.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// `application/json`, with parameters or without (RFC 8259 §11: it has none, and a charset has no effect).
fn names_json(value: &[u8]) -> bool {
    let media = value.split(|byte| *byte == b';').next().unwrap_or_default();
    media.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

fn has_bare_line_feed(head: &[u8]) -> bool {
    let mut last = 0;
    head.iter().any(|&byte| std::mem::replace(&mut last, byte) != b'\r' && byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<(Head, usize)>, Violation> {
        Head::parse(text.as_bytes())
    }

    fn with(fields: &str) -> Result<Head, Violation> {
        parse(&format!("POST /search HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).map(|parsed| parsed.unwrap().0)
    }

    #[test]
    fn a_plain_request_is_read() {
        let text = "GET /catalog?prefix=a%20b HTTP/1.1\r\nhost: x\r\n\r\nrest";
        let (head, length) = parse(text).unwrap().unwrap();
        assert_eq!((head.method, head.path.as_str(), head.query.as_str()), (Method::Get, "/catalog", "prefix=a%20b"));
        assert_eq!(head.framing, Framing::Length(0));
        assert!(head.keep_alive && !head.is_json && !head.expects_continue);
        assert_eq!(&text[length..], "rest");
    }

    #[test]
    fn every_prefix_of_a_request_is_unfinished() {
        let text = "POST /search HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), Ok(None), "{:?}", &text[..end]);
        }
        assert!(parse(text).unwrap().is_some());
    }

    #[test]
    fn what_has_two_readings_is_refused() {
        let rows = [
            ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", Violation::ContentLengthBesideTransferEncoding),
            ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", Violation::ContentLengthBesideTransferEncoding),
            ("Transfer-Encoding : chunked\r\n", Violation::Syntax),
            ("Transfer-Encoding\t: chunked\r\n", Violation::Syntax),
            ("Transfer-Encoding: gzip, chunked\r\n", Violation::TransferEncoding),
            ("Transfer-Encoding: xchunked\r\n", Violation::TransferEncoding),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", Violation::TransferEncoding),
            ("Transfer-Encoding:\r\n chunked\r\n", Violation::Syntax),
            ("Content-Length: 5\r\nContent-Length: 6\r\n", Violation::ContentLengthTwice),
            ("Content-Length: 5\r\nContent-Length: 5\r\n", Violation::ContentLengthTwice),
            ("Content-Length: 5, 5\r\n", Violation::ContentLength),
            ("Content-Length: +5\r\n", Violation::ContentLength),
            ("Content-Length: -5\r\n", Violation::ContentLength),
            ("Content-Length: 0x5\r\n", Violation::ContentLength),
            ("Content-Length:\r\n", Violation::ContentLength),
            ("Content-Length: 99999999999999999999\r\n", Violation::ContentLength),
            ("Content-Length : 5\r\n", Violation::Syntax),
            ("Host: b\r\n", Violation::Host),
            ("X: a\n", Violation::BareLineFeed),
            ("X: a\r", Violation::Syntax),
            ("X: a\0b\r\n", Violation::Syntax),
            ("Expect: 200-ok\r\n", Violation::Expect),
            (" X: folded\r\n", Violation::Syntax),
        ];
        for (fields, violation) in rows {
            assert_eq!(with(fields), Err(violation), "{fields:?}");
        }
    }

    #[test]
    fn a_target_that_is_no_path_and_another_protocol_are_refused() {
        for (line, violation) in [
            ("GET https://x/health HTTP/1.1", Violation::Target),
            ("CONNECT x:443 HTTP/1.1", Violation::Target),
            ("OPTIONS * HTTP/1.1", Violation::Target),
            ("GET /health#a HTTP/1.1", Violation::Target),
            ("GET /health HTTP/2.0", Violation::Syntax),
            ("GET  /health HTTP/1.1", Violation::Syntax),
            ("GET /health", Violation::Syntax),
            ("PRI * HTTP/2.0", Violation::Syntax),
        ] {
            assert_eq!(parse(&format!("{line}\r\nHost: a\r\n\r\n")), Err(violation), "{line}");
        }
        assert_eq!(parse("GET / HTTP/1.1\r\n\r\n"), Err(Violation::Host));
    }

    #[test]
    fn a_head_is_bounded_in_bytes_and_fields() {
        let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES));
        assert_eq!(parse(&long), Err(Violation::HeadTooLarge));
        assert_eq!(parse(&long[..MAX_HEAD_BYTES]), Err(Violation::HeadTooLarge));
        let many = "X: 1\r\n".repeat(MAX_HEADERS);
        assert_eq!(with(&many), Err(Violation::HeadTooLarge));
    }

    #[test]
    fn persistence_and_media_type_are_read_as_the_rfc_says() {
        assert!(!with("Connection: foo, Close\r\n").unwrap().keep_alive);
        let old = |fields: &str| parse(&format!("GET / HTTP/1.0\r\n{fields}\r\n")).unwrap().unwrap().0;
        assert!(!old("").keep_alive);
        assert!(old("Connection: keep-alive\r\n").keep_alive);
        assert!(with("Content-Type: Application/JSON; charset=utf-8\r\n").unwrap().is_json);
        assert!(with("Content-Encoding: identity\r\nContent-Type: application/json\r\n").unwrap().is_json);
        for other in [
            "",
            "Content-Type: text/plain\r\n",
            "Content-Type: application/jsonx\r\n",
            "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
            "Content-Type: application/json\r\nContent-Type: application/json\r\n",
            "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
        ] {
            assert!(!with(other).unwrap().is_json, "{other:?}");
        }
        assert!(with("Expect: 100-Continue\r\n").unwrap().expects_continue);
    }
}
