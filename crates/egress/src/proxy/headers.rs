//! Which header fields are for the next hop only (RFC 9110 section 7.6.1), and does a request ask for a WebSocket?

use http::{HeaderMap, HeaderName, HeaderValue, header};

const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
];

/// Removes what is for this hop, and what `Connection` says is. The framing is this library's own on either side.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> =
        tokens(headers, &header::CONNECTION).filter_map(|token| token.as_bytes().try_into().ok()).collect();
    for name in named {
        // these say how long a body is or whom it is for; nobody may talk us out of them
        if name != header::CONTENT_LENGTH && name != header::TRANSFER_ENCODING && name != header::HOST {
            headers.remove(name);
        }
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    headers.remove(header::TRANSFER_ENCODING);
    // 100 was or will be said by us
    headers.remove(header::EXPECT);
}

/// Fields by which frameworks take a request for one of another method or path than its line says.
const OVERRIDES: [&str; 5] =
    ["x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"];

/// Whether a field asks the host to take the request for another one: then it is not the one that was judged.
pub(crate) fn overrides_method(headers: &HeaderMap) -> bool {
    // many servers take `_` and `-` for the same
    headers.keys().any(|name| OVERRIDES.contains(&name.as_str().replace('_', "-").as_str()))
}

/// Whether the request asks for a WebSocket (RFC 6455 section 4.1).
pub(crate) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    tokens(headers, &header::UPGRADE).any(|token| token.eq_ignore_ascii_case("websocket"))
        && tokens(headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"))
}

/// Asks for one, of the next hop.
pub(crate) fn ask_for_websocket(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

fn tokens<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_this_hop_does_not_go_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Private, content-length, host"),
            ("connection", "authorization"),
            ("x-private", "1"),
            ("authorization", "Bearer x"),
            ("content-length", "3"),
            ("host", "a.example"),
            ("te", "trailers"),
            ("proxy-authorization", "Basic x"),
            ("transfer-encoding", "chunked"),
            ("expect", "100-continue"),
            ("upgrade", "h2c"),
            ("accept", "*/*"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        strip(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "content-length", "host"]);
    }

    #[test]
    fn a_websocket_needs_both_fields() {
        let mut headers = HeaderMap::new();
        headers.insert("upgrade", HeaderValue::from_static("h2c, WebSocket"));
        assert!(!asks_for_websocket(&headers));
        headers.insert("connection", HeaderValue::from_static("keep-alive, Upgrade"));
        assert!(asks_for_websocket(&headers));
        strip(&mut headers);
        assert!(!asks_for_websocket(&headers));
        ask_for_websocket(&mut headers);
        assert!(asks_for_websocket(&headers));
    }
}
