//! Refreshes: ahead of the end, one at a time, and nothing is lost by one that fails.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bastion_egress::{Credential, Options};
use bastion_host::clock::ManualClock;
use zeroize::Zeroizing;

use crate::world::{Setup, Upstream, Web, World, endpoint, field, read_request, until};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
const BEARER: &str = "authorization: Bearer openshell:resolve:env:MODEL_TOKEN\r\n";

/// A token endpoint: the n-th request gets the n-th answer, then the last one again.
struct Tokens {
    upstream: Upstream,
    /// The forms that came in, and who was handed what, in the order of time.
    events: Arc<Mutex<Vec<String>>>,
}

fn tokens(web: &Web, answers: Vec<(u16, String)>) -> Tokens {
    let events: Arc<Mutex<Vec<String>>> = Arc::default();
    let keep = Arc::clone(&events);
    let upstream = Upstream::tls(web, "auth.example", move |stream| {
        let Some(asked) = read_request(stream) else { return };
        assert!(asked.head.starts_with("POST /oauth/token HTTP/1.1\r\n"), "{}", asked.head);
        assert_eq!(field(&asked.head, "content-type"), Some("application/x-www-form-urlencoded"));
        let n = {
            let mut events = keep.lock().unwrap();
            events.push(String::from_utf8(asked.body).unwrap());
            events.iter().filter(|event| event.starts_with("grant_type")).count() - 1
        };
        let (status, body) = answers[n.min(answers.len() - 1)].clone();
        if status == 0 {
            return;
        }
        // of a slow one the status is a thousand more
        if status >= 1000 {
            std::thread::sleep(Duration::from_millis(700));
        }
        let status = status % 1000;
        let answer = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.flush());
    });
    Tokens { upstream, events }
}

impl Tokens {
    fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }

    fn forms(&self) -> usize {
        self.events().iter().filter(|event| event.starts_with("grant_type")).count()
    }
}

fn granted(access: &str, refresh: Option<&str>) -> (u16, String) {
    let refresh = refresh.map(|token| format!(r#","refresh_token":"{token}""#)).unwrap_or_default();
    (200, format!(r#"{{"access_token":"{access}","token_type":"Bearer","expires_in":3600{refresh}}}"#))
}

fn start(web: &Web, model: &Upstream, tokens: &Tokens) -> (World, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at("2026-12-01T00:00:00Z".parse().unwrap()));
    let mut setup = Setup::new(web, &[]);
    setup.profiles.push((
        "model.yaml",
        format!(
            "id: model\ncredentials:\n  - name: token\n    env_vars: [MODEL_TOKEN]\n    auth_style: bearer\n    refresh:\n      \
             strategy: oauth2_refresh_token\n      token_url: https://auth.example:{}/oauth/token\n      \
             refresh_before_seconds: 300\n      max_lifetime_seconds: 7200\nendpoints:\n  - {}\n",
            tokens.upstream.port,
            endpoint("model.example", model.port, "protocol: rest, access: full, enforcement: enforce")
        ),
    ));
    let material = |name: &str, value: &str| (name.to_owned(), Zeroizing::new(value.to_owned()));
    setup.credentials.push(Credential {
        env: "MODEL_TOKEN".to_owned(),
        profile: "model".to_owned(),
        value: Zeroizing::new("access-0".to_owned()),
        materials: vec![material("client_id", "app & co"), material("refresh_token", "refresh-0")],
    });
    let (events, time) = (Arc::clone(&tokens.events), Arc::clone(&clock));
    setup.change = Some(Box::new(move |options: &mut Options| {
        options.clock = time;
        let names = crate::world::Names::default();
        for name in ["auth.example", "model.example"] {
            names.addresses.lock().unwrap().insert(name.to_owned(), vec![crate::world::LOOPBACK]);
        }
        options.resolver = Arc::new(names);
        options.rotated = Some(Box::new(move |env, materials| {
            let token = materials.iter().find(|(name, _)| name == "refresh_token").unwrap().1.as_str();
            assert_eq!((env, materials.len()), ("MODEL_TOKEN", 2));
            events.lock().unwrap().push(format!("rotated to {token}"));
        }));
    }));
    (setup.start(), clock)
}

/// The token that a request carries now.
fn carried(world: &World, model: &Upstream) -> String {
    assert_eq!(world.get("model.example", model.port, "/", BEARER).status, 200);
    let seen = model.seen();
    field(seen.last().unwrap(), "authorization").unwrap().to_owned()
}

fn becomes(world: &World, model: &Upstream, token: &str) {
    until(|| (carried(world, model) == format!("Bearer {token}")).then_some(()), || format!("never {token}"));
}

#[test]
fn a_token_is_replaced_ahead_of_its_end_and_its_successor_kept_first() {
    let web = Web::new();
    let model = Upstream::answering(&web, "model.example", OK);
    let tokens = tokens(
        &web,
        vec![granted("access-1", Some("refresh-1")), granted("access-2", None), granted("access-3", Some("refresh-3"))],
    );
    let (world, clock) = start(&web, &model, &tokens);
    becomes(&world, &model, "access-1");
    let form = |token: &str| format!("grant_type=refresh_token&refresh_token={token}&client_id=app%20%26%20co");
    assert_eq!(tokens.events(), [form("refresh-0"), "rotated to refresh-1".to_owned()]);

    // an hour, less the five minutes: not a second sooner
    clock.advance(Duration::from_secs(3299));
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(tokens.forms(), 1);
    clock.advance(Duration::from_secs(1));
    becomes(&world, &model, "access-2");
    assert_eq!(tokens.events()[2..], [form("refresh-1")]);
    clock.advance(Duration::from_secs(3300));
    becomes(&world, &model, "access-3");
    assert_eq!(tokens.events()[3..], [form("refresh-1"), "rotated to refresh-3".to_owned()]);

    let log = world.log_text();
    assert_eq!(world.log().iter().filter(|row| row["reason"] == "refresh" && row["status"] == 200).count(), 3);
    for secret in ["access-", "refresh-0", "refresh-1", "refresh-3", "app"] {
        assert!(!log.contains(secret), "{secret}");
    }
}

#[test]
fn a_token_that_was_asked_for_is_kept_though_the_proxy_stops_meanwhile() {
    let web = Web::new();
    let model = Upstream::answering(&web, "model.example", OK);
    let tokens = tokens(&web, vec![(1200, granted("access-1", Some("refresh-1")).1)]);
    let (mut world, _clock) = start(&web, &model, &tokens);
    until(|| (tokens.forms() == 1).then_some(()), || "never asked".to_owned());
    drop(world.proxy.take());
    assert_eq!(tokens.events().last().unwrap(), "rotated to refresh-1");
}

#[test]
fn a_failure_replaces_nothing_and_is_tried_again() {
    let web = Web::new();
    let model = Upstream::answering(&web, "model.example", OK);
    let large = format!(r#"{{"access_token":"large","x":"{}"}}"#, "x".repeat(70_000));
    let tokens = tokens(
        &web,
        vec![
            (0, String::new()),
            (500, r#"{"access_token":"no"}"#.to_owned()),
            (200, "<html>".to_owned()),
            (200, large),
            (200, r#"{"access_token":"line\nbreak","expires_in":3600}"#.to_owned()),
            granted("access-1", None),
        ],
    );
    let (world, clock) = start(&web, &model, &tokens);
    for attempt in 1..=5 {
        until(|| (tokens.forms() == attempt).then_some(()), || format!("{} of {attempt}", tokens.forms()));
        // its line is complete: the attempt is over
        world.logged(|_| {
            let done = |row: &&serde_json::Value| row["reason"] == "refresh" && !row["bytes_up"].is_null();
            world.log().iter().filter(done).count() == attempt
        });
        assert_eq!(carried(&world, &model), "Bearer access-0", "after {attempt}");
        // the end of the wait is set after the line is complete
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(tokens.forms(), attempt, "not again at once");
        clock.advance(Duration::from_secs(300));
    }
    becomes(&world, &model, "access-1");
    assert!(tokens.events().iter().all(|event| event.contains("refresh_token=refresh-0")));
    let faults: Vec<_> = world.log().iter().filter_map(|row| row["fault"].as_str().map(str::to_owned)).collect();
    assert_eq!(faults, ["refresh_cut_off", "refresh_answer", "refresh_answer", "refresh_answer"]);
}

#[test]
fn a_host_that_answers_401_spends_no_token() {
    let web = Web::new();
    let model = Upstream::answering(&web, "model.example", "HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n");
    let tokens = tokens(&web, vec![granted("access-1", None)]);
    let (world, _clock) = start(&web, &model, &tokens);
    until(|| (tokens.forms() == 1).then_some(()), || "no first refresh".to_owned());
    for _ in 0..5 {
        assert_eq!(world.get("model.example", model.port, "/", BEARER).status, 401);
    }
    assert_eq!(tokens.forms(), 1);
}
