//! Questions that others' searches got wrong.

use std::sync::atomic::{AtomicU32, Ordering};

use bastion_retrieval::{Searcher, windows};

use crate::support::{Home, Random, ask, docs, key, of_texts};

#[test]
fn a_version_in_quotes_is_found_and_first() {
    let (_home, searcher) =
        of_texts(&["release 1.0.20 and 21", "release 1.0.21 of the program", "0 1 21 0 1 21", "see v1.0.21"]);
    for question in ["\"1.0.21\"", "1.0.21", "v1.0.21", "release 1.0.21"] {
        let hits = docs(&ask(&searcher, question));
        assert!(hits.contains(&1) && hits.contains(&3), "{question}: {hits:?}");
    }
    assert_eq!(docs(&ask(&searcher, "release \"1.0.21\""))[0], 1);
}

#[test]
fn a_hidden_value_is_found_by_its_token_and_only_by_it() {
    let (_home, searcher) =
        of_texts(&["write to [EMAIL_abcdefghijkl] today", "write to [EMAIL_zzzzzzzzzzzz] today", "email is a word"]);
    for question in ["[EMAIL_abcdefghijkl]", "EMAIL_abcdefghijkl", "\"[EMAIL_abcdefghijkl]\""] {
        assert_eq!(docs(&ask(&searcher, question)), [0], "{question}");
    }
    assert_eq!(docs(&ask(&searcher, "email")), [2]);
}

#[test]
fn every_string_is_a_question() {
    let (_home, searcher) = of_texts(&["alpha beta"]);
    for question in [
        "",
        " ",
        "\"",
        "\"\"",
        "AND",
        "alpha AND",
        "text:alpha",
        "(alpha",
        "alpha~",
        "[a TO",
        "\\",
        "\u{0}",
        "*",
        "-alpha",
        "🦀",
        "a:b:c",
        "^^^",
    ] {
        ask(&searcher, question);
    }
    assert_eq!(docs(&ask(&searcher, "(alpha AND")), [0]);
    ask(&searcher, &"alpha beta \"gamma delta\" ".repeat(20_000));
}

#[test]
fn a_phrase_lifts_where_the_words_follow_one_another() {
    let (_home, searcher) = of_texts(&[
        "layer of the boundary and the boundary of a layer layer boundary",
        "a long text about the boundary layer and many more things besides",
    ]);
    assert_eq!(docs(&ask(&searcher, "\"boundary layer\""))[0], 1);
    assert_eq!(docs(&ask(&searcher, "\"boundary layers\""))[0], 1, "stems make a phrase too");
    assert_eq!(ask(&searcher, "\"many boundary\"").len(), 2, "a phrase that is nowhere excludes nothing");
}

#[test]
fn each_language_is_stemmed_by_its_own_rules_and_found_from_any() {
    let mut home = Home::new();
    let dir = home.generation(None, |writer| {
        writer.add(key(0, 0), Some("eng"), "connections of the network");
        writer.add(key(1, 0), Some("de"), "Die Häuser am Fluss");
        writer.add(key(2, 0), Some("fr"), "les chevaux de l'écurie");
        writer.add(key(3, 0), Some("xx"), "connections");
        writer.add(key(4, 0), None, "東京都の天気予報");
        writer.add(key(5, 0), Some("ko"), "학교에서 공부한다");
        writer.add(key(6, 0), Some("th"), "ภาษาไทยเป็นภาษา");
        writer.add(key(7, 0), Some("ru"), "Договоры аренды");
    });
    let searcher = Searcher::open(&dir).unwrap();
    for (question, doc) in [
        ("connecting", 0),
        ("Haus", 1),
        ("häusern", 1),
        ("hauser", 1),
        ("cheval", 2),
        ("ecurie", 2),
        ("écurie", 2),
        ("connections", 3),
        ("天気", 4),
        ("東京", 4),
        ("京", 4),
        ("학교", 5),
        ("ไทย", 6),
        ("договор", 7),
    ] {
        assert!(docs(&ask(&searcher, question)).contains(&doc), "{question}: {:?}", docs(&ask(&searcher, question)));
    }
    assert!(!docs(&ask(&searcher, "京東")).contains(&4), "a run is asked for in its order");
}

#[test]
fn filters_come_before_k_and_a_document_is_asked_about_once() {
    let mut home = Home::new();
    let dir = home.generation(None, |writer| {
        for doc in 0..500 {
            writer.add(key(doc, 0), None, "alpha alpha alpha");
            writer.add(key(doc, 1), None, "alpha beta");
        }
        writer.add(
            key(900, 0),
            None,
            "a small folder's long text that has alpha only once among so many other words that it comes last",
        );
    });
    let searcher = Searcher::open(&dir).unwrap();
    let asked = (0..1_000).map(|_| AtomicU32::new(0)).collect::<Vec<_>>();
    let allow = |doc: u32| {
        asked[doc as usize].fetch_add(1, Ordering::Relaxed);
        doc == 900
    };
    assert_eq!(docs(&searcher.search("alpha", None, 5, &allow).unwrap()), [900]);
    assert!(asked.iter().all(|count| count.load(Ordering::Relaxed) <= 1));
    assert!(searcher.search("alpha", None, 0, &|_| true).unwrap().is_empty());
}

#[test]
fn equals_are_ordered_by_key_and_answers_do_not_vary() {
    let (_home, searcher) = of_texts(&["alpha beta"; 30]);
    assert_eq!(docs(&searcher.search("alpha", None, 10, &|_| true).unwrap()), (0..10).collect::<Vec<_>>());
    let mut random = Random(11);
    let texts: Vec<String> = (0..200).map(|_| random.text(20)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (_home, one) = of_texts(&texts);
    let (_home, other) = of_texts(&texts);
    assert_eq!(ask(&one, "wing flow houses"), ask(&other, "houses wing flow"));
}

#[test]
fn a_word_at_a_windows_edge_is_found() {
    let text = format!("{}zeppelin {}", "lorem ipsum ".repeat(83), "dolor sit ".repeat(200));
    let mut home = Home::new();
    let dir = home.generation(None, |writer| {
        for window in windows(&text, &[]) {
            writer.add(key(0, window.index), None, &text[window.bytes]);
        }
    });
    assert!(!ask(&Searcher::open(&dir).unwrap(), "zeppelin").is_empty());
}
