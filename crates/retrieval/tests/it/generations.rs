//! A finished generation never changes, and the next one is as if it were made afresh.

use bastion_retrieval::{IndexError, IndexWriter, Searcher};

use crate::support::{Home, Random, ask, docs, files, key, model};

#[test]
fn the_generation_before_stays_as_it_was_byte_for_byte() {
    let mut home = Home::new();
    let first = home.generation(None, |writer| {
        writer.set_vectors(&model("m", 3));
        for doc in 0..20 {
            writer.add(key(doc, 0), Some("en"), &format!("alpha number{doc}"));
            writer.add_vector(key(doc, 0), &[1.0, 0.5, 0.1]);
        }
    });
    let searcher = Searcher::open(&first).unwrap();
    let (before, answer) = (files(&first), ask(&searcher, "alpha"));
    let second = home.generation(Some(&first), |writer| {
        writer.remove_doc(3);
        writer.add(key(3, 0), Some("en"), "beta");
        writer.add(key(30, 0), Some("en"), "alpha");
        writer.add_vector(key(30, 0), &[0.0, 1.0, 0.0]);
    });
    let third = home.generation(Some(&second), |writer| {
        for doc in 0..10 {
            writer.remove_doc(doc);
        }
    });
    assert_eq!(files(&first), before);
    assert_eq!(ask(&searcher, "alpha"), answer);
    assert_eq!(ask(&Searcher::open(&first).unwrap(), "alpha"), answer);
    assert_eq!(ask(&Searcher::open(&second).unwrap(), "alpha").len(), 20);
    assert_eq!(ask(&Searcher::open(&third).unwrap(), "alpha").len(), 11);
    std::fs::remove_dir_all(&first).unwrap();
    assert_eq!(ask(&Searcher::open(&third).unwrap(), "alpha").len(), 11);
    assert_eq!(ask(&searcher, "alpha"), answer, "an open searcher outlives its folder");
}

#[test]
fn a_finished_folder_can_be_searched_without_writing_and_holds_no_lock() {
    let mut home = Home::new();
    let dir = home.generation(None, |writer| writer.add(key(0, 0), None, "alpha"));
    let before = files(&dir);
    assert!(!before.iter().any(|(path, _)| path.to_string_lossy().contains("lock") || path.ends_with("vectors.new")));
    ask(&Searcher::open(&dir).unwrap(), "alpha");
    assert_eq!(files(&dir), before);
}

/// A window's text and vector.
type Made = (String, Vec<f32>);

#[test]
fn many_generations_answer_as_one_made_afresh() {
    const QUESTIONS: [&str; 5] = [
        "wing flow",
        "houses running",
        "the contract invoice",
        "\"boundary layer\"",
        "supersonic pressure number mach heat",
    ];
    let mut random = Random(7);
    let mut home = Home::new();
    let mut expected: std::collections::BTreeMap<u32, Vec<Made>> = std::collections::BTreeMap::new();
    let tag = model("m", 8);
    let mut last = None;
    for _ in 0..12 {
        let mut changes: Vec<(u32, Vec<Made>)> = Vec::new();
        for _ in 0..30 {
            let windows = (0..random.below(4)).map(|_| (random.text(30), random.vector(8))).collect();
            changes.push((random.below(60), windows));
        }
        last = Some(home.generation(last.as_deref(), |writer| {
            writer.set_vectors(&tag);
            for (doc, windows) in &changes {
                writer.remove_doc(*doc);
                for (index, (text, vector)) in (0..).zip(windows) {
                    writer.add(key(*doc, index), Some("en"), text);
                    writer.add_vector(key(*doc, index), vector);
                }
            }
        }));
        expected.extend(changes);
        let afresh = home.generation(None, |writer| {
            writer.set_vectors(&tag);
            for (doc, windows) in expected.iter().rev() {
                for (index, (text, vector)) in (0..).zip(windows) {
                    writer.add_vector(key(*doc, index), vector);
                    writer.add(key(*doc, index), Some("en"), text);
                }
            }
        });
        let (grown, afresh) = (Searcher::open(last.as_ref().unwrap()).unwrap(), Searcher::open(&afresh).unwrap());
        assert_eq!((grown.windows(), grown.vectors()), (afresh.windows(), afresh.vectors()));
        for question in QUESTIONS {
            assert_eq!(ask(&grown, question), ask(&afresh, question));
            let vector = random.vector(8);
            let search =
                |searcher: &Searcher| searcher.search(question, Some(&vector), 20, &|doc| doc % 3 != 0).unwrap();
            assert_eq!(search(&grown), search(&afresh));
        }
    }
}

#[test]
fn nothing_of_a_removed_document_stays_in_any_file() {
    let mut home = Home::new();
    let first = home.generation(None, |writer| {
        for doc in 0..50 {
            writer.add(key(doc, 0), Some("en"), "ordinary words of a text");
        }
        writer.add(key(77, 0), None, "zyxwvuplanted");
    });
    let holds = |dir: &std::path::Path| {
        let index = tantivy::Index::open_in_dir(dir.join("text")).unwrap();
        let field = index.schema().get_field("text").unwrap();
        let segments = index.searchable_segments().unwrap();
        let known: Vec<String> = segments.iter().map(|segment| segment.id().uuid_string()).collect();
        for (path, _) in files(&dir.join("text")) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(
                name.ends_with(".json") || known.iter().any(|id| name.starts_with(id)),
                "{name} is of a segment that is no more"
            );
        }
        segments.iter().any(|segment| {
            let terms = tantivy::SegmentReader::open(segment).unwrap().inverted_index(field).unwrap();
            terms.terms().get("zyxwvuplanted").unwrap().is_some()
        })
    };
    assert!(holds(&first), "the test would see it");
    let second = home.generation(Some(&first), |writer| writer.remove_doc(77));
    assert!(!holds(&second));
    let mut random = Random(3);
    let third = home.generation(Some(&second), |writer| {
        writer.add(key(78, 0), None, "zyxwvuplanted");
        writer.add(key(79, 0), None, &random.text(5));
        writer.remove_doc(78);
    });
    assert!(!holds(&third));
    assert!(ask(&Searcher::open(&third).unwrap(), "zyxwvuplanted").is_empty());
}

#[test]
fn all_can_be_removed_and_an_empty_index_answers() {
    let mut home = Home::new();
    let first = home.generation(None, |writer| writer.add(key(1, 0), None, "alpha"));
    let second = home.generation(Some(&first), |writer| writer.remove_doc(1));
    let searcher = Searcher::open(&second).unwrap();
    assert_eq!((searcher.windows(), ask(&searcher, "alpha").len()), (0, 0));
    let third = home.generation(Some(&second), |writer| writer.add(key(2, 0), None, "alpha"));
    assert_eq!(docs(&ask(&Searcher::open(&third).unwrap(), "alpha")), [2]);
    let none = home.generation(None, |_| {});
    assert!(ask(&Searcher::open(&none).unwrap(), "alpha").is_empty());
}

#[test]
fn segments_do_not_pile_up() {
    let mut home = Home::new();
    let mut last = None;
    for doc in 0..40 {
        last = Some(home.generation(last.as_deref(), |writer| writer.add(key(doc, 0), None, "alpha")));
    }
    let last = last.unwrap();
    let segments =
        files(&last).iter().filter(|(path, _)| path.extension().is_some_and(|extension| extension == "term")).count();
    assert!(segments <= 8, "{segments} segments");
    assert_eq!(ask(&Searcher::open(&last).unwrap(), "alpha").len(), 40);
}

#[test]
fn what_was_not_finished_is_not_opened() {
    let mut home = Home::new();
    let missing = home.fresh();
    assert!(matches!(Searcher::open(&missing), Err(IndexError::Unfinished { .. })));
    let half = home.fresh();
    let mut writer = IndexWriter::create(&half, None).unwrap();
    writer.add(key(0, 0), None, "alpha");
    drop(writer);
    assert!(matches!(Searcher::open(&half), Err(IndexError::Unfinished { .. })));
    assert!(matches!(IndexWriter::create(&home.fresh(), Some(&half)), Err(IndexError::Unfinished { .. })));
    assert!(matches!(IndexWriter::create(&half, None), Err(IndexError::Exists { .. })));
}

#[test]
fn another_format_is_named_and_not_built_upon() {
    let mut home = Home::new();
    let dir = home.generation(None, |writer| writer.add(key(0, 0), None, "alpha"));
    std::fs::write(dir.join("format"), "index-0\nvectors\n").unwrap();
    assert!(matches!(Searcher::open(&dir), Err(IndexError::OtherFormat { found, .. }) if found == "index-0"));
    assert!(matches!(IndexWriter::create(&home.fresh(), Some(&dir)), Err(IndexError::OtherFormat { .. })));
}

#[test]
fn a_cut_or_changed_file_is_an_error_and_never_a_panic() {
    let mut home = Home::new();
    let dir = home.generation(None, |writer| {
        writer.set_vectors(&model("m", 4));
        let mut random = Random(5);
        for doc in 0..200 {
            writer.add(key(doc, 0), Some("en"), &random.text(40));
            writer.add_vector(key(doc, 0), &random.vector(4));
        }
    });
    let answer = ask(&Searcher::open(&dir).unwrap(), "wing \"boundary layer\"");
    let whole = files(&dir);
    let (mut refused, mut all) = (0, 0);
    for (path, bytes) in &whole {
        let mut damages = vec![Vec::new(), bytes[..bytes.len() / 2].to_vec(), bytes[..bytes.len() - 1].to_vec()];
        damages.extend([1, 3, 7, 9].map(|part| {
            let mut flipped = bytes.clone();
            flipped[bytes.len() * part / 10] ^= 0x55;
            flipped
        }));
        for damaged in damages {
            std::fs::remove_file(path).unwrap();
            std::fs::write(path, &damaged).unwrap();
            // What the library notes of its own version at a file's end says nothing of the content and may pass.
            match Searcher::open(&dir) {
                Ok(searcher) => assert_eq!(ask(&searcher, "wing \"boundary layer\""), answer, "{}", path.display()),
                Err(_) => assert!(IndexWriter::create(&home.fresh(), Some(&dir)).is_err(), "{}", path.display()),
            }
            refused += u32::from(Searcher::open(&dir).is_err());
            all += 1;
        }
        std::fs::remove_file(path).unwrap();
        assert!(Searcher::open(&dir).is_err(), "without {}", path.display());
        assert!(IndexWriter::create(&home.fresh(), Some(&dir)).is_err(), "without {}", path.display());
        std::fs::write(path, bytes).unwrap();
    }
    assert!(all > 60 && all - refused <= 2, "{refused} of {all} refused");
    assert_eq!(Searcher::open(&dir).unwrap().windows(), 200);
}

#[test]
fn a_generation_is_searched_while_the_next_is_written() {
    let mut home = Home::new();
    let first = home.generation(None, |writer| {
        for doc in 0..300 {
            writer.add(key(doc, 0), None, "alpha beta");
        }
    });
    let searcher = Searcher::open(&first).unwrap();
    let expected = ask(&searcher, "alpha");
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..50 {
                        assert_eq!(ask(&searcher, "alpha"), expected);
                        assert_eq!(ask(&Searcher::open(&first).unwrap(), "alpha"), expected);
                    }
                })
            })
            .collect();
        let mut last = first.clone();
        for doc in 0..5 {
            last = home.generation(Some(&last), |writer| {
                writer.remove_doc(doc);
                writer.add(key(1_000 + doc, 0), None, "alpha gamma");
            });
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
}
