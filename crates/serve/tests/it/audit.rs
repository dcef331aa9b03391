//! The audit: one line an answer, before the answer, and nothing without it.

use std::fs;

use bastion_serve::audit::{query_mark, summarize};
use serde_json::json;

use crate::world::{OWNER, READER, World, documents};

#[test]
fn each_answer_is_one_line_with_the_fields_of_its_operation() {
    let world = World::swept();
    let endpoint = world.start();
    let doc = documents()[1].doc();
    let mut owner = world.connect(&endpoint, OWNER);
    let bytes = [
        owner.search("harbour").body.len(),
        owner.read_range(&doc, 4, 11).body.len(),
        owner.get("/catalog?limit=2&prefix=notes").body.len(),
        owner.get("/catalog/dirs").body.len(),
        owner.get("/status").body.len(),
        owner.get("/health").body.len(),
        owner.get("/nothing?x=1").body.len(),
    ];
    let ts = "2026-06-01T12:00:00.000Z";
    assert_eq!(
        world.audit(),
        [
            json!({"ts": ts, "cn": OWNER, "op": "search", "path": "/search", "status": 200, "bytes": bytes[0], "q": query_mark("harbour"), "hits": 1}),
            json!({"ts": ts, "cn": OWNER, "op": "read_range", "path": "/read_range", "status": 200, "bytes": bytes[1], "doc": doc[..16], "chars": 7}),
            json!({"ts": ts, "cn": OWNER, "op": "catalog", "path": "/catalog", "status": 200, "bytes": bytes[2], "limit": 2, "total": 2}),
            json!({"ts": ts, "cn": OWNER, "op": "catalog_dirs", "path": "/catalog/dirs", "status": 200, "bytes": bytes[3], "limit": 500, "total": 1}),
            json!({"ts": ts, "cn": OWNER, "op": "status", "path": "/status", "status": 200, "bytes": bytes[4]}),
            json!({"ts": ts, "cn": OWNER, "op": "health", "path": "/health", "status": 200, "bytes": bytes[5]}),
            json!({"ts": ts, "cn": OWNER, "op": null, "path": "/nothing", "status": 404, "bytes": bytes[6]}),
        ]
    );
    let summary = summarize(&world.out()).unwrap();
    assert_eq!(summary.rows.len(), 7);
    assert!(summary.rows.iter().all(|row| row.day == "2026-06-01" && row.requests == 1));
}

#[test]
fn the_query_is_hashed_and_its_text_is_not_in_the_file() {
    let world = World::swept();
    let endpoint = world.start();
    let mut reader = world.connect(&endpoint, READER);
    let secret = "winter wedding in Verona";
    reader.search(secret);
    reader.post("/search", &json!({"query": secret, "k": 1.5}).to_string());
    reader.get("/search?query=winter%20wedding");
    reader.get("/catalog?prefix=winter%20wedding");
    let text = world.audit_text();
    assert!(text.contains(&format!("\"q\":\"{}\"", query_mark(secret))));
    assert_eq!(query_mark("abc"), "ba7816bf8f01cfea", "the SHA-256 of FIPS 180-4's example");
    for word in ["winter", "wedding", "Verona"] {
        assert!(!text.contains(word), "{word}");
    }
    assert!(world.notices.lock().unwrap().iter().all(|line| !line.contains("Verona")));
}

#[test]
fn a_deleted_or_replaced_file_is_503_once_and_that_is_its_first_line() {
    let world = World::swept();
    let endpoint = world.start();
    let path = world.out().join("serve.audit.jsonl");
    let mut owner = world.connect(&endpoint, OWNER);
    let spoils: [&dyn Fn(); 2] = [&|| fs::remove_file(&path).unwrap(), &|| {
        fs::write(world.path("forged"), "").unwrap();
        fs::rename(world.path("forged"), &path).unwrap();
    }];
    for spoil in spoils {
        assert_eq!(owner.search("harbour").status, 200);
        spoil();
        let refused = owner.search("harbour");
        assert_eq!((refused.status, refused.error().as_str()), (503, "audit"));
        assert_eq!(owner.search("harbour").status, 200);
        let rows = world.audit();
        assert_eq!(rows.iter().map(|row| row["status"].as_u64().unwrap()).collect::<Vec<_>>(), [503, 200]);
        assert!(rows[0].get("hits").is_none(), "nothing went out");
    }
    world.await_notice("was deleted, replaced or cut");
}

#[test]
fn where_it_can_not_be_written_nothing_is_answered_but_health() {
    let world = World::swept();
    let endpoint = world.start();
    let path = world.out().join("serve.audit.jsonl");
    let mut owner = world.connect(&endpoint, OWNER);
    assert_eq!(owner.search("harbour").status, 200);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    for _ in 0..2 {
        for refused in [owner.search("harbour"), owner.read_range(&documents()[0].doc(), 0, 1), owner.get("/nothing")] {
            assert_eq!((refused.status, refused.error().as_str()), (503, "audit"));
        }
        assert_eq!(owner.get("/health").json(), json!({"ok": true, "id": "demo", "serving": false}));
    }
    fs::remove_dir(&path).unwrap();
    assert_eq!(owner.get("/health").json()["serving"], true);
    assert_eq!(owner.search("harbour").status, 200);
}

#[test]
fn many_at_once_lose_no_line_and_tear_none() {
    let world = World::swept();
    let endpoint = world.start();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut owner = world.connect(&endpoint, OWNER);
                for _ in 0..50 {
                    assert_eq!(owner.get("/health").status, 200);
                }
            });
        }
    });
    assert_eq!(world.audit_text().lines().count(), 400);
    assert_eq!(world.audit().len(), 400);
}
