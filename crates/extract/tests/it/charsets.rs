//! Text, HTML, XML and CSV in the encodings of the last century.

use encoding_rs::{Encoding, SHIFT_JIS, WINDOWS_1251};

use crate::document;

const RUSSIAN: &str = "Цапля ждёт у тихой гавани, пока рыбаки собирают сети.";
const JAPANESE: &str = "鷺は静かな港で待っている。漁師たちは網を片付けている。";

fn encoded(encoding: &'static Encoding, text: &str) -> Vec<u8> {
    let (bytes, _, lossy) = encoding.encode(text);
    assert!(!lossy);
    bytes.into_owned()
}

fn utf16(text: &str) -> Vec<u8> {
    [vec![0xff, 0xfe], text.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat()
}

#[test]
fn plain_text() {
    assert_eq!(document("a.txt", &encoded(WINDOWS_1251, RUSSIAN)).text, RUSSIAN);
    assert_eq!(document("a.txt", &encoded(SHIFT_JIS, JAPANESE)).text, JAPANESE);
    assert_eq!(document("a.txt", &utf16(RUSSIAN)).text, RUSSIAN);
}

#[test]
fn comma_separated_values() {
    let table = format!("имя,текст\n1,{RUSSIAN}\n");
    assert!(document("a.csv", &encoded(WINDOWS_1251, &table)).text.contains(RUSSIAN));
    assert!(document("a.csv", &utf16(&table)).text.contains(RUSSIAN));
}

#[test]
fn html_by_its_declaration() {
    let page = |label: &str, text: &str| {
        format!("<html><head><meta charset=\"{label}\"><title>{text}</title></head><body><p>{text}</p></body></html>")
    };
    for (encoding, label, text) in [(WINDOWS_1251, "windows-1251", RUSSIAN), (SHIFT_JIS, "Shift_JIS", JAPANESE)] {
        let found = document("a.html", &encoded(encoding, &page(label, text)));
        assert!(found.text.contains(text), "{}", found.text);
        assert!(!found.text.contains('\u{fffd}'));
        assert_eq!(found.title.as_deref(), Some(text));
    }
}

#[test]
fn html_without_or_with_a_wrong_declaration() {
    let bare = format!("<html><body><p>{RUSSIAN}</p></body></html>");
    assert!(document("a.html", &encoded(WINDOWS_1251, &bare)).text.contains(RUSSIAN));
    let wrong = format!("<html><head><meta charset=utf-8></head><body><p>{RUSSIAN}</p></body></html>");
    assert!(document("a.html", &encoded(WINDOWS_1251, &wrong)).text.contains(RUSSIAN));
    assert!(document("a.html", &utf16(&wrong)).text.contains(RUSSIAN));
}

#[test]
fn xml_by_its_declaration() {
    let book = format!(
        "<?xml version=\"1.0\" encoding=\"windows-1251\"?><FictionBook><body><p>{RUSSIAN}</p></body></FictionBook>"
    );
    assert!(document("a.fb2", &encoded(WINDOWS_1251, &book)).text.contains(RUSSIAN));
    let data = format!("<?xml version=\"1.0\" encoding=\"shift_jis\"?><a>{JAPANESE}</a>");
    assert!(document("a.xml", &encoded(SHIFT_JIS, &data)).text.contains(JAPANESE));
}
