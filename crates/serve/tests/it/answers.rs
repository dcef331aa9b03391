//! What each route answers.

use std::fs;
use std::sync::Arc;

use serde_json::json;

use crate::world::{Document, OWNER, PLANTED, READER, WordEmbedder, World, documents};

#[test]
fn a_search_gives_sanitized_windows_and_paths_to_the_owner_alone() {
    let world = World::swept();
    let endpoint = world.start();
    let document = &documents()[0];
    let answer = world.connect(&endpoint, OWNER).search("lighthouse keepers").json();
    let hit = &answer["hits"][0];
    assert_eq!(answer["k"], 5);
    assert_eq!(answer["ranking"], "bm25");
    assert_eq!(hit["doc"], document.doc());
    assert_eq!(hit["chunk"], format!("{}:0", document.doc()));
    assert_eq!((&hit["index"], &hit["start"]), (&json!(0), &json!(0)));
    assert_eq!(hit["end"], document.sanitized.chars().count());
    assert_eq!(hit["text"], document.sanitized);
    assert_eq!(hit["path"], "notes/lighthouse.txt");
    assert!(hit["score"].is_number());
    let answer = world.connect(&endpoint, READER).search("lighthouse keepers").json();
    assert_eq!(answer["hits"][0]["doc"], document.doc());
    assert!(answer["hits"][0].get("path").is_none());
}

#[test]
fn k_is_held_and_the_best_come_first() {
    let world = World::new();
    let plain: Vec<_> =
        (0..60).map(|n| (format!("a/{n}.txt"), format!("windmill {}", "grain ".repeat(n + 1)))).collect();
    let documents: Vec<_> =
        plain.iter().map(|(path, text)| Document::new(Box::leak(path.clone().into_boxed_str()), text)).collect();
    world.sweep(&documents);
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    for (asked, held) in [(0, 1), (3, 3), (50, 50), (1000, 50)] {
        let answer = owner.post("/search", &json!({"query": "windmill", "k": asked}).to_string()).json();
        let scores: Vec<f64> =
            answer["hits"].as_array().unwrap().iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
        assert_eq!((answer["k"].as_i64(), scores.len()), (Some(held), usize::try_from(held).unwrap()));
        assert!(scores.is_sorted_by(|one, next| one >= next));
    }
}

#[test]
fn the_model_is_asked_where_it_is_that_of_the_index_and_502_where_it_is_gone() {
    let world = World::new();
    let embedder = Arc::new(WordEmbedder::new("words"));
    world.sweep_with(&documents(), Some(&*embedder));
    let endpoint = world.start_with(Arc::clone(&embedder) as _);
    let mut owner = world.connect(&endpoint, OWNER);
    let answer = owner.search("beacon").json();
    assert_eq!(answer["ranking"], "bm25+vectors");
    assert_eq!(answer["hits"][0]["doc"], documents()[0].doc(), "no word in common, the meaning alone");
    assert_eq!(owner.get("/status").json()["ranking"], "bm25+vectors");
    *embedder.reachable.lock().unwrap() = false;
    let refused = owner.search("beacon");
    assert_eq!((refused.status, refused.error().as_str()), (502, "model_unreachable"));
    *embedder.reachable.lock().unwrap() = true;
    assert_eq!(owner.search("beacon").status, 200);
    drop(endpoint);

    let other = world.start_with(Arc::new(WordEmbedder::new("another")));
    let answer = world.connect(&other, OWNER).search("harbour").json();
    assert_eq!(answer["ranking"], "bm25", "vectors of two models are never compared");
    assert_eq!(answer["hits"][0]["doc"], documents()[1].doc());
}

#[test]
fn read_range_counts_characters_and_is_capped() {
    let world = World::new();
    let long: String = "aé漢😀 ".chars().cycle().take(70_000).collect();
    let document = Document::new("notes/long.txt", &long);
    let very_long = Document::new("notes/very.txt", &"wörd ".repeat(40_000));
    world.sweep(&[document.clone(), very_long.clone()]);
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    let expected = |start: usize, end: usize| long.chars().skip(start).take(end - start).collect::<String>();
    for (start, end, from, to) in [
        (0_u64, 5_u64, 0_usize, 5_usize),
        (3, 3, 3, 3),
        (69_990, 999_999, 69_990, 70_000),
        (0, u64::MAX, 0, 65_536),
        (10, 70_000, 10, 65_546),
        (80_000, 90_000, 70_000, 70_000),
    ] {
        let answer = owner.read_range(&document.doc(), start, end).json();
        assert_eq!(
            answer,
            json!({"doc": document.doc(), "start": from, "end": to, "text": expected(from, to), "total": 70_000}),
            "{start}..{end}"
        );
    }
    let answer = owner.post("/read_range", &json!({"doc": document.doc(), "end": 2}).to_string()).json();
    assert_eq!(answer["text"], "aé", "start is 0");
    let answer = owner.read_range(&very_long.doc(), 199_995, 300_000).json();
    assert_eq!((answer["text"].as_str(), answer["total"].as_u64()), (Some("wörd "), Some(200_000)));
}

#[test]
fn the_plaintext_on_the_disk_has_no_route() {
    let world = World::swept();
    let endpoint = world.start();
    let document = &documents()[0];
    let plain = world.out().join(format!("extract/{}.txt", document.doc()));
    assert!(fs::read_to_string(plain).unwrap().contains(PLANTED), "it is there");
    let mut owner = world.connect(&endpoint, OWNER);
    let doc = document.doc();
    let mut answers = vec![
        owner.read_range(&doc, 0, 1000),
        owner.search(PLANTED),
        owner.search("lighthouse"),
        owner.get("/catalog"),
        owner.get("/catalog/dirs"),
        owner.get("/status"),
        owner.get("/health"),
    ];
    assert!(answers[0].json()["text"].as_str().unwrap().contains("[EMAIL_abcdefghijkl]"));
    for path in [
        format!("/extract/{doc}.txt"),
        format!("/extract/{doc}"),
        format!("/sanitize/{doc}.txt"),
        "/sanitize/vault.db".into(),
        "/vectors".into(),
        "/index/current".into(),
        "/catalog/../extract".into(),
        "/%2e%2e/extract".into(),
    ] {
        let answer = owner.get(&path);
        assert_eq!(answer.status, 404, "{path}");
        answers.push(answer);
    }
    for answer in answers {
        assert!(!String::from_utf8(answer.body).unwrap().contains(PLANTED));
    }
    assert!(!world.audit_text().contains(PLANTED));
}

#[test]
fn unknown_ids_are_404_and_malformed_ones_400() {
    let world = World::swept();
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    let doc = documents()[0].doc();
    assert_eq!(owner.read_range(&"0".repeat(64), 0, 1).error(), "not_found");
    for (doc, start, end) in [(&doc.to_uppercase(), 0, 1), (&"..".to_owned(), 0, 1), (&doc, 2, 1)] {
        assert_eq!(owner.read_range(doc, start, end).error(), "bad_request");
    }
    for body in ["", "{", "[]", "\"x\"", "{\"query\": 5}", "{\"query\":\"x\",\"k\":\"5\"}", "{\"quer\":\"x\"}"] {
        assert_eq!(owner.post("/search", body).status, 400, "{body}");
    }
    for query in ["limit=x", "offset=-1", "prefix=%zz", "page=1", "limit=1&limit=2"] {
        assert_eq!(owner.get(&format!("/catalog?{query}")).status, 400, "{query}");
    }
}

#[test]
fn the_catalog_comes_in_pages_with_sanitized_heads() {
    let world = World::swept();
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    let mut paths = Vec::new();
    let mut target = "/catalog?limit=2".to_owned();
    loop {
        let page = owner.get(&target).json();
        assert_eq!(
            (&page["kind"], &page["total"], &page["limit"], &page["prefix"]),
            (&json!("files"), &json!(3), &json!(2), &json!(""))
        );
        paths.extend(page["cards"].as_array().unwrap().iter().map(|card| card["path"].as_str().unwrap().to_owned()));
        match page["next_offset"].as_u64() {
            Some(next) => target = format!("/catalog?limit=2&offset={next}"),
            None => break,
        }
    }
    assert_eq!(paths, ["letters/orchard.txt", "notes/harbour.txt", "notes/lighthouse.txt"]);
    let page = owner.get("/catalog?prefix=notes%2Fl").json();
    assert_eq!(page["total"], 1);
    assert!(page["cards"][0]["head"].as_str().unwrap().contains("[EMAIL_"));
    assert_eq!(owner.get("/catalog").json()["limit"], 500);
    assert_eq!(owner.get("/catalog?limit=5000").json()["limit"], 2000);
    let beyond = owner.get("/catalog?offset=9").json();
    assert_eq!((&beyond["cards"], &beyond["next_offset"], &beyond["offset"]), (&json!([]), &json!(null), &json!(9)));
    let dirs = owner.get("/catalog/dirs").json();
    assert_eq!((&dirs["kind"], &dirs["cards"][0]["path"]), (&json!("dirs"), &json!("notes")));
}

#[test]
fn before_the_first_sweep_there_is_nothing_and_then_it_is_taken_up() {
    let world = World::new();
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    assert_eq!(owner.get("/catalog").error(), "no_catalog");
    assert_eq!(owner.get("/catalog/dirs").status, 404);
    assert_eq!(owner.search("harbour").json()["hits"], json!([]));
    assert_eq!(owner.read_range(&documents()[0].doc(), 0, 1).status, 404);
    assert_eq!(owner.get("/status").json()["state"], json!(null));
    world.sweep(&documents());
    assert_eq!(owner.search("harbour").json()["hits"].as_array().unwrap().len(), 1);
    assert_eq!(owner.get("/catalog").json()["total"], 3);
}

#[test]
fn a_new_generation_is_taken_up_without_a_restart() {
    let world = World::swept();
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    let old = documents();
    assert_eq!(owner.read_range(&old[0].doc(), 0, 5).status, 200);
    let new = Document::new("notes/new.txt", "A windmill turns above the harbour.");
    world.sweep(&[old[1].clone(), new.clone()]);
    assert_eq!(owner.read_range(&old[0].doc(), 0, 5).status, 404);
    assert_eq!(owner.read_range(&new.doc(), 2, 10).json()["text"], "windmill");
    assert_eq!(owner.search("harbour").json()["hits"].as_array().unwrap().len(), 2);
}

#[test]
fn sweeps_and_readers_at_once_never_make_an_error() {
    let world = World::swept();
    let endpoint = world.start();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut owner = world.connect(&endpoint, OWNER);
                    let mut asked = 0;
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        let found = owner.search("harbour");
                        let read = owner.read_range(&documents()[1].doc(), 0, 5);
                        assert_eq!((found.status, read.status), (200, 200));
                        assert_eq!(found.json()["hits"][0]["doc"], documents()[1].doc());
                        asked += 1;
                    }
                    asked
                })
            })
            .collect();
        for n in 0..15 {
            let mut now = documents();
            now[0] = Document::new("notes/changing.txt", &format!("Version {n} of a text."));
            world.sweep(&now);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
    });
}

#[test]
fn status_is_the_run_state_as_it_stands() {
    let world = World::swept();
    let state = json!({"ok": true, "stages": {"walk": {"seen": 3}}});
    fs::write(world.out().join("run.state.json"), state.to_string()).unwrap();
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    assert_eq!(owner.get("/status").json()["state"], state);
    fs::write(world.out().join("run.state.json"), "{torn").unwrap();
    assert_eq!(owner.get("/status").error(), "internal");
}

#[test]
fn a_damaged_store_is_our_fault_and_told_to_the_owner_of_the_machine() {
    let world = World::swept();
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    for piece in fs::read_dir(world.out().join("sanitize/pieces")).unwrap() {
        fs::write(piece.unwrap().path(), "short").unwrap();
    }
    let answer = owner.read_range(&documents()[0].doc(), 0, 5);
    assert_eq!((answer.status, answer.error().as_str()), (500, "internal"));
    assert!(!String::from_utf8(answer.body).unwrap().contains("pieces"), "no path of ours goes out");
    world.await_notice("pieces");
    assert_eq!(owner.get("/health").status, 200);
}
