//! Every format: a small real file, the planted sentence found.

use bastion_extract::Outcome;

use crate::made;
use crate::{PLANTED, document, extract, planted};

#[test]
fn plain_text_and_source() {
    let found = planted("note.txt", format!("First\r\n{PLANTED}\0\r\n").as_bytes());
    assert_eq!(found.text, format!("First\n{PLANTED}"));
    assert_eq!((found.mime.as_str(), found.reader.as_str()), ("text/plain", "text"));
    planted("main.rs", format!("// {PLANTED}\nfn main() {{}}\n").as_bytes());
    planted("no-ending", PLANTED.as_bytes());
}

#[test]
fn markdown_csv_json_xml_stay_as_they_are() {
    let found = planted("a.md", format!("# The *Heron*\n\nsnake_case {PLANTED}").as_bytes());
    assert!(found.text.starts_with("# The *Heron*\n\nsnake_case"));
    assert_eq!(found.title.as_deref(), Some("The *Heron*"));
    assert_eq!(planted("a.csv", format!("id,text\n1,\"{PLANTED}\"\n").as_bytes()).mime, "text/csv");
    assert_eq!(planted("a.json", format!("{{\"a\":\"{PLANTED}\"}}").as_bytes()).mime, "application/json");
    assert_eq!(planted("a.xml", format!("<?xml version=\"1.0\"?><a>{PLANTED}</a>").as_bytes()).mime, "application/xml");
}

#[test]
fn html_has_title_and_text_and_no_tags() {
    let page = "<!DOCTYPE html><html><head><title>Made &amp; Title</title><style>p{color:red}</style><script>var x=1</script></head>\
         <body><h1>Head</h1><p>The heron waits <b>by</b> the quiet har<i>bour</i>.</p><table><tr><td>left_cell</td><td>a &lt; b</td></tr></table></body></html>";
    let found = planted("page.html", page.as_bytes());
    assert_eq!(found.title.as_deref(), Some("Made & Title"));
    assert!(found.text.contains("left_cell") && found.text.contains("a < b"), "{}", found.text);
    assert!(!found.text.contains("color:red") && !found.text.contains("var x"), "{}", found.text);
    assert!(!found.text.contains('<') || found.text.contains("a < b"));
    assert_eq!(found.lang, None, "too short to be sure");
}

#[test]
fn pdf_has_pages() {
    let found = planted("a.pdf", &made::pdf(&[&made::shown("Page one."), &made::shown(PLANTED)]));
    assert_eq!(found.pages, Some(2));
    let pages: Vec<&str> = found.text.split('\u{c}').collect();
    assert_eq!(pages.len(), 2);
    assert!(pages[0].contains("Page one.") && pages[1].contains(PLANTED));
}

#[test]
fn pdf_title_comes_from_its_information() {
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>".to_vec(),
    ];
    let content = made::shown(PLANTED);
    objects.push([format!("<</Length {}>>stream\n", content.len()).as_bytes(), &content, b"\nendstream"].concat());
    objects.push(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec());
    objects.push(b"<</Title(Made Title)>>".to_vec());
    assert_eq!(planted("a.pdf", &made::pdf_of(&objects, "/Info 6 0 R")).title.as_deref(), Some("Made Title"));
}

#[test]
fn word() {
    let body = format!(
        r#"{}<w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl><w:p><w:r><w:t xml:space="preserve">The heron waits by </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">the quiet har</w:t></w:r><w:r><w:t>bour.</w:t></w:r></w:p>"#,
        made::word_paragraph("R&amp;D snake_case"),
        made::word_paragraph("left"),
        made::word_paragraph("right"),
    );
    let found = planted("a.docx", &made::docx(&body));
    assert_eq!(found.title.as_deref(), Some("Made Title"));
    assert!(found.text.contains("R&D snake_case"), "nothing is escaped: {}", found.text);
    assert!(found.text.contains("left") && found.text.contains("right"));
    // The bytes decide, not the name.
    assert_eq!(planted("wrong-name.txt", &made::docx(&body)).mime, found.mime);
    assert!(planted("a.docm", &made::docx(&body)).mime.contains("macroEnabled"));
}

#[test]
fn excel() {
    let cell = |at: &str, text: &str| format!(r#"<c r="{at}" t="inlineStr"><is><t>{text}</t></is></c>"#);
    let rows = format!("<row r=\"1\">{}{}</row>", cell("A1", "Name"), cell("B1", PLANTED));
    let found = planted("a.xlsx", &made::xlsx(&rows));
    assert!(found.text.contains("Name"));
    planted("a.xlsm", &made::xlsx(&rows));
}

#[test]
fn excel_97() {
    assert_eq!(planted("a.xls", &made::xls(PLANTED)).mime, "application/vnd.ms-excel");
}

#[test]
fn powerpoint() {
    planted("a.pptx", &made::pptx(PLANTED));
}

#[test]
fn powerpoint_97() {
    assert_eq!(planted("a.ppt", &made::ppt(PLANTED)).mime, "application/vnd.ms-powerpoint");
}

#[test]
fn word_97() {
    assert_eq!(planted("a.doc", &made::doc(PLANTED)).mime, "application/msword");
}

#[test]
fn rich_text() {
    let found = planted("a.rtf", format!(r"{{\rtf1\ansi\ansicpg1252 Caf\'e9 \b {PLANTED}\b0\par}}").as_bytes());
    assert!(found.text.contains("Café"), "{}", found.text);
}

#[test]
fn open_document_kinds() {
    planted("a.odt", &made::open_document("text", &format!("<text:p>{PLANTED}</text:p>")));
    let table = format!(
        r#"<table:table table:name="T"><table:table-row><table:table-cell office:value-type="string"><text:p>{PLANTED}</text:p></table:table-cell></table:table-row></table:table>"#
    );
    planted("a.ods", &made::open_document("spreadsheet", &table));
    let page = format!(
        r#"<draw:page draw:name="p"><draw:frame><draw:text-box><text:p>{PLANTED}</text:p></draw:text-box></draw:frame></draw:page>"#
    );
    planted("a.odp", &made::open_document("presentation", &page));
}

#[test]
fn e_books() {
    assert_eq!(planted("a.epub", &made::epub(PLANTED)).title.as_deref(), Some("Made Title"));
    let book = format!(
        "<?xml version='1.0' encoding='utf-8'?><FictionBook xmlns='http://www.gribuser.ru/xml/fictionbook/2.0'><description>\
         <title-info><book-title>Made Title</book-title></title-info></description><body><section><p>{PLANTED}</p></section></body></FictionBook>"
    );
    let found = planted("a.fb2", book.as_bytes());
    assert_eq!((found.title.as_deref(), found.reader.as_str()), (Some("Made Title"), "fb2"));
    planted("a.fb2.zip", &made::zip(&[("a.fb2", book.as_bytes())]));
}

/// A style that changes inside a word leaves it whole.
#[test]
fn half_styled_words_stay_whole() {
    let odt = r#"<text:p>The heron waits by the quiet har<text:span text:style-name="T1">bour</text:span>.</text:p>"#;
    planted("a.odt", &made::open_document("text", odt));
    planted("a.epub", &made::epub("The heron waits by the quiet har<b>bour</b>."));
    planted("a.rtf", br"{\rtf1\ansi The heron waits by the quiet har{\b bour}.\par}");
    let text = "The heron waits by the quiet har</a:t></a:r><a:r><a:rPr b=\"1\"/><a:t>bour.";
    planted("a.pptx", &made::pptx(text));
}

#[test]
fn nothing_in_it_is_empty_and_nothing_known_is_unsupported() {
    assert!(matches!(extract("a.txt", b""), Outcome::Empty { .. }));
    assert!(matches!(extract("a.txt", b" \r\n\t\n"), Outcome::Empty { .. }));
    assert!(matches!(extract("a.pdf", &made::pdf(&[b""])), Outcome::Empty { .. }));
    let noise = [0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0];
    assert_eq!(crate::skipped(&extract("a.bin", &noise)), Some(bastion_extract::SkipReason::Unsupported));
    assert_eq!(crate::skipped(&extract("a.docx", &noise)), Some(bastion_extract::SkipReason::Unsupported));
}

#[test]
fn what_is_torn_is_damaged() {
    use bastion_extract::FailReason::Damaged;
    let whole = made::docx(&made::word_paragraph(PLANTED));
    assert_eq!(crate::failure(&extract("a.docx", &whole[..whole.len() / 2])), Some(Damaged));
    assert_eq!(crate::failure(&extract("a.zip", b"PK\x03\x04 and nothing more")), Some(Damaged));
    let doc = made::doc(PLANTED);
    assert_eq!(crate::failure(&extract("a.doc", &doc[..600])), Some(Damaged));
}

#[test]
fn what_asks_for_a_password_is_encrypted() {
    use bastion_extract::SkipReason::Encrypted;
    let envelope = made::compound(&[("EncryptedPackage", &[7; 64]), ("EncryptionInfo", &[4, 0, 4, 0])]);
    assert_eq!(crate::skipped(&extract("a.docx", &envelope)), Some(Encrypted));
    // A standard handler of 128 bits whose user password is not the empty one.
    let mut objects = vec![b"<</Type/Catalog/Pages 2 0 R>>".to_vec(), b"<</Type/Pages/Kids[]/Count 0>>".to_vec()];
    let (owner, user) = ("AB".repeat(32), "CD".repeat(32));
    objects.push(format!("<</Filter/Standard/V 2/R 3/Length 128/P -4/O<{owner}>/U<{user}>>>").into_bytes());
    let file = made::pdf_of(&objects, "/Encrypt 3 0 R/ID[<00><00>]");
    assert_eq!(crate::skipped(&extract("a.pdf", &file)), Some(Encrypted));
}

#[test]
fn a_sure_language_is_named() {
    let german =
        "Der Vertrag wurde gestern von beiden Seiten unterschrieben und gilt für die nächsten drei Jahre. ".repeat(4);
    assert_eq!(document("a.txt", german.as_bytes()).lang.as_deref(), Some("de"));
}
