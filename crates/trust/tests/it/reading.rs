//! What manifest.md §1 refuses, each with line and column; what it accepts, with its defaults.

use bastion_trust::manifest::{Cadence, Limits, Op, Ops, Stage, parse, payload};

const TOP: &str = "v: 1\nid: a\nowner: {host: h}\nroots: [x]\n";

#[track_caller]
fn refused(text: &str, line: usize, column: usize, words: &str) {
    let error = parse(text.as_bytes()).expect_err(text);
    assert!(error.what.contains(words), "{text}\n{error}");
    assert_eq!((error.line, error.column), (line, column), "{text}\n{error}");
}

#[test]
fn the_least_manifest_has_the_defaults() {
    let parsed = parse(TOP.as_bytes()).unwrap();
    let manifest = parsed.manifest();
    assert_eq!(manifest.stages, Stage::DEFAULT);
    assert_eq!(manifest.sweep, Cadence::Hourly);
    assert_eq!(manifest.sweep.period().unwrap().as_secs(), 3600);
    assert_eq!(manifest.ops, Ops::ALL);
    assert!(manifest.grants.is_empty() && manifest.include.is_empty() && manifest.exclude.is_empty());
    assert_eq!(
        manifest.limits,
        Limits { max_file_bytes: 268_435_456, max_doc_chars: 10_000_000, extract_seconds: 30, archive_depth: 0 }
    );
    assert_eq!((manifest.serial, manifest.signature.as_ref()), (None, None));
    // and none of them is in what is signed
    assert_eq!(parsed.payload(), br#"{"id":"a","owner":{"host":"h"},"roots":["x"],"v":1}"#);
    assert_eq!(parsed.digest().len(), 64);
}

#[test]
fn the_payload_is_canonical_and_without_the_signature() {
    let a = "v: 1\nid: a\nowner: {host: h}\nroots: ['\u{e9}\\', \"\\u20ac\\\"\\x7f\"]\nserial: 5\nsignature: {alg: x, cert: y, value: z}\n";
    let b =
        "# c\r\nserial: 0o5\r\nroots:\r\n- é\\\r\n- \"€\\\"\u{7f}\"\r\nowner:\r\n  host: h\r\nid: \"a\"\r\nv: 0x1\r\n";
    assert!(parse(a.as_bytes()).is_err(), "a control character is no path");
    let (a, b) = (a.replace("\\x7f", ""), b.replace('\u{7f}', ""));
    let text = "{\"id\":\"a\",\"owner\":{\"host\":\"h\"},\"roots\":[\"é\\\\\",\"€\\\"\"],\"serial\":5,\"v\":1}";
    assert_eq!(String::from_utf8(payload(a.as_bytes()).unwrap()).unwrap(), text);
    assert_eq!(payload(b.as_bytes()).unwrap(), text.as_bytes());
}

#[test]
fn keys_are_known_and_complete() {
    refused("v: 1\nid: a\nowner: {host: h}\n", 1, 1, "no `roots`");
    refused("v: 1\nowner: {host: h}\nroots: [x]\n", 1, 1, "no `id`");
    refused("v: 1\nid: a\nroots: [x]\n", 1, 1, "no `owner`");
    refused("id: a\nowner: {host: h}\nroots: [x]\n", 1, 1, "no `v`");
    refused("- v: 1\n", 1, 1, "must be a mapping");
    refused("just text\n", 1, 1, "must be a mapping");
    refused(&TOP.replace("v: 1", "v: 2"), 1, 4, "must be 1");
    refused(&TOP.replace("v: 1", "v: '1'"), 1, 4, "must be 1");
    refused(&format!("{TOP}sweeep: daily\n"), 5, 1, "did you mean `sweep`");
    refused(&format!("{TOP}banana: 1\n"), 5, 1, "known are");
    refused(&format!("{TOP}? \"x\\ny\"\n: 1\n"), 5, 3, "unknown key `x\\ny`");
    refused(&TOP.replace("{host: h}", "{host: h, name: x}"), 3, 18, "unknown key `name`");
    refused(&TOP.replace("{host: h}", "{}"), 3, 8, "no `host`");
    refused(&TOP.replace("[x]", "[{path: x, pth: y}]"), 4, 19, "did you mean `path`");
    refused(&format!("{TOP}grants: [{{host: b, ops: [], until: 2030-01-01, note: x}}]\n"), 5, 48, "unknown key `note`");
    refused(&format!("{TOP}grants: [{{host: b, ops: []}}]\n"), 5, 10, "no `until`");
    refused(&format!("{TOP}limits: {{max_bytes: 1}}\n"), 5, 10, "unknown key `max_bytes`");
    refused(&format!("{TOP}signature: {{alg: x, cert: y}}\n"), 5, 12, "no `value`");
    refused(&format!("{TOP}signature: {{alg: x, cert: y, value: z, by: q}}\n"), 5, 40, "unknown key `by`");
    refused(&format!("{TOP}signature: {{alg: x, cert: '', value: z}}\n"), 5, 27, "empty");
    refused(&format!("{TOP}signature:\n"), 5, 10, "must be a mapping");
}

#[test]
fn duplicates_have_their_place() {
    refused(&format!("{TOP}id: b\n"), 5, 1, "`id` is there twice");
    refused(&TOP.replace("{host: h}", "{host: h, host: i}"), 3, 18, "twice");
    refused(
        &format!("{TOP}grants: [{{host: b, ops: [], until: 2030-01-01}}, {{host: b, ops: [], until: 2031-01-01}}]\n"),
        5,
        56,
        "two grants",
    );
    refused(&format!("{TOP}ops: [search, search]\n"), 5, 15, "twice");
    refused(&format!("{TOP}stages: [walk, walk]\n"), 5, 16, "twice");
    refused(&TOP.replace("[x]", "[x, {path: x}]"), 4, 19, "twice");
}

#[test]
fn names_and_values_are_in_range() {
    for (text, line, column, words) in [
        (TOP.replace("id: a", "id: A"), 2, 5, "`id` must be"),
        (TOP.replace("id: a", "id: ../x"), 2, 5, "`id` must be"),
        (TOP.replace("id: a", "id: 5"), 2, 5, "must be a string"),
        (TOP.replace("host: h", "host: H"), 3, 15, "lower-case"),
        (TOP.replace("host: h", &format!("host: {}", "a".repeat(65))), 3, 15, "longer than 64"),
        (TOP.replace("host: h", "host: a_b"), 3, 15, "no host name"),
        (TOP.replace("[x]", "[]"), 4, 8, "`roots` is empty"),
        (TOP.replace("[x]", "x"), 4, 8, "must be a list"),
        (TOP.replace("[x]", "['']"), 4, 9, "empty"),
        (TOP.replace("[x]", "[~/docs]"), 4, 9, "not expanded"),
        (TOP.replace("[x]", "[{path: x, other_mounts: 1}]"), 4, 33, "true or false"),
        (format!("{TOP}ops: [write]\n"), 5, 7, "`write` is none of search, read_range"),
        (format!("{TOP}ops: search\n"), 5, 6, "must be a list"),
        (format!("{TOP}stages: [walk, fly]\n"), 5, 16, "`fly` is none of"),
        (format!("{TOP}stages: []\n"), 5, 9, "empty"),
        (format!("{TOP}sweep: weekly\n"), 5, 8, "none of 15m, hourly, daily, manual"),
        (format!("{TOP}serial: 0\n"), 5, 9, "at least 1"),
        (format!("{TOP}serial: -1\n"), 5, 9, "at least 1"),
        (format!("{TOP}serial: 1.0\n"), 5, 9, "floating"),
        (format!("{TOP}serial: 9007199254740992\n"), 5, 9, "larger"),
        (format!("{TOP}serial:\n"), 5, 7, "must be a whole number"),
        (format!("{TOP}limits: {{extract_seconds: 0}}\n"), 5, 27, "at least 1"),
        (format!("{TOP}limits: {{archive_depth: 17}}\n"), 5, 25, "at most 16"),
        (format!("{TOP}include: [\"[\"]\n"), 5, 11, "`include`"),
        (format!("{TOP}include: []\n"), 5, 10, "leave it out"),
        (format!("{TOP}exclude: ['']\n"), 5, 11, "matches nothing"),
        (format!("{TOP}exclude: ['#x']\n"), 5, 11, "matches nothing"),
        (format!("{TOP}exclude: ['/']\n"), 5, 11, "matches nothing"),
        (format!("{TOP}exclude: ['../x']\n"), 5, 11, "below the root"),
        (format!("{TOP}exclude: [\"a\\nb\"]\n"), 5, 11, "control"),
        (format!("{TOP}exclude: x\n"), 5, 10, "must be a list"),
    ] {
        refused(&text, line, column, words);
    }
}

#[test]
fn until_is_a_day() {
    for bad in [
        "2030-02-30",
        "2030-1-1",
        "30-01-01",
        "'2030-01-01T00:00:00Z'",
        "2030-13-01",
        "tomorrow",
        "'+002030-01-01'",
        "20300101x",
        "''",
    ] {
        refused(&format!("{TOP}grants:\n- until: {bad}\n  host: b\n  ops: [search]\n"), 6, 10, "`until`");
    }
    let parsed = parse(format!("{TOP}grants: [{{host: b, ops: [search], until: 2028-02-29}}]\n").as_bytes()).unwrap();
    let grant = parsed.manifest().grant("b").unwrap();
    assert!(grant.ops.contains(Op::Search) && !grant.ops.contains(Op::ReadRange));
    assert!(grant.holds_at("2028-02-29T23:59:59.999Z".parse().unwrap()));
    assert!(!grant.holds_at("2028-03-01T00:00:00Z".parse().unwrap()));
}

#[test]
fn no_stage_reads_what_nothing_wrote() {
    let stages = |list: &str| parse(format!("{TOP}stages: [{list}]\n").as_bytes());
    for good in [
        "walk",
        "walk, extract",
        "walk, extract, sanitize, chunk, embed, catalog, seal",
        "walk, extract, sterilize, catalog",
        "walk, extract, sanitize, catalog, chunk, seal",
        "walk, extract, sterilize, chunk, embed",
    ] {
        assert!(stages(good).is_ok(), "{good}");
    }
    for (bad, words) in [
        ("extract", "`walk`"),
        ("extract, walk", "`walk`"),
        ("walk, sanitize", "`extract`"),
        ("walk, extract, chunk, sanitize", "`sanitize`"),
        ("walk, extract, sanitize, embed", "`chunk`"),
        ("walk, extract, catalog", "`sanitize`"),
        ("walk, extract, sanitize, chunk, seal, catalog", "`catalog`"),
        ("walk, extract, sanitize, sterilize", "in the place of"),
    ] {
        let error = stages(bad).expect_err(bad);
        assert!(error.what.contains(words) && error.line == 5, "{bad}: {error}");
    }
}

#[test]
fn bytes_that_are_no_manifest() {
    let error = parse(b"v: 1\nid: \xe9\n").unwrap_err();
    assert_eq!((error.line, error.column, error.what.as_str()), (2, 5, "not UTF-8"));
    assert!(
        parse(b"").is_err() && parse(b"\0").is_err() && parse(b"\xff\xfe\x00v").is_err() && parse(b"# only\n").is_err()
    );
    let padded = |n: usize| format!("{TOP}#{}\n", "x".repeat(n - TOP.len() - 2));
    assert!(parse(padded(1 << 20).as_bytes()).is_ok());
    assert!(parse(padded((1 << 20) + 1).as_bytes()).unwrap_err().what.contains("larger"));
    let deep = format!("{TOP}limits: {}1{}\n", "{x: ".repeat(20), "}".repeat(20));
    assert!(parse(deep.as_bytes()).unwrap_err().what.contains("nested deeper"));
    for bomb in ["&a [*a]", "*a", "&a x", "!!binary aGk=", "!x y"] {
        assert!(parse(format!("{TOP}include: [{bomb}]\n").as_bytes()).is_err(), "{bomb}");
    }
    let many = format!("{TOP}exclude: [{}]\n", "ab, ".repeat(1_001));
    assert!(parse(many.as_bytes()).unwrap_err().what.contains("more than 1000"));
    assert!(parse(format!("{TOP}---\n{TOP}").as_bytes()).unwrap_err().what.contains("second document"));
    assert!(parse(format!("---\n{TOP}...\n").as_bytes()).is_ok());
    assert!(parse(format!("{{{}}}", "v: 1, id: a, owner: {host: h}, roots: [x]").as_bytes()).is_ok());
    assert!(parse(br#"{"v":1,"id":"a","owner":{"host":"h"},"roots":["x"]}"#).is_ok(), "JSON is YAML");
}
