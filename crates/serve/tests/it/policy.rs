//! The manifest is the policy, live.

use std::fs;

use crate::world::{Document, Manifest, OWNER, READER, World, documents, grant, read};

#[test]
fn a_grant_revoked_by_signing_again_is_refused_on_the_next_request() {
    let world = World::swept();
    let endpoint = world.start();
    let mut reader = world.connect(&endpoint, READER);
    assert_eq!(reader.search("harbour").status, 200);
    world.sign(&Manifest { grants: String::new(), ..Manifest::default() });
    assert_eq!(reader.search("harbour").status, 403, "on the open connection");
    assert_eq!(world.connect(&endpoint, READER).search("harbour").status, 403);
    world.sign(&Manifest::default());
    assert_eq!(reader.search("harbour").status, 200);
}

#[test]
fn an_edit_without_a_signature_stops_everything_but_health() {
    let world = World::swept();
    let endpoint = world.start();
    let signed = read(&world.manifest());
    let mut owner = world.connect(&endpoint, OWNER);
    assert_eq!(owner.get("/health").json(), serde_json::json!({"ok": true, "id": "demo", "serving": true}));
    world.write_manifest(&signed.replace("[search, read_range]", "[search]"));
    for refused in [owner.search("harbour"), owner.get("/catalog"), owner.get("/nothing"), owner.get("/status")] {
        assert_eq!((refused.status, refused.error().as_str()), (503, "bad_signature"));
    }
    assert_eq!(owner.get("/health").json(), serde_json::json!({"ok": true, "id": "demo", "serving": false}));
    world.write_manifest(&signed);
    assert_eq!(owner.search("harbour").status, 200);
    assert_eq!(owner.get("/health").json()["serving"], true);
    assert!(world.audit().iter().any(|row| row["status"] == 503 && row["cn"] == OWNER));
}

#[test]
fn only_the_bytes_decide_not_the_time_stamp() {
    let world = World::swept();
    let endpoint = world.start();
    let mut reader = world.connect(&endpoint, READER);
    assert_eq!(reader.search("harbour").status, 200);
    let before = fs::metadata(world.manifest()).unwrap().modified().unwrap();
    world.sign(&Manifest { grants: grant(READER, "[]", "2026-12-31"), ..Manifest::default() });
    fs::File::options().write(true).open(world.manifest()).unwrap().set_modified(before).unwrap();
    assert_eq!(reader.search("harbour").status, 403);
}

#[test]
fn an_unreadable_manifest_fails_closed() {
    let world = World::swept();
    let endpoint = world.start();
    let signed = read(&world.manifest());
    let mut owner = world.connect(&endpoint, OWNER);
    assert_eq!(owner.search("harbour").status, 200);
    let unreadable: [&dyn Fn(); 3] =
        [&|| fs::remove_file(world.manifest()).unwrap(), &|| world.write_manifest("v: 1\nv: 1\n"), &|| {
            fs::remove_file(world.manifest()).unwrap();
            fs::create_dir(world.manifest()).unwrap();
        }];
    for spoil in unreadable {
        spoil();
        let refused = owner.search("harbour");
        assert_eq!((refused.status, refused.error().as_str()), (503, "malformed"));
        assert_eq!(owner.get("/health").json(), serde_json::json!({"ok": true, "id": "demo", "serving": false}));
    }
    fs::remove_dir(world.manifest()).unwrap();
    world.write_manifest(&signed);
    assert_eq!(owner.search("harbour").status, 200);
}

#[test]
fn it_starts_under_a_manifest_that_does_not_verify_and_serves_when_it_does() {
    let world = World::swept();
    world.write_manifest(&world.unsigned(&Manifest::default()));
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    assert_eq!(owner.search("harbour").error(), "unsigned");
    assert_eq!(world.audit()[0]["cn"], OWNER);
    assert_eq!(owner.get("/health").json()["serving"], false);
    world.sign(&Manifest::default());
    assert_eq!(owner.search("harbour").status, 200);
}

#[test]
fn an_unsigned_manifest_that_is_let_pass_is_marked_in_each_line() {
    let world = World::swept();
    world.write_manifest(&world.unsigned(&Manifest::default()));
    let policy = bastion_trust::LivePolicy::new(world.gate(), world.manifest(), true);
    let endpoint = bastion_serve::Endpoint::start(world.config(), policy, None, world.clock()).unwrap();
    let mut owner = world.connect(&endpoint, OWNER);
    assert_eq!(owner.search("harbour").status, 200);
    assert!(world.audit()[0]["bypassed"].as_str().unwrap().contains("--allow-unsigned"));
}

#[test]
fn what_leaves_the_scope_is_gone_before_any_sweep() {
    let world = World::swept();
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    let doc = documents()[0].doc();
    assert_eq!(owner.search("lighthouse").json()["hits"].as_array().unwrap().len(), 1);
    assert_eq!(owner.read_range(&doc, 0, 10).status, 200);
    assert_eq!(owner.get("/catalog").json()["total"], 3);

    world.sign(&Manifest { more: "exclude: ['notes/light*']\n", ..Manifest::default() });
    assert_eq!(owner.search("lighthouse").json()["hits"].as_array().unwrap().len(), 0);
    let (hidden, unknown) = (owner.read_range(&doc, 0, 10), owner.read_range(&"0".repeat(64), 0, 10));
    assert_eq!((hidden.status, &hidden.body), (404, &unknown.body), "out of scope and unknown look the same");
    assert_eq!(owner.get("/catalog").json()["total"], 2);

    world.sign(&Manifest::default());
    assert_eq!(owner.read_range(&doc, 0, 10).status, 200);
}

#[test]
fn a_document_with_two_paths_is_in_scope_while_one_of_them_is() {
    let world = World::new();
    let text = "The same words about a windmill in two places.";
    let copy = Document::new("letters/copy.txt", text);
    world.sweep(&[Document::new("notes/first.txt", text), copy.clone()]);
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    world.sign(&Manifest { more: "exclude: [notes]\n", ..Manifest::default() });
    let hits = owner.search("windmill").json();
    assert_eq!(hits["hits"][0]["path"], "letters/copy.txt", "the path shown is one in scope");
    assert_eq!(owner.read_range(&copy.doc(), 0, 8).status, 200);
    world.sign(&Manifest { more: "exclude: [notes, letters]\n", ..Manifest::default() });
    assert_eq!(owner.read_range(&copy.doc(), 0, 8).status, 404);
}
