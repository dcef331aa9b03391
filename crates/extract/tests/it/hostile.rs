//! Files made to take the reader down. Each costs only itself, and the next good file is read by the same pool.

use bastion_extract::FailReason::{Crashed, Damaged, Memory, Timeout, TooLarge};
use bastion_extract::{FailReason, Limits, Outcome};

use crate::{PLANTED, extract_with, failure, made, pool};

/// Reads the hostile file, then a good one; the hostile one ends in one of `expected`, or as `Ok` where reading is right.
fn survives(name: &str, bytes: &[u8], expected: &[Option<FailReason>]) -> Outcome {
    let pool = pool();
    let limits = Limits { seconds: 15, max_doc_chars: 1_000_000, ..Limits::default() };
    let outcome = extract_with(&pool, name, bytes, limits);
    assert!(expected.contains(&failure(&outcome)), "{name}: {:?}", short(&outcome));
    let next = extract_with(&pool, "good.txt", PLANTED.as_bytes(), Limits::default());
    assert!(matches!(next, Outcome::Text(document) if document.text == PLANTED));
    outcome
}

fn short(outcome: &Outcome) -> String {
    format!("{outcome:?}").chars().take(300).collect()
}

#[test]
fn word_file_that_inflates_without_end() {
    let body = made::word_paragraph(&"A".repeat(1000)).repeat(600_000);
    survives("bomb.docx", &made::docx(&body), &[Some(TooLarge), Some(Memory)]);
}

#[test]
fn word_file_nested_deep() {
    let deep = 20_000;
    let body = "<w:tbl><w:tr><w:tc>".repeat(deep) + &made::word_paragraph("x") + &"</w:tc></w:tr></w:tbl>".repeat(deep);
    survives("deep.docx", &made::docx(&body), &[None, Some(Crashed), Some(Damaged), Some(Timeout)]);
}

#[test]
fn html_nested_deep() {
    let page = format!("<html><body>{}{PLANTED}{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
    survives("deep.html", page.as_bytes(), &[None, Some(Crashed), Some(Timeout)]);
}

#[test]
fn rich_text_nested_deep() {
    let text = format!("{{\\rtf1 {}deep{}}}", "{".repeat(300_000), "}".repeat(300_000));
    survives("deep.rtf", text.as_bytes(), &[None, Some(Crashed), Some(Damaged), Some(Timeout)]);
}

#[test]
fn mail_nested_deep() {
    use std::fmt::Write;
    let mut mail = String::new();
    for part in 0..10_000 {
        let _ = write!(mail, "Content-Type: multipart/mixed; boundary=\"b{part}\"\n\n--b{part}\n");
    }
    mail += "Content-Type: text/plain\n\ndeep\n";
    survives("deep.eml", mail.as_bytes(), &[None, Some(Crashed), Some(TooLarge), Some(Damaged), Some(Timeout)]);
}

#[test]
fn entities_that_multiply() {
    let mut entities = String::from("<!ENTITY a \"ha\">");
    for pair in ["ab", "bc", "cd", "de", "ef", "fg", "gh", "hi", "ij"] {
        let (from, to) = pair.split_at(1);
        entities += &format!("<!ENTITY {to} \"{}\">", format!("&{from};").repeat(10));
    }
    let body =
        format!("<?xml version=\"1.0\"?><!DOCTYPE l [{entities}]><FictionBook><body><p>x&j;y</p></body></FictionBook>");
    let outcome = survives("laughs.fb2", body.as_bytes(), &[None]);
    assert!(matches!(outcome, Outcome::Text(document) if document.text == "xy"));
    let types = r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>"#;
    let word = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE l [{entities}]><w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"><w:body><w:p><w:r><w:t>&j;</w:t></w:r></w:p></w:body></w:document>"
    );
    let file = made::zip(&[("[Content_Types].xml", types.as_bytes()), ("word/document.xml", word.as_bytes())]);
    survives("laughs.docx", &file, &[None, Some(Damaged), Some(TooLarge)]);
}

#[test]
fn pdf_stream_that_inflates_without_end() {
    let content = [b"BT /F1 12 Tf (".as_slice(), &vec![b'A'; 400 << 20], b") Tj ET"].concat();
    survives("bomb.pdf", &made::pdf(&[&content]), &[Some(TooLarge), Some(Memory), Some(Timeout), Some(Damaged)]);
}

#[test]
fn pdf_pages_in_a_loop() {
    let objects =
        [b"<</Type/Catalog/Pages 2 0 R>>".to_vec(), b"<</Type/Pages/Kids[2 0 R 2 0 R 2 0 R]/Count 3>>".to_vec()];
    survives("loop.pdf", &made::pdf_of(&objects, ""), &[None, Some(Damaged), Some(Timeout), Some(Crashed)]);
}

#[test]
fn pdf_of_millions_of_operators() {
    let content =
        b"BT /F1 12 Tf ".iter().copied().chain(b"1 0 Td (a) Tj ".repeat(3_000_000)).chain(*b"ET").collect::<Vec<_>>();
    survives("many.pdf", &made::pdf(&[&content]), &[None, Some(TooLarge), Some(Memory), Some(Timeout)]);
}

#[test]
fn sheet_with_two_far_cells_is_read() {
    let rows = format!(
        r#"<row r="1"><c r="A1" t="inlineStr"><is><t>{PLANTED}</t></is></c></row><row r="1048576"><c r="XFD1048576"><v>42</v></c></row>"#
    );
    let outcome = survives("far.xlsx", &made::xlsx(&rows), &[None]);
    assert!(
        matches!(outcome, Outcome::Text(document) if document.text.contains(PLANTED) && document.text.contains("42"))
    );
}

#[test]
fn zip_that_holds_itself_deep_down() {
    let mut file = made::zip(&[("a.txt", &vec![b'a'; 10 << 20])]);
    for _ in 0..6 {
        file = made::zip(&[("a.zip", &file), ("b.zip", &file)]);
    }
    let pool = pool();
    let limits = Limits { archive_depth: 20, seconds: 20, ..Limits::default() };
    let outcome = extract_with(&pool, "nest.zip", &file, limits);
    assert!(!matches!(outcome, Outcome::Failed { reason: Crashed, .. }), "{}", short(&outcome));
}

#[test]
fn text_longer_than_the_limit_is_too_large() {
    let pool = pool();
    let limits = Limits { max_doc_chars: 5, ..Limits::default() };
    assert!(matches!(extract_with(&pool, "a.txt", "äöüäö".as_bytes(), limits), Outcome::Text(_)));
    assert_eq!(failure(&extract_with(&pool, "a.txt", b"sixsix", limits)), Some(TooLarge));
}
