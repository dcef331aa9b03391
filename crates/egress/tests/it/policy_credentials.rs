//! Where a secret joins a request, and where it does not.

use base64::Engine;
use bastion_egress::credential::{Credential, Vault};
use bastion_egress::policy::{Policy, Source, Style};
use bastion_egress::target::Target;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use crate::policy::{profile, read, to};

const PROFILES: [&str; 5] = [
    "id: bearer
credentials:
  - name: token
    env_vars: [TOKEN]
    auth_style: bearer
    refresh: {strategy: oauth2_refresh_token, token_url: 'https://auth.example/t', refresh_before_seconds: 60, max_lifetime_seconds: 3600}
  - {name: account, env_vars: [ACCOUNT]}
endpoints: [{host: bearer.example, port: 443, protocol: rest, access: full}]",
    "id: header
credentials: [{env_vars: [KEY], auth_style: header, header_name: X-Api-Key}, {env_vars: [OPTIONAL], auth_style: header, header_name: x-other}]
endpoints: [{host: header.example, port: 443, protocol: rest, access: full}]",
    "id: basic
credentials: [{env_vars: [PASS], auth_style: basic}]
endpoints: [{host: basic.example, port: 443, protocol: rest, access: full}]",
    "id: query
credentials: [{env_vars: [Q], auth_style: query, query_param: key}]
endpoints: [{host: query.example, port: 443, protocol: rest, access: full}]",
    "id: none
endpoints: [{host: none.example, port: 443, protocol: rest, access: full}]",
];

fn policy() -> Policy {
    let sources: Vec<Source<'_>> =
        PROFILES.iter().map(|text| Source { shown: "p".into(), bytes: text.as_bytes() }).collect();
    Policy::read(&sources, None).unwrap()
}

fn credential(profile: &str, env: &str, value: &str) -> Credential {
    let materials = vec![("refresh_token".to_owned(), "r1".to_owned().into())];
    Credential { env: env.into(), profile: profile.into(), value: value.to_owned().into(), materials }
}

fn vault(policy: &Policy, pass: &str) -> Vault {
    let all = vec![
        credential("bearer", "TOKEN", "s3cret-token"),
        credential("bearer", "ACCOUNT", "acct"),
        credential("header", "KEY", "s3cret-key"),
        credential("basic", "PASS", pass),
        credential("query", "Q", "s3cret&q"),
    ];
    Vault::new(policy, all).unwrap()
}

/// The code of the refusal, or headers and target as they go out.
fn swap(
    vault: &Vault,
    policy: &Policy,
    host: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> Result<(HeaderMap, String), &'static str> {
    let at = to(&format!("{host}.example:443"));
    let mut target = Target::parse(target).unwrap();
    let endpoint = policy.request(&at, "GET", &target, false).endpoint.unwrap();
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    vault.swap(policy, endpoint, &at, &mut target, &mut map).map_err(|refused| refused.code)?;
    Ok((map, target.wire().to_owned()))
}

fn basic(pair: &str) -> String {
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
}

const P: &str = "openshell:resolve:env:";

#[test]
fn each_style_is_swapped_at_its_own_endpoint() {
    let policy = policy();
    let vault = vault(&policy, "pw");
    let (headers, _) = swap(&vault, &policy, "bearer", "/", &[("authorization", &format!("bEARER {P}TOKEN"))]).unwrap();
    assert_eq!(headers["authorization"], "Bearer s3cret-token");
    assert!(headers["authorization"].is_sensitive());
    let (headers, _) = swap(&vault, &policy, "header", "/", &[("x-api-key", &format!("{P}KEY"))]).unwrap();
    assert_eq!(headers["x-api-key"], "s3cret-key");
    for (sent, goes) in [
        ("x-access-token:PH", "x-access-token:pw"),
        (":PH", ":pw"),
        ("PH:", "pw:"),
        ("PH", "pw"),
        ("PH:x-oauth-basic", "pw:x-oauth-basic"),
    ] {
        let sent = basic(&sent.replace("PH", &format!("{P}PASS")));
        let (headers, _) = swap(&vault, &policy, "basic", "/", &[("authorization", &sent)]).unwrap();
        assert_eq!(headers["authorization"], basic(goes).as_str());
    }
    let (_, wire) = swap(&vault, &policy, "query", &format!("/a?x=1&key={P}Q"), &[]).unwrap();
    assert_eq!(wire, "/a?x=1&key=s3cret%26q");
    // A request without the header goes without a credential; a profile without one is left alone.
    assert!(swap(&vault, &policy, "bearer", "/", &[("accept", "*/*")]).unwrap().0.get("authorization").is_none());
    assert!(swap(&vault, &policy, "none", "/?access_token=x", &[("authorization", "Bearer own")]).is_ok());
}

#[test]
fn a_pair_as_value_stands_alone() {
    let policy = policy();
    let vault = vault(&policy, "user:pw");
    for (sent, goes) in
        [("PH", Some("user:pw")), ("PH:", Some("user:pw")), ("git:PH", None), ("PH:x-oauth-basic", None)]
    {
        let sent = basic(&sent.replace("PH", &format!("{P}PASS")));
        let went = swap(&vault, &policy, "basic", "/", &[("authorization", &sent)]).ok();
        assert_eq!(
            went.map(|(headers, _)| headers["authorization"].clone()),
            goes.map(|goes| basic(goes).parse().unwrap())
        );
    }
}

#[test]
fn everything_else_is_refused() {
    let policy = policy();
    let vault = vault(&policy, "pw");
    let b64 = |pair: &str| basic(&pair.replace("PH", &format!("{P}PASS")));
    let mismatch = "credential_endpoint_mismatch";
    let ours = "credential_not_placeholder";
    for (host, target, headers, code) in [
        // at another endpoint
        ("header", "/", vec![("x-api-key", format!("{P}TOKEN"))], mismatch),
        ("bearer", "/", vec![("authorization", format!("Bearer {P}KEY"))], mismatch),
        ("none", "/", vec![("authorization", format!("Bearer {P}TOKEN"))], mismatch),
        ("none", "/", vec![("authorization", b64("git:PH"))], mismatch),
        ("none", "/", vec![("x", "openshell%3Aresolve:env:TOKEN".into())], mismatch),
        ("none", "/", vec![("x", format!("{P}NOSUCH"))], mismatch),
        ("header", "/", vec![("x-thing", format!("{P}TOKEN"))], mismatch),
        // in a URL
        ("bearer", "/openshell:resolve:env:TOKEN", vec![], "placeholder_in_url"),
        ("bearer", "/a?t=openshell%3Aresolve%3Aenv%3ATOKEN", vec![], "placeholder_in_url"),
        ("bearer", "/a?t=openshell%253Aresolve%253Aenv", vec![], "placeholder_in_url"),
        ("bearer", "/a?openshell:resolve:env:TOKEN=1", vec![], "placeholder_in_url"),
        ("query", "/a?kee=openshell:resolve:env:Q", vec![], "placeholder_in_url"),
        ("none", "/a?key=openshell:resolve:env:Q", vec![], "placeholder_in_url"),
        // in another header
        ("bearer", "/", vec![("x-debug", format!("{P}TOKEN"))], "placeholder_in_header"),
        ("query", "/", vec![("x-goog", format!("{P}Q"))], "placeholder_in_header"),
        // a key of the agent's own, or ours and something else
        ("bearer", "/", vec![("authorization", "Bearer own".into())], ours),
        ("bearer", "/", vec![("authorization", "Basic b3du".into())], ours),
        ("bearer", "/", vec![("authorization", format!("Token {P}TOKEN"))], ours),
        ("bearer", "/", vec![("authorization", format!("{P}TOKEN"))], ours),
        ("bearer", "/", vec![("authorization", format!("Bearer  {P}TOKEN"))], ours),
        ("bearer", "/", vec![("authorization", format!("Bearer {P}TOKEN, Bearer own"))], ours),
        ("bearer", "/", vec![("authorization", format!("Bearer {P}token"))], ours),
        ("bearer", "/", vec![("authorization", format!("Bearer {P}ACCOUNT"))], ours),
        (
            "bearer",
            "/",
            vec![("authorization", format!("Bearer {P}TOKEN")), ("authorization", "Bearer own".into())],
            ours,
        ),
        ("bearer", "/", vec![("authorization", "Bearer \u{e9}".into())], ours),
        ("bearer", "/", vec![("x-api-key", "own".into())], ours),
        ("bearer", "/?access_token=own", vec![], ours),
        ("header", "/", vec![("x-api-key", "own".into())], ours),
        ("header", "/", vec![("x-api-key", String::new())], ours),
        ("header", "/", vec![("x-api-key", format!("Bearer {P}KEY"))], ours),
        ("header", "/", vec![("x-other", format!("{P}KEY"))], ours),
        ("header", "/", vec![("authorization", "Bearer own".into())], ours),
        ("header", "/", vec![("x-other", format!("{P}OPTIONAL"))], "credential_missing"),
        ("basic", "/", vec![("authorization", b64("own:PH"))], ours),
        ("basic", "/", vec![("authorization", b64("PH:own"))], ours),
        ("basic", "/", vec![("authorization", b64("git:ownPH"))], ours),
        ("basic", "/", vec![("authorization", b64("git:PHx"))], ours),
        ("basic", "/", vec![("authorization", b64("git:own"))], ours),
        ("basic", "/", vec![("authorization", "Basic !!".into())], ours),
        ("basic", "/", vec![("authorization", format!("Bearer {P}PASS"))], ours),
        ("query", "/a?key=own", vec![], ours),
        ("query", "/a?key=openshell:resolve:env:Q&key=own", vec![], ours),
        ("query", "/a?key=openshell:resolve:env:Q&key=openshell:resolve:env:Q", vec![], ours),
        ("query", "/a?key=openshell:resolve:env:TOKEN", vec![], mismatch),
    ] {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(swap(&vault, &policy, host, target, &headers).map(|_| ()), Err(code), "{host} {target} {headers:?}");
    }
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_bytes(b"Bearer \xff").unwrap());
    let at = to("bearer.example:443");
    let mut target = Target::parse("/").unwrap();
    let endpoint = policy.request(&at, "GET", &target, false).endpoint.unwrap();
    assert!(vault.swap(&policy, endpoint, &at, &mut target, &mut headers).is_err());
    assert!(vault.swap(&policy, endpoint, &to("header.example:443"), &mut target, &mut HeaderMap::new()).is_err());
}

#[test]
fn a_vault_refuses_what_does_not_fit_and_never_tells_a_value() {
    let policy = policy();
    for (profile, env, value, said) in [
        ("bearer", "NOSUCH", "s3cret", "no such variable"),
        ("nosuch", "TOKEN", "s3cret", "no such variable"),
        ("bearer", "TOKEN", "s3cret\r\nx: y", "line break"),
        ("bearer", "TOKEN", "s3cret\0", "line break"),
        ("bearer", "TOKEN", "", "empty"),
        ("bearer", "TOKEN", " s3cret", "line break"),
        ("bearer", "TOKEN", "s3crété", "line break"),
    ] {
        let error = Vault::new(&policy, vec![credential(profile, env, value)]).unwrap_err();
        assert!(error.to_string().contains(said) && !format!("{error:?}").contains("s3cr"), "{error:?}");
    }
    let twice = vec![credential("bearer", "TOKEN", "a"), credential("bearer", "TOKEN", "b")];
    assert!(Vault::new(&policy, twice).unwrap_err().to_string().contains("twice"));
    let shown = format!("{:?} {:?}", vault(&policy, "pw"), credential("bearer", "TOKEN", "s3cret"));
    assert!(shown.contains("TOKEN") && !shown.contains("s3cret") && !shown.contains("r1"), "{shown}");
    assert!(!format!("{:?}", vault(&policy, "pw").refreshable()).contains("r1"));
}

#[test]
fn a_refreshed_value_is_the_one_that_goes_out() {
    let policy = policy();
    let vault = vault(&policy, "pw");
    let due = vault.refreshable();
    assert_eq!(due.len(), 1);
    let shape = &due[0].shape;
    assert_eq!(
        (due[0].env.as_str(), shape.refresh_before_seconds, shape.max_lifetime_seconds),
        ("TOKEN", 60, Some(3600))
    );
    assert_eq!(due[0].materials[0].1.as_str(), "r1");
    let at = jiff::Timestamp::from_second(9).unwrap();
    vault.replace("TOKEN", "fresh".to_owned().into(), Some(at)).unwrap();
    vault.replace_material("TOKEN", "refresh_token", "r2".to_owned().into()).unwrap();
    assert!(vault.replace("TOKEN", "a\nb".to_owned().into(), None).is_err());
    assert!(vault.replace("NOSUCH", "a".to_owned().into(), None).is_err());
    let now = vault.refreshable();
    assert_eq!((now[0].materials[0].1.as_str(), now[0].expires), ("r2", Some(at)));
    let (headers, _) = swap(&vault, &policy, "bearer", "/", &[("authorization", &format!("Bearer {P}TOKEN"))]).unwrap();
    assert_eq!(headers["authorization"], "Bearer fresh");
}

#[test]
fn shapes_are_read_and_clear_text_is_warned_of() {
    let policy = policy();
    assert_eq!(policy.carried("header", "KEY").unwrap().style, Some(Style::Header { name: "x-api-key".into() }));
    assert_eq!(policy.carried("bearer", "ACCOUNT").unwrap().style, None);
    assert!(policy.carried("header", "TOKEN").is_none() && policy.warnings().is_empty());
    let clear = "id: p\ncredentials: [{env_vars: [A], auth_style: bearer, colour: red}]\nendpoints: [{host: HOST, port: 80, protocol: rest, access: full}]\n";
    let warned = profile(&clear.replace("HOST", "a.example"));
    assert!(warned.warnings().iter().any(|warning| warning.contains("unencrypted")), "{:?}", warned.warnings());
    assert!(warned.warnings().iter().any(|warning| warning.contains("`colour`")));
    assert!(
        !profile(&clear.replace("HOST", "127.0.0.1")).warnings().iter().any(|warning| warning.contains("unencrypted"))
    );
    assert!(read(&clear.replace("HOST", "")).is_err());
}

#[test]
fn a_policy_rule_at_a_profiles_host_is_no_way_around_its_credential() {
    let profiles = [
        "id: a
credentials: [{env_vars: [A], auth_style: bearer}]
endpoints: [{host: a.example, port: 443, path: /v1/**, protocol: rest, access: read-only}]",
        "id: b
credentials: [{env_vars: [B], auth_style: bearer}]
endpoints: [{host: a.example, port: 443, path: /**, protocol: rest, access: full}]",
    ];
    let rule = "network_policies: {r: {endpoints: [{host: a.example, port: 443, protocol: rest, access: full}]}}";
    let sources = profiles.map(|text| Source { shown: "p".into(), bytes: text.as_bytes() });
    let file = Source { shown: "f".into(), bytes: rule.as_bytes() };
    let policy = Policy::read(&sources, Some(&file)).unwrap();
    let vault = Vault::new(&policy, vec![credential("a", "A", "s-a"), credential("b", "B", "s-b")]).unwrap();
    let sent = |path: &str, value: &str| {
        let headers = [("authorization", value)];
        swap(&vault, &policy, "a", path, &headers)
            .map(|(headers, _)| headers["authorization"].to_str().unwrap().to_owned())
    };
    assert_eq!(sent("/v1/x", &format!("Bearer {P}A")), Ok("Bearer s-a".into()));
    assert_eq!(sent("/v1/x", &format!("Bearer {P}B")), Ok("Bearer s-b".into()));
    assert_eq!(sent("/v2/x", &format!("Bearer {P}B")), Ok("Bearer s-b".into()));
    assert_eq!(sent("/v2/x", &format!("Bearer {P}A")), Err("credential_endpoint_mismatch"));
    let alone = Policy::read(&sources[..1], Some(&file)).unwrap();
    let vault = Vault::new(&alone, vec![credential("a", "A", "s-a")]).unwrap();
    let own = swap(&vault, &alone, "a", "/v2/x", &[("authorization", "Bearer own")]);
    assert_eq!(own.map(|_| ()), Err("credential_not_placeholder"));
}
