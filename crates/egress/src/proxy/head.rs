//! A connection's first request head: read with a bound and a time limit, and told apart.
//!
//! A tunnel's CONNECT is answered from here, without a server's state behind it. What has two readings (RFC 9112
//! section 6.1: two lengths, a length beside chunks) is refused here already.

use std::time::Duration;

use http::StatusCode;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answer::Denial;

const MOST_FIELDS: usize = 100;
const STEP_BYTES: usize = 4 << 10;

/// What a client asks of a proxy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A tunnel to this target; these bytes came after the head.
    Connect { target: String, early: Vec<u8> },
    /// A request in absolute-form; all bytes so far.
    Absolute { bytes: Vec<u8> },
}

/// Why there is nothing to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAsk {
    /// Nothing was asked, or the connection was lost.
    Gone,
    Denied(Denial),
}

/// Reads the first head of `stream`, of `most` bytes at the most, within `limit`.
pub(crate) async fn read(stream: &mut TcpStream, most: usize, limit: Duration) -> Result<Ask, NoAsk> {
    let mut bytes = Vec::new();
    let reading = async {
        loop {
            bytes.reserve(STEP_BYTES);
            match stream.read_buf(&mut bytes).await {
                Ok(0) | Err(_) => return Err(NoAsk::Gone),
                Ok(_) => {}
            }
            if let Some(length) = judge(&bytes, most)? {
                return Ok(length);
            }
        }
    };
    let read = timeout(limit, reading).await;
    match read {
        Ok(Ok((None, _))) => Ok(Ask::Absolute { bytes }),
        Ok(Ok((Some(target), length))) => Ok(Ask::Connect { target, early: bytes.split_off(length) }),
        Ok(Err(why)) => Err(why),
        Err(_) if bytes.is_empty() => Err(NoAsk::Gone),
        Err(_) => Err(NoAsk::Denied(Denial::new(
            StatusCode::REQUEST_TIMEOUT,
            "request_timeout",
            "the request's head did not come in time",
        ))),
    }
}

/// The target of a CONNECT and the head's length, once it is whole.
fn judge(bytes: &[u8], most: usize) -> Result<Option<(Option<String>, usize)>, NoAsk> {
    const TOO_LARGE: NoAsk = NoAsk::Denied(Denial::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "head_too_large",
        "the request's head is too large",
    ));
    const MALFORMED: NoAsk = NoAsk::Denied(Denial::malformed("bad_request", "this is no request to an HTTP/1.1 proxy"));

    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() >= most => return Err(TOO_LARGE),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(TOO_LARGE),
        Err(_) => return Err(MALFORMED),
    };
    if length > most {
        return Err(TOO_LARGE);
    }
    let count = |name: &str| request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name)).count();
    let (lengths, chunked) = (count("content-length"), count("transfer-encoding"));
    if lengths > 1 || chunked > 1 || (lengths == 1 && chunked == 1) || count("host") > 1 {
        return Err(MALFORMED);
    }
    match (request.method, request.path) {
        (Some("CONNECT"), Some(target)) => Ok(Some((Some(target.to_owned()), length))),
        (Some(_), Some(target)) if target.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://")) => {
            Ok(Some((None, length)))
        }
        _ => Err(NoAsk::Denied(Denial::malformed(
            "not_for_a_proxy",
            "only CONNECT and requests to http:// in absolute-form",
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(bytes: &[u8]) -> u16 {
        match judge(bytes, 1000) {
            Err(NoAsk::Denied(denial)) => denial.status.as_u16(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_forms_are_told_apart() {
        let connect = b"CONNECT a.example:443 HTTP/1.1\r\nhost: x\r\n\r\nmore";
        assert_eq!(judge(connect, 1000), Ok(Some((Some("a.example:443".to_owned()), connect.len() - 4))));
        assert_eq!(judge(&connect[..40], 1000), Ok(None));
        let absolute = b"GET HTTP://a.example/ HTTP/1.1\r\n\r\n";
        assert_eq!(judge(absolute, 1000), Ok(Some((None, absolute.len()))));
    }

    #[test]
    fn everything_else_is_refused() {
        for bytes in [
            "GET / HTTP/1.1\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\n\r\n",
            "GET https://a.example/ HTTP/1.1\r\n\r\n",
            "GET ftp://a.example/ HTTP/1.1\r\n\r\n",
            "connect a.example:443 HTTP/1.1\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "GET http://a.example/ HTTP/0.9\r\n\r\n",
            "POST http://a.example/ HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n",
            "POST http://a.example/ HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST http://a.example/ HTTP/1.1\r\ntransfer-encoding : chunked\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
            "\u{16}\u{3}\u{1}\0\0",
        ] {
            assert_eq!(status(bytes.as_bytes()), 400, "{bytes:?}");
        }
        let long = format!("GET http://a.example/ HTTP/1.1\r\nx: {}", "a".repeat(1000));
        assert_eq!(status(long.as_bytes()), 431);
        let many = format!("GET http://a.example/ HTTP/1.1\r\n{}\r\n", "x: 1\r\n".repeat(101));
        assert_eq!(status(many.as_bytes()), 431);
    }
}
