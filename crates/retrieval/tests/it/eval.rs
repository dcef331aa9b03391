//! Evaluation of a folder in BEIR's shape.

use bastion_retrieval::ModelTag;
use bastion_retrieval::embed::{EmbedError, Embedder, Role};
use bastion_retrieval::eval::{EvalError, evaluate};

use crate::support::model;

/// Knows a few words and nothing else.
struct Toy(ModelTag);

impl Embedder for Toy {
    fn tag(&self) -> &ModelTag {
        &self.0
    }

    fn embed(&self, texts: &[&str], _role: Role) -> Result<Vec<Vec<f32>>, EmbedError> {
        let has = |text: &str, words: &[&str]| f32::from(u8::from(words.iter().any(|word| text.contains(word))));
        Ok(texts.iter().map(|text| vec![has(text, &["cat", "kitten"]), has(text, &["car", "auto"]), 0.1]).collect())
    }
}

fn folder(qrels: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let corpus = r#"{"_id":"d1","title":"Pets","text":"the kitten sleeps"}
{"_id":"d2","title":"","text":"an auto drives"}

{"_id":"d3","text":"a car and a cat"}
"#;
    std::fs::write(dir.path().join("corpus.jsonl"), corpus).unwrap();
    std::fs::write(dir.path().join("queries.jsonl"), "{\"_id\":\"q1\",\"text\":\"kitten\"}\n{\"_id\":\"q2\",\"text\":\"cat\"}\n{\"_id\":\"q3\",\"text\":\"unjudged\"}\n").unwrap();
    std::fs::write(dir.path().join("qrels.tsv"), qrels).unwrap();
    dir
}

#[test]
fn headings_or_none_and_words_or_meaning() {
    for headings in ["", "query-id\tcorpus-id\tscore\n"] {
        let dir = folder(&format!("{headings}q1\td1\t1\nq2\td1\t1\nq2\td2\t0\n"));
        let words = evaluate(dir.path(), Some("en"), None).unwrap();
        assert_eq!((words.queries, words.documents), (2, 3));
        assert!((words.ndcg_10 - 0.5).abs() < 1e-9 && (words.recall_10 - 0.5).abs() < 1e-9, "{words:?}");
        let meaning = evaluate(dir.path(), Some("en"), Some(&Toy(model("toy", 3)))).unwrap();
        assert!(meaning.ndcg_10 > 0.8 && (meaning.recall_100 - 1.0).abs() < 1e-9, "{meaning:?}");
    }
}

#[test]
fn what_is_wrong_with_a_folder_is_said_with_its_place() {
    let dir = folder("q1\td1\t1\nq1 d1 1\n");
    assert!(matches!(evaluate(dir.path(), None, None), Err(EvalError::Malformed { line: 2, .. })));
    let dir = folder("q1\td1\t0\n");
    assert!(matches!(evaluate(dir.path(), None, None), Err(EvalError::NoJudgements { .. })));
    std::fs::write(dir.path().join("corpus.jsonl"), "{\"_id\":1}\n").unwrap();
    assert!(matches!(evaluate(dir.path(), None, None), Err(EvalError::Malformed { line: 1, .. })));
    std::fs::remove_file(dir.path().join("corpus.jsonl")).unwrap();
    assert!(matches!(evaluate(dir.path(), None, None), Err(EvalError::Io { .. })));
}
