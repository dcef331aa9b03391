//! What a policy lets through, and what is refused at reading.

use bastion_egress::host::Authority;
use bastion_egress::policy::{Connect, Policy, PolicyError, Source, Upgrade, Verdict};
use bastion_egress::target::Target;

pub(crate) fn profile(text: &str) -> Policy {
    read(text).unwrap()
}

pub(crate) fn read(text: &str) -> Result<Policy, PolicyError> {
    Policy::read(&[Source { shown: "p.yaml".into(), bytes: text.as_bytes() }], None)
}

fn endpoints(lines: &str) -> Policy {
    profile(&format!("id: p\nendpoints:\n{lines}"))
}

pub(crate) fn to(text: &str) -> Authority {
    Authority::connect(text).unwrap()
}

fn ask<'p>(policy: &'p Policy, at: &str, method: &str, target: &str) -> Verdict<'p> {
    policy.request(&to(at), method, &Target::parse(target).unwrap(), false)
}

fn goes(policy: &Policy, at: &str, method: &str, target: &str) -> bool {
    ask(policy, at, method, target).allowed
}

const FORGE: &str = "\
id: forge
endpoints:
  - host: api.forge.example
    port: 443
    protocol: rest
    enforcement: enforce
    rules:
      - allow: {method: GET, path: /user}
      - allow: {method: GET, path: /search/issues, query: {q: {any: [\"*repo:team/app*\"]}}}
      - allow: {method: GET, path: /repos/team/app/**}
      - allow: {method: POST, path: /repos/team/app/issues/*/comments}
    deny_rules:
      - {method: GET, path: /repos/team/app/secrets}
      - {method: GET, path: /repos/**, query: {ref: hidden*}}
binaries: [/usr/bin/curl]
";

#[test]
fn rules_are_judged_by_method_path_and_query() {
    let policy = profile(FORGE);
    let at = "api.forge.example:443";
    for (method, target, allowed) in [
        ("GET", "/user", true),
        ("GET", "/%75ser", true),
        ("GET", "/user/", false),
        ("get", "/user", false),
        ("HEAD", "/user", false),
        ("DELETE", "/repos/team/app/x", false),
        ("GET", "/repos/team/app/pulls/1", true),
        ("GET", "/repos/team/apple", false),
        ("POST", "/repos/team/app/issues/7/comments", true),
        ("POST", "/repos/team/app/issues/7", false),
        ("GET", "/search/issues?q=repo%3Ateam/app+is:pr&page=2", true),
        ("GET", "/search/issues", false),
        ("GET", "/search/issues?Q=repo:team/app", false),
        ("GET", "/search/issues?q=repo:team/other", false),
        ("GET", "/search/issues?q=repo:team/app&q=repo:other/x", false),
        ("GET", "/repos/team/app/secrets", false),
        ("GET", "/repos/team/app/secrets/", false),
        ("GET", "/repos/team/app/SECRETS", false),
        ("GET", "/repos/team/app/%73ecrets", false),
        ("GET", "/repos/team/app/f?ref=main", true),
        ("GET", "/repos/team/app/f?ref=main&ref=hidden1", false),
        ("GET", "/repos/team/app/f?Ref=Hidden", false),
        ("TRACE", "/user", false),
    ] {
        assert_eq!(goes(&policy, at, method, target), allowed, "{method} {target}");
    }
    let verdict = ask(&policy, at, "GET", "/user");
    assert_eq!(verdict.rule, "profile forge: GET /user");
    assert!(policy.warnings().iter().any(|w| w.contains("`binaries` is advisory")), "{:?}", policy.warnings());
}

#[test]
fn access_is_a_set_of_methods_and_trace_and_connect_are_never() {
    for (access, allowed, denied) in [
        ("read-only", vec!["GET", "HEAD", "OPTIONS"], vec!["POST", "PUT", "PATCH", "DELETE", "X"]),
        ("read-write", vec!["GET", "POST", "PUT", "PATCH"], vec!["DELETE", "post", "PROPFIND"]),
        ("full", vec!["GET", "DELETE", "PROPFIND"], vec![]),
    ] {
        for enforcement in ["enforce", "audit"] {
            let policy = endpoints(&format!(
                "  - {{host: a.example, port: 443, protocol: rest, access: {access}, enforcement: {enforcement}}}\n"
            ));
            assert!(allowed.iter().all(|method| goes(&policy, "a.example:443", method, "/x")), "{access}");
            for method in &denied {
                let verdict = ask(&policy, "a.example:443", method, "/x");
                assert_eq!(
                    (verdict.allowed, verdict.audited),
                    (enforcement == "audit", enforcement == "audit"),
                    "{method}"
                );
            }
            assert!(["TRACE", "trace", "CONNECT", "Connect"].iter().all(|m| !goes(&policy, "a.example:443", m, "/x")));
        }
    }
}

#[test]
fn several_endpoints_of_one_host_are_judged_by_path_and_deny_wins() {
    let policy = endpoints(
        "  - {host: a.example, port: 443, protocol: rest, access: read-only}
  - {host: a.example, port: 443, path: /admin/**, protocol: rest, access: full, enforcement: audit}
  - {host: '*.example', port: 443, protocol: rest, access: full}
"
        .replace("'*.example'", "'*.b.example'")
        .as_str(),
    );
    assert!(goes(&policy, "a.example:443", "GET", "/admin/x") && goes(&policy, "a.example:443", "DELETE", "/admin/x"));
    assert!(!goes(&policy, "a.example:443", "DELETE", "/x"));
    let policy = endpoints(
        "  - {host: a.example, port: 443, protocol: rest, access: full}
  - {host: a.example, port: 443, path: /v1/**, protocol: rest, access: full, enforcement: audit, deny_rules: [{path: /v1/keys**}]}
",
    );
    let verdict = ask(&policy, "a.example:443", "GET", "/v1/keys/1");
    assert!(!verdict.allowed && verdict.rule == "profile p: deny * /v1/keys**", "one of the two enforces: {verdict:?}");
    assert!(goes(&policy, "a.example:443", "GET", "/v1/x"));
    let policy = endpoints("  - {host: a.example, port: 443, path: /v1/**, protocol: rest, access: full}\n");
    assert!(!goes(&policy, "a.example:443", "GET", "/v2"));
    assert!(!goes(&policy, "a.example:444", "GET", "/v1/x") && !goes(&policy, "b.example:443", "GET", "/v1/x"));
}

#[test]
fn connect_is_judged_before_any_lookup() {
    let policy = endpoints(
        "  - {host: a.example, ports: [443, 8443], protocol: rest, access: full}
  - {host: '*.t.example', port: 443}
  - {host: in.t.example, port: 443, protocol: rest, access: read-only}
  - {host: 10.0.0.7, port: 443}
  - {host: 8.8.8.8, port: 443}
",
    );
    let denied = |at: &str| matches!(policy.connect(&to(at)), Connect::Denied { .. });
    let tunnel = |at: &str| matches!(policy.connect(&to(at)), Connect::Tunnel(_));
    assert!(matches!(policy.connect(&to("A.example.:8443")), Connect::Inspect));
    assert!(tunnel("x.t.example:443") && tunnel("10.0.0.7:443") && tunnel("8.8.8.8:443"));
    for at in [
        "b.example:443",
        "a.example:80",
        "t.example:443",
        "x.y.t.example:443",
        "xt.example:443",
        "10.0.0.8:443",
        "127.0.0.1:443",
    ] {
        assert!(denied(at), "{at}");
    }
    // A tunnel never opens what an inspected endpoint restricts.
    assert!(matches!(policy.connect(&to("in.t.example:443")), Connect::Inspect));
    assert!(goes(&policy, "in.t.example:443", "GET", "/") && !goes(&policy, "in.t.example:443", "POST", "/"));
    assert!(!goes(&policy, "x.t.example:443", "GET", "/"), "a tunnel admits no request that was inspected");
}

#[test]
fn a_websocket_is_relayed_or_answered_426() {
    let policy = endpoints(
        "  - {host: r.example, port: 443, protocol: rest, rules: [{allow: {method: POST, path: /v1/**}}]}
  - {host: w.example, port: 443, protocol: websocket, access: read-write, deny_rules: [{path: /no}]}
",
    );
    let ask = |at: &str, path: &str| {
        let verdict = policy.request(&to(at), "GET", &Target::parse(path).unwrap(), true);
        (verdict.allowed, verdict.upgrade)
    };
    assert_eq!(ask("r.example:443", "/v1/responses"), (false, Upgrade::Refuse426));
    assert_eq!(ask("w.example:443", "/v1"), (true, Upgrade::Relay));
    assert_eq!(ask("w.example:443", "/no"), (false, Upgrade::None));
    assert_eq!(ask("x.example:443", "/"), (false, Upgrade::None));
}

#[test]
fn plain_http_needs_port_80_or_skip() {
    let policy = endpoints(
        "  - {host: a.example, ports: [80, 443, 8080], protocol: rest, access: read-only}
  - {host: b.example, port: 8080, protocol: rest, access: full, tls: skip}
  - {host: c.example, port: 80}
  - {host: b.example, port: 9090, protocol: rest, access: full, tls: skip}
  - {host: '*.example.org', port: 9090, protocol: rest, access: full, tls: skip}
  - {host: d.example.org, port: 9090, protocol: rest, access: full, deny_rules: [{path: /x}]}
",
    );
    let plain =
        |at: &str, method: &str| policy.plain_request(&to(at), method, &Target::parse("/").unwrap(), false).allowed;
    assert!(plain("a.example:80", "GET") && plain("b.example:8080", "DELETE") && plain("e.example.org:9090", "GET"));
    assert!(!plain("a.example:80", "POST"));
    for at in ["a.example:443", "a.example:8080", "c.example:80", "d.example.org:9090", "z.example:80"] {
        assert!(!plain(at, "GET"), "{at}");
    }
}

#[test]
fn addresses_inside_are_refused_unless_listed_as_such() {
    let policy = endpoints(
        "  - {host: a.example, port: 443}
  - {host: b.example, port: 443, allowed_ips: [10.1.0.0/16, 'fd00:1::/32', 169.254.0.0/16, 127.0.0.0/8]}
  - {host: m.example, port: 443, allowed_ips: [169.254.169.254, 127.0.0.1/32]}
  - {host: localhost, port: 443}
  - {host: '*.x.example', port: 443}
  - {host: '::1', port: 443}
  - {host: 192.0.2.7, port: 443}
",
    );
    for (at, ip, admitted) in [
        ("a.example:443", "8.8.8.8", true),
        ("a.example:443", "2606:4700::1", true),
        ("a.example:443", "10.1.0.1", false),
        ("a.example:443", "127.0.0.1", false),
        ("a.example:443", "169.254.169.254", false),
        ("a.example:443", "fd00:ec2::254", false),
        ("a.example:443", "::ffff:8.8.8.8", false),
        ("a.example:443", "0.0.0.0", false),
        ("b.example:443", "10.1.0.1", true),
        ("b.example:443", "fd00:1::1", true),
        ("b.example:443", "10.2.0.1", false),
        ("b.example:443", "169.254.169.254", false),
        ("b.example:443", "127.0.0.1", false),
        ("b.example:443", "8.8.8.8", false),
        ("m.example:443", "169.254.169.254", true),
        ("m.example:443", "127.0.0.1", true),
        ("m.example:443", "127.0.0.2", false),
        ("localhost:443", "127.0.0.1", true),
        ("localhost:443", "::1", true),
        ("localhost:443", "10.0.0.1", false),
        ("localhost.x.example:443", "127.0.0.1", false),
        ("[::1]:443", "::1", true),
        ("192.0.2.7:443", "192.0.2.7", true),
        ("192.0.2.8:443", "192.0.2.8", false),
        ("z.example:443", "8.8.8.8", false),
    ] {
        assert_eq!(policy.admits_address(&to(at), ip.parse().unwrap()).is_ok(), admitted, "{at} {ip}");
    }
}

#[test]
fn what_cant_be_judged_is_refused_with_its_place() {
    let lines = |line: &str| format!("id: p\nendpoints:\n  - {line}\n");
    for (line, said) in [
        (
            "{host: a.example, port: 443, path: /graphql, protocol: graphql, rules: [{allow: {operation_type: query}}]}",
            "line 3, column 60: the endpoint a.example/graphql: `protocol: graphql` can't be judged",
        ),
        ("{host: a.example, port: 443, protocl: rest}", "no key `protocl`; it has host"),
        ("{host: a.example, port: 443, protocol: rset, access: full}", "`protocol` is `rest`"),
        ("{port: 443}", "needs a `host`"),
        ("{host: a.example}", "needs a `port`"),
        ("{host: a.example, port: 0}", "1 to 65535"),
        ("{host: a.example, port: 65536}", "1 to 65535"),
        ("{host: a.example, port: '443'}", "whole number"),
        ("{host: a.example, port: 443, ports: [444]}", "not both"),
        ("{host: '*', port: 443}", "whole first label"),
        ("{host: '**.a.example', port: 443}", "whole first label"),
        ("{host: 'a.*.example', port: 443}", "whole first label"),
        ("{host: 'a*.b.example', port: 443}", "whole first label"),
        ("{host: '*.com', port: 443}", "at least two labels"),
        ("{host: '*.1.2.3.4', port: 443}", "at least two labels"),
        ("{host: '0x7f.1', port: 443}", "four plain decimal"),
        ("{host: a.example, port: 443, protocol: rest}", "needs `access` or `rules`"),
        ("{host: a.example, port: 443, access: read-only}", "need a `protocol`"),
        ("{host: a.example, port: 443, path: /x}", "need a `protocol`"),
        ("{host: a.example, port: 443, deny_rules: [{path: /x}]}", "need a `protocol`"),
        ("{host: a.example, port: 443, protocol: rest, access: all}", "one of read-only"),
        ("{host: a.example, port: 443, protocol: rest, access: full, enforcement: warn}", "one of enforce"),
        ("{host: a.example, port: 443, protocol: rest, access: full, rules: [{allow: {path: /}}]}", "not both"),
        ("{host: a.example, port: 443, protocol: rest, rules: [{allow: {}}]}", "needs a `method`"),
        ("{host: a.example, port: 443, protocol: rest, rules: [{deny: {path: /}}]}", "no key `deny`"),
        ("{host: a.example, port: 443, protocol: rest, rules: [{allow: {paht: /}}]}", "no key `paht`"),
        ("{host: a.example, port: 443, protocol: rest, rules: [{allow: {operation_type: query}}]}", "yet"),
        ("{host: a.example, port: 443, protocol: rest, rules: [{allow: {path: x}}]}", "starts with `/`"),
        ("{host: a.example, port: 443, protocol: rest, rules: [{allow: {path: /a/../b}}]}", "matched decoded"),
        ("{host: a.example, port: 443, protocol: rest, rules: [{allow: {path: '/a[b]'}}]}", "only `*`"),
        ("{host: a.example, port: 443, protocol: rest, rules: [{allow: {query: {q: {any: []}}}}]}", "at least one"),
        ("{host: a.example, port: 443, protocol: rest, rules: [{allow: {query: {q: {all: [x]}}}}]}", "no key `all`"),
        ("{host: a.example, port: 443, protocol: rest, rules: [{allow: {query: [q]}}]}", "mapping"),
        ("{host: a.example, port: 443, protocol: rest, access: full, allow_encoded_slash: true}", "yet"),
        ("{host: a.example, port: 443, protocol: rest, access: full, request_body_credential_rewrite: true}", "yet"),
        ("{host: a.example, port: 443, protocol: websocket, access: read-only}", "yet"),
        ("{host: a.example, port: 443, protocol: websocket, rules: [{allow: {method: WEBSOCKET_TEXT}}]}", "yet"),
        ("{host: a.example, port: 443, allowed_ips: [10.0.0.1/8]}", "host bits"),
        ("{host: a.example, port: 443, host: b.example}", "twice"),
        ("a.example:443", "must be a mapping"),
    ] {
        let error = read(&lines(line)).unwrap_err().to_string();
        assert!(error.starts_with("p.yaml: line 3, column ") && error.contains(said), "{line}: {error}");
    }
    let off = "{host: a.example, port: 443, protocol: rest, access: full, allow_encoded_slash: false}";
    assert!(read(&lines(off)).is_ok());
}

#[test]
fn the_policy_file_is_openshells() {
    let text = "version: 1
filesystem_policy: {read_only: [/usr]}
process: {run_as_user: sandbox}
network_policies:
  docs:
    name: docs
    endpoints: [{host: docs.example, port: 443, protocol: rest, access: read-only}]
    binaries: [{path: /usr/bin/curl}]
";
    let read = |text: &str| Policy::read(&[], Some(&Source { shown: "policy.yaml".into(), bytes: text.as_bytes() }));
    let policy = read(text).unwrap();
    assert_eq!(ask(&policy, "docs.example:443", "GET", "/").rule, "policy docs: read-only");
    for said in ["`filesystem_policy` has no effect", "`process` has no effect", "advisory"] {
        assert!(policy.warnings().iter().any(|warning| warning.contains(said)), "{:?}", policy.warnings());
    }
    for (bad, said) in [
        ("version: 2", "must be 1"),
        ("netwrok_policies: {}", "no key"),
        ("network_middlewares: {a: {}}", "yet"),
        ("network_policies: []", "mapping"),
        ("network_policies: {a: {endpoint: []}}", "no key `endpoint`"),
        ("[]", "mapping"),
        ("a: &x 1", "anchors"),
    ] {
        let error = read(bad).unwrap_err().to_string();
        assert!(error.starts_with("policy.yaml: line 1") && error.contains(said), "{bad}: {error}");
    }
}

#[test]
fn a_profile_is_attached_once_and_has_one_credential_per_variable() {
    let one = Source { shown: "a".into(), bytes: b"id: p" };
    assert!(matches!(Policy::read(&[one.clone(), one], None), Err(PolicyError::Twice { .. })));
    for (bad, said) in [
        ("{env_vars: [A], auth_style: cookie}", "`auth_style` is"),
        ("{env_vars: [A], auth_style: header}", "needs a `header_name`"),
        ("{env_vars: [A], auth_style: header, header_name: 'a b'}", "not the name of a header"),
        ("{env_vars: [A], auth_style: header, header_name: Host}", "frames the request"),
        ("{env_vars: [A], auth_style: query}", "needs a `query_param`"),
        ("{env_vars: [A, A]}", "of two credentials"),
        ("{env_vars: [A], refresh: {strategy: oauth2_refresh_token, token_url: 'http://a.example/'}}", "https"),
        ("{env_vars: [A], refresh: {strategy: magic}}", "not yet"),
        (
            "{env_vars: [A], refresh: {strategy: oauth2_refresh_token, token_url: 'https://a/', refresh_before_seconds: -1}}",
            "whole number",
        ),
    ] {
        let error = read(&format!("id: p\ncredentials:\n  - {bad}\n")).unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains(said), "{error}");
    }
}

#[test]
fn the_profiles_of_this_repository_are_read() {
    let files = ["anthropic", "github", "openai"].map(|name| {
        let path = format!("{}/../../agents/reviewer/providers/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        (path.clone(), std::fs::read(path).unwrap())
    });
    let sources = files.each_ref().map(|(path, bytes)| Source { shown: path.clone(), bytes });
    let policy = Policy::read(&sources, None).unwrap();
    assert!(goes(&policy, "api.anthropic.com:443", "POST", "/v1/messages"));
    assert!(goes(&policy, "api.github.com:443", "GET", "/repos/o/r/pulls/1/files"));
    assert!(!goes(&policy, "api.github.com:443", "GET", "/repos/o/r/actions/secrets"));
    assert!(policy.carried("reviewer-github", "GITHUB_TOKEN").is_some());
}

#[test]
fn a_deny_rule_is_asked_in_whatever_case_a_server_may_take_its_endpoint() {
    let policy = endpoints(
        "  - {host: a.example, port: 443, path: /admin/**, protocol: rest, access: full, deny_rules: [{path: /admin/keys}]}\n  \
         - {host: a.example, port: 443, protocol: rest, access: read-write}\n",
    );
    for path in ["/admin/keys", "/admin/KEYS", "/ADMIN/keys", "/Admin/Keys/"] {
        assert!(!goes(&policy, "a.example:443", "GET", path), "{path}");
    }
    assert!(goes(&policy, "a.example:443", "GET", "/ADMIN/other"), "the control");
}
