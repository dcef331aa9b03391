//! The client of embedding servers, against a server that behaves in every way servers do.

use std::sync::Arc;
use std::time::Duration;

use bastion_host::clock::{Clock, ManualClock};
use bastion_retrieval::embed::{EmbedApi, EmbedError, Embedder, RemoteEmbedder, RemoteSettings, Role};

use crate::server::{Reply, Request, Server};

fn settings(url: &str, api: EmbedApi) -> RemoteSettings {
    RemoteSettings {
        url: url.to_owned(),
        api,
        model: "tiny".to_owned(),
        key: Some("secret".to_owned()),
        timeout: Duration::from_secs(20),
    }
}

/// A clock that does not really wait, and can still be looked at.
#[derive(Clone)]
struct Quick(Arc<ManualClock>);

impl Quick {
    fn new() -> Self {
        Self(Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap())))
    }
}

impl Clock for Quick {
    fn now(&self) -> jiff::Timestamp {
        self.0.now()
    }

    fn nap(&self, duration: Duration) {
        self.0.nap(duration);
    }
}

fn connect(settings: RemoteSettings) -> Result<RemoteEmbedder, EmbedError> {
    RemoteEmbedder::connect(settings, Box::new(Quick::new()))
}

/// A vector that tells which text it is of.
fn vector(text: &str) -> String {
    format!("[{}, 1, 0.5]", text.len())
}

fn answer(api: EmbedApi, request: &Request) -> Reply {
    let texts = request.texts();
    let body = match api {
        EmbedApi::OpenAi => {
            // Backwards: the index counts, not the place.
            let data: Vec<_> = texts
                .iter()
                .enumerate()
                .rev()
                .map(|(at, text)| format!(r#"{{"object":"embedding","index":{at},"embedding":{}}}"#, vector(text)))
                .collect();
            format!(r#"{{"object":"list","data":[{}],"model":"tiny","usage":{{"total_tokens":1}}}}"#, data.join(","))
        }
        EmbedApi::Tei => format!("[{}]", texts.iter().map(|text| vector(text)).collect::<Vec<_>>().join(",")),
        EmbedApi::Ollama => format!(
            r#"{{"model":"tiny","embeddings":[{}]}}"#,
            texts.iter().map(|text| vector(text)).collect::<Vec<_>>().join(",")
        ),
    };
    Reply::Answer(200, body)
}

#[test]
fn each_api_is_spoken() {
    for (api, path) in
        [(EmbedApi::OpenAi, "/v1/embeddings"), (EmbedApi::Tei, "/embed"), (EmbedApi::Ollama, "/api/embed")]
    {
        let server = Server::start(move |_, request| answer(api, request));
        let embedder = connect(settings(&server.url, api)).unwrap();
        assert_eq!((embedder.tag().name.as_str(), embedder.tag().dims), ("tiny", 3));
        assert_eq!(format!("http://{}", embedder.host()), server.url);
        let vectors = embedder.embed(&["a", "bcd", "ef"], Role::Passage).unwrap();
        assert_eq!(vectors, [[1.0, 1.0, 0.5], [3.0, 1.0, 0.5], [2.0, 1.0, 0.5]].map(Vec::from));
        let last = server.seen().pop().unwrap();
        assert_eq!(last.path, path);
        assert_eq!(last.header("authorization"), Some("Bearer secret"));
        if api != EmbedApi::Tei {
            assert_eq!(last.body["model"], "tiny");
        }
    }
}

#[test]
fn many_texts_go_in_batches_and_come_back_in_order() {
    let server = Server::start(|_, request| answer(EmbedApi::OpenAi, request));
    let embedder = connect(settings(&server.url, EmbedApi::OpenAi)).unwrap();
    let texts: Vec<String> = (0..100).map(|len| "x".repeat(len)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = embedder.embed(&texts, Role::Passage).unwrap();
    assert!(vectors.iter().zip(0_u8..).all(|(vector, len)| vector[0] == f32::from(len)));
    assert!(server.seen().iter().all(|request| request.texts().len() <= 32));
    assert!(embedder.embed(&[], Role::Passage).unwrap().is_empty());
    let long = "y".repeat(300_000);
    assert_eq!(embedder.embed(&[&long, &long], Role::Passage).unwrap().len(), 2);
    assert_eq!(server.seen().last().unwrap().texts().len(), 1, "long texts go alone");
}

#[test]
fn a_busy_server_is_asked_again_and_not_for_ever() {
    for status in [500, 503, 429] {
        let server = Server::start(move |number, request| {
            if number < 2 { Reply::Answer(status, "busy".to_owned()) } else { answer(EmbedApi::Tei, request) }
        });
        let clock = Quick::new();
        let embedder = RemoteEmbedder::connect(settings(&server.url, EmbedApi::Tei), Box::new(clock.clone())).unwrap();
        assert_eq!(embedder.tag().dims, 3);
        assert_eq!(clock.0.naps(), [500, 1_000].map(Duration::from_millis));
    }
    let server = Server::start(|_, _| Reply::Answer(500, "broken\nfor good".to_owned()));
    let error = connect(settings(&server.url, EmbedApi::Tei)).unwrap_err();
    assert!(matches!(&error, EmbedError::Refused { status: 500, .. }), "{error}");
    assert!(error.to_string().contains("broken for good"));
    assert_eq!(server.seen().len(), 4);
}

#[test]
fn a_refusal_is_final() {
    for status in [400, 401, 404, 422] {
        let server = Server::start(move |_, _| Reply::Answer(status, String::new()));
        assert!(
            matches!(connect(settings(&server.url, EmbedApi::OpenAi)), Err(EmbedError::Refused { status: found, .. }) if found == status)
        );
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn silence_and_a_cut_answer_end_in_an_error() {
    let server = Server::start(|_, _| Reply::Silence);
    let quick = RemoteSettings { timeout: Duration::from_millis(150), ..settings(&server.url, EmbedApi::Tei) };
    assert!(matches!(connect(quick), Err(EmbedError::Unreachable { .. })));
    assert_eq!(server.seen().len(), 4);
    let server = Server::start(|number, request| if number == 0 { Reply::Cut } else { answer(EmbedApi::Tei, request) });
    assert_eq!(connect(settings(&server.url, EmbedApi::Tei)).unwrap().tag().dims, 3);
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    assert!(matches!(connect(settings(&closed, EmbedApi::Tei)), Err(EmbedError::Unreachable { .. })));
}

#[test]
fn nonsense_is_an_error_and_not_asked_for_again() {
    for nonsense in [
        "",
        "{}",
        "[]",
        "[[]]",
        "[[1,2],[3,4]]",
        r#"[["a"]]"#,
        "<html>",
        "[[1e999]]",
        "[[null]]",
        "[[NaN]]",
        r#"{"error":"no such model"}"#,
    ] {
        let server = Server::start(move |_, _| Reply::Answer(200, nonsense.to_owned()));
        let error = connect(settings(&server.url, EmbedApi::Tei)).unwrap_err();
        assert!(matches!(error, EmbedError::Nonsense { .. }), "{nonsense}: {error}");
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn another_size_than_before_is_an_error() {
    let server = Server::start(|number, request| {
        if number == 0 { answer(EmbedApi::Tei, request) } else { Reply::Answer(200, "[[1,2]]".to_owned()) }
    });
    let embedder = connect(settings(&server.url, EmbedApi::Tei)).unwrap();
    let error = embedder.embed(&["a"], Role::Query).unwrap_err();
    assert!(matches!(error, EmbedError::Dims { expected: 3, found: 2, .. }), "{error}");
}

#[test]
fn a_redirect_is_not_followed() {
    let other = Server::start(|_, request| answer(EmbedApi::Tei, request));
    let to = format!("{}/embed", other.url);
    let server = Server::start(move |_, _| Reply::Redirect(to.clone()));
    assert!(connect(settings(&server.url, EmbedApi::Tei)).is_err());
    assert!(other.seen().is_empty(), "text goes to the host that was named and to no other");
}

#[test]
fn errors_never_show_the_key_or_the_text() {
    let server = Server::start(|_, _| Reply::Answer(400, "no".to_owned()));
    let error = connect(settings(&server.url, EmbedApi::OpenAi)).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"));
}
