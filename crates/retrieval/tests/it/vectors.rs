//! Vectors: kept, dropped, filtered and fused.

use std::sync::atomic::{AtomicU32, Ordering};

use bastion_retrieval::{IndexError, IndexWriter, SearchError, Searcher};

use crate::support::{Home, Random, docs, key, model};

#[test]
fn the_nearest_come_first_and_words_and_meaning_are_fused() {
    let mut home = Home::new();
    let dir = home.generation(None, |writer| {
        writer.set_vectors(&model("m", 3));
        for (doc, text, vector) in [
            (0, "alpha", [1.0, 0.0, 0.0]),
            (1, "beta", [0.9, 0.1, 0.0]),
            (2, "gamma", [0.0, 1.0, 0.0]),
            (3, "alpha", [0.95, 0.0, 0.05]),
        ] {
            writer.add(key(doc, 0), None, text);
            writer.add_vector(key(doc, 0), &vector);
        }
    });
    let searcher = Searcher::open(&dir).unwrap();
    assert_eq!(searcher.model(), Some(&model("m", 3)));
    assert_eq!(docs(&searcher.search("zzz", Some(&[2.0, 0.0, 0.0]), 3, &|_| true).unwrap()), [0, 3, 1]);
    assert_eq!(
        docs(&searcher.search("gamma", Some(&[1.0, 0.0, 0.0]), 1, &|_| true).unwrap()),
        [2],
        "first in one and last in the other beats two middling"
    );
    assert_eq!(docs(&searcher.search("alpha", None, 3, &|_| true).unwrap()), [0, 3]);
}

#[test]
fn the_scan_finds_what_exact_arithmetic_finds() {
    const DIMS: usize = 64;
    let mut random = Random(1);
    let vectors: Vec<Vec<f32>> = (0..5_000).map(|_| random.vector(DIMS)).collect();
    let mut home = Home::new();
    let dir = home.generation(None, |writer| {
        writer.set_vectors(&model("m", DIMS));
        for (doc, vector) in (0..).zip(&vectors) {
            writer.add_vector(key(doc / 10, doc % 10), vector);
        }
    });
    let searcher = Searcher::open(&dir).unwrap();
    let mut same = 0;
    for _ in 0..20 {
        let query = random.vector(DIMS);
        let cosine = |vector: &[f32]| {
            let product = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
            product(&query, vector) / product(vector, vector).sqrt()
        };
        let mut exact: Vec<(u32, f32)> = (0..).zip(&vectors).map(|(doc, vector)| (doc, cosine(vector))).collect();
        exact.sort_by(|one, other| other.1.total_cmp(&one.1));
        let found = searcher.search("", Some(&query), 10, &|_| true).unwrap();
        same +=
            found.iter().filter(|hit| exact[..10].iter().any(|(doc, _)| key(doc / 10, doc % 10) == hit.key)).count();
    }
    assert!(same >= 194, "recall of {same} in 200");
}

#[test]
fn vectors_stay_with_documents_that_stay() {
    let mut home = Home::new();
    let tag = model("m", 4);
    let mut random = Random(9);
    let first = home.generation(None, |writer| {
        writer.set_vectors(&tag);
        for doc in 0..10 {
            writer.add(key(doc, 0), None, "alpha");
            writer.add_vector(key(doc, 0), &random.vector(4));
        }
    });
    let second = home.generation(Some(&first), |writer| {
        writer.set_vectors(&tag);
        writer.remove_doc(4);
        assert!(writer.has_vector(key(3, 0)) && !writer.has_vector(key(4, 0)) && !writer.has_vector(key(99, 0)));
        assert!(writer.copy_vector(key(4, 0), key(50, 2)), "the text of a removed window under a new key");
        assert!(!writer.copy_vector(key(99, 0), key(51, 0)));
        writer.add(key(50, 2), None, "alpha");
    });
    let (one, other) = (Searcher::open(&first).unwrap(), Searcher::open(&second).unwrap());
    assert_eq!((one.vectors(), other.vectors()), (10, 10));
    let query = random.vector(4);
    let renamed = |doc| if doc == 50 { 4 } else { doc };
    let before = docs(&one.search("", Some(&query), 10, &|_| true).unwrap());
    let mut after = docs(&other.search("", Some(&query), 10, &|_| true).unwrap());
    after.iter_mut().for_each(|doc| *doc = renamed(*doc));
    assert_eq!(before, after);
    let unchanged = home.generation(Some(&second), |_| {});
    assert_eq!(Searcher::open(&unchanged).unwrap().vectors(), 10);
}

#[test]
fn another_model_or_size_drops_all_vectors() {
    let mut home = Home::new();
    let first = home.generation(None, |writer| {
        writer.set_vectors(&model("m", 2));
        writer.add(key(0, 0), None, "alpha");
        writer.add_vector(key(0, 0), &[1.0, 0.0]);
    });
    for other in [model("n", 2), model("m", 3)] {
        let dir = home.generation(Some(&first), |writer| {
            writer.set_vectors(&other);
            assert!(!writer.has_vector(key(0, 0)));
            assert!(!writer.copy_vector(key(0, 0), key(1, 0)));
            writer.add(key(2, 0), None, "beta");
            writer.add_vector(key(2, 0), &vec![1.0; other.dims]);
        });
        let searcher = Searcher::open(&dir).unwrap();
        assert_eq!((searcher.model(), searcher.vectors()), (Some(&other), 1));
    }
    let none = home.generation(Some(&first), IndexWriter::drop_vectors);
    assert_eq!(Searcher::open(&none).unwrap().model(), None);
    assert!(!none.join("vectors.i8").exists());
    let kept = home.generation(Some(&first), |_| {});
    assert_eq!(Searcher::open(&kept).unwrap().model(), Some(&model("m", 2)));
}

#[test]
fn a_vector_of_another_size_is_an_error_and_not_a_wrong_answer() {
    let mut home = Home::new();
    let dir = home.generation(None, |writer| {
        writer.set_vectors(&model("m", 2));
        writer.add_vector(key(0, 0), &[1.0, 0.0]);
    });
    let searcher = Searcher::open(&dir).unwrap();
    assert!(matches!(
        searcher.search("", Some(&[1.0; 3]), 5, &|_| true),
        Err(SearchError::Dims { expected: 2, found: 3, .. })
    ));
    assert!(matches!(searcher.search("", Some(&[1.0, f32::NAN]), 5, &|_| true), Err(SearchError::NotFinite)));
    let fails = |home: &mut Home, write: &dyn Fn(&mut IndexWriter)| {
        let dir = home.fresh();
        let mut writer = IndexWriter::create(&dir, None).unwrap();
        write(&mut writer);
        let error = writer.finish().unwrap_err();
        assert!(Searcher::open(&dir).is_err());
        error
    };
    assert!(matches!(fails(&mut home, &|writer| writer.add_vector(key(0, 0), &[1.0])), IndexError::NoModel));
    let wrong = |writer: &mut IndexWriter| {
        writer.set_vectors(&model("m", 2));
        writer.add_vector(key(0, 0), &[1.0; 5]);
    };
    assert!(matches!(fails(&mut home, &wrong), IndexError::Dims { expected: 2, found: 5, .. }));
    let endless = |writer: &mut IndexWriter| {
        writer.set_vectors(&model("m", 2));
        writer.add_vector(key(0, 0), &[f32::INFINITY, 0.0]);
    };
    assert!(matches!(fails(&mut home, &endless), IndexError::NotFinite { .. }));
}

#[test]
fn filters_come_before_k_for_vectors_too() {
    let mut home = Home::new();
    let dir = home.generation(None, |writer| {
        writer.set_vectors(&model("m", 2));
        for doc in 0..9_000 {
            writer.add_vector(key(doc / 3, doc % 3), &[1.0, 0.0]);
        }
        writer.add_vector(key(5_000, 0), &[-1.0, 0.1]);
    });
    let asked = (0..6_000).map(|_| AtomicU32::new(0)).collect::<Vec<_>>();
    let allow = |doc: u32| {
        asked[doc as usize].fetch_add(1, Ordering::Relaxed);
        doc == 5_000
    };
    let searcher = Searcher::open(&dir).unwrap();
    assert_eq!(docs(&searcher.search("alpha", Some(&[1.0, 0.0]), 5, &allow).unwrap()), [5_000]);
    assert!(asked.iter().all(|count| count.load(Ordering::Relaxed) <= 1));
}
