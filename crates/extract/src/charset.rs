//! Which characters do these bytes stand for? A byte-order mark first, then UTF-8 where it is valid, then what the
//! document says of itself, then a guess.
//!
//! Sources: WHATWG Encoding (labels, decoders, by `encoding_rs`); RFC 3629 (what valid UTF-8 is). UTF-16 without a
//! mark is known by its zero bytes, the rest is guessed by `chardetng`, the detector of a browser.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Bytes from the first one that is not ASCII that a guess is made from.
const SAMPLE: usize = 256 * 1024;

/// The text of `bytes`. `declared` is a label the document gives for itself (`<meta charset>`, an XML declaration).
/// Bytes that stand for nothing become U+FFFD.
pub(crate) fn decode<'a>(bytes: &'a [u8], declared: Option<&str>) -> Cow<'a, str> {
    if let Some(text) = utf32(bytes) {
        return Cow::Owned(text);
    }
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark..]).0;
    }
    if let Some(encoding) = utf16_without_mark(bytes) {
        return encoding.decode_without_bom_handling(bytes).0;
    }
    let declared = declared.and_then(|label| Encoding::for_label(label.trim().as_bytes()));
    // The only encodings in use whose every byte is ASCII and whose text is not.
    let shifted = declared.is_some_and(|encoding| !encoding.is_ascii_compatible()) && bytes.contains(&0x1b);
    if !shifted && let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    if let Some(encoding) = declared.filter(|encoding| *encoding != UTF_8)
        && encoding.is_single_byte() | shifted
    {
        return encoding.decode_without_bom_handling(bytes).0;
    }
    if let Some(encoding) = declared.filter(|encoding| *encoding != UTF_8)
        && let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes)
    {
        return text;
    }
    if mostly_utf8(bytes) {
        return String::from_utf8_lossy(bytes);
    }
    guess(bytes).decode_without_bom_handling(bytes).0
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    // What comes before tells the language too.
    let start = first.saturating_sub(4096);
    let sample = &bytes[start..bytes.len().min(first + SAMPLE)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(sample, true);
    detector.guess(None, Utf8Detection::Deny)
}

/// Damaged UTF-8 rather than another encoding: at least four whole sequences for each byte that is none.
fn mostly_utf8(bytes: &[u8]) -> bool {
    let (mut whole, mut broken) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        whole += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    whole >= broken * 4
}

fn utf32(bytes: &[u8]) -> Option<String> {
    let (rest, little) = match bytes {
        [0xff, 0xfe, 0, 0, rest @ ..] => (rest, true),
        [0, 0, 0xfe, 0xff, rest @ ..] => (rest, false),
        _ => return None,
    };
    let (units, []) = rest.as_chunks::<4>() else { return None };
    let unit = |unit: &[u8; 4]| if little { u32::from_le_bytes(*unit) } else { u32::from_be_bytes(*unit) };
    units.iter().map(|bytes| char::from_u32(unit(bytes))).collect()
}

/// UTF-16 of a mostly Latin text has a zero in nearly every second byte, and nothing else has.
fn utf16_without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    let (units, rest) = bytes[..bytes.len().min(4096)].as_chunks::<2>();
    if units.len() < 4 || (!rest.is_empty() && bytes.len() <= 4096) {
        return None;
    }
    let zero = |side: usize| units.iter().filter(|unit| unit[side] == 0).count();
    let text =
        |side: usize| units.iter().filter(|unit| unit[side] >= 0x20 || matches!(unit[side], 9 | 10 | 13)).count();
    let (first, second) = (zero(0), zero(1));
    let enough = units.len() * 6 / 10;
    if second >= enough && first == 0 && text(0) == units.len() {
        Some(UTF_16LE)
    } else if first >= enough && second == 0 && text(1) == units.len() {
        Some(UTF_16BE)
    } else {
        None
    }
}

/// Whether bytes may be text in some encoding: UTF-16, or hardly any zero bytes and control characters.
pub(crate) fn looks_like_text(bytes: &[u8]) -> bool {
    if Encoding::for_bom(bytes).is_some() || utf16_without_mark(bytes).is_some() || utf32(bytes).is_some() {
        return true;
    }
    let sample = &bytes[..bytes.len().min(64 * 1024)];
    let control = sample.iter().filter(|byte| matches!(byte, 0x00..=0x08 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f)).count();
    // Bytes of packed or random data are control characters one time in nine.
    control * 33 <= sample.len()
}

/// The label of an HTML document's own declaration, or of an XML declaration: `charset=` or `encoding=` near the top.
///
/// Looser than the WHATWG prescan on purpose (a comment or a stray attribute may hold it): it is used only where the
/// bytes are no valid UTF-8.
pub(crate) fn declared(bytes: &[u8]) -> Option<String> {
    let head = bytes[..bytes.len().min(16 * 1024)].to_ascii_lowercase();
    let xml = head.starts_with(b"<?xml");
    let end = memchr::memchr(b'>', &head).unwrap_or(head.len());
    let label = |name: &[u8], head: &[u8]| {
        memchr::memmem::find_iter(head, name).find_map(|at| label_after(&head[at + name.len()..]))
    };
    if xml && let Some(found) = label(b"encoding", &head[..end]) {
        return Some(found);
    }
    label(b"charset", &head)
}

fn label_after(rest: &[u8]) -> Option<String> {
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest).trim_ascii_start();
    let end =
        rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b"-_:.".contains(byte))).unwrap_or(rest.len());
    let label = std::str::from_utf8(rest.get(..end.min(40))?).ok()?;
    // A label nobody knows is passed over: another declaration may follow.
    Encoding::for_label(label.as_bytes()).map(|_| label.to_owned())
}

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, EUC_KR, GBK, ISO_8859_2, KOI8_R, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};

    use super::*;

    const RUSSIAN: &str = "Договор подписан сторонами в городе Казань, срок действия один год.";
    const JAPANESE: &str = "東京都渋谷区の会議は来週の月曜日に開催されます。資料を準備してください。";

    #[test]
    fn legacy_encodings_are_guessed() {
        let cases: [(&'static Encoding, &str); 7] = [
            (WINDOWS_1251, RUSSIAN),
            (KOI8_R, RUSSIAN),
            (SHIFT_JIS, JAPANESE),
            (GBK, "本周完成了数据导入模块的开发，并与测试团队一起验证了常见的输入格式。"),
            (BIG5, "本週完成了資料匯入模組的開發，並與測試團隊一起驗證了常見的輸入格式。"),
            (EUC_KR, "이번 주에 데이터 가져오기 모듈의 개발을 완료하고 시험을 마쳤습니다."),
            (WINDOWS_1252, "Le café de l’été est fermé : « à bientôt », a-t-elle répondu déçue."),
        ];
        for (encoding, text) in cases {
            let (bytes, _, lossy) = encoding.encode(text);
            assert!(!lossy);
            assert_eq!(decode(&bytes, None), text, "{}", encoding.name());
        }
    }

    #[test]
    fn utf16_and_utf32_with_and_without_marks() {
        let text = "Grüße aus Köln, Treffen um neun.\nZweite Zeile.";
        let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode(&le, None), text);
        assert_eq!(decode(&be, None), text);
        assert_eq!(decode(&[&[0xff, 0xfe], le.as_slice()].concat(), None), text);
        assert_eq!(decode(&[&[0xfe, 0xff], be.as_slice()].concat(), Some("utf-8")), text);
        let wide: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        assert_eq!(decode(&[&[0xff, 0xfe, 0, 0], wide.as_slice()].concat(), None), text);
        assert!(looks_like_text(&le));
    }

    #[test]
    fn a_declaration_decides_where_bytes_are_no_utf8() {
        let (bytes, _, _) = ISO_8859_2.encode("Zażółć gęślą jaźń");
        assert_eq!(decode(&bytes, Some("iso-8859-2")), "Zażółć gęślą jaźń");
        // A page that says Latin-1 and is UTF-8: the bytes are right.
        assert_eq!(decode("Zażółć".as_bytes(), Some("iso-8859-1")), "Zażółć");
        // A page that says UTF-8 and is not.
        let (bytes, _, _) = WINDOWS_1251.encode(RUSSIAN);
        assert_eq!(decode(&bytes, Some("utf-8")), RUSSIAN);
        let (bytes, _, _) = encoding_rs::ISO_2022_JP.encode(JAPANESE);
        assert_eq!(decode(&bytes, Some("iso-2022-jp")), JAPANESE);
    }

    #[test]
    fn damaged_utf8_stays_utf8() {
        let mut bytes = "déjà vu, très élégant".as_bytes().to_vec();
        bytes.push(0xff);
        assert_eq!(decode(&bytes, None), "déjà vu, très élégant\u{fffd}");
    }

    #[test]
    fn declarations_are_found() {
        let of = |text: &str| declared(text.as_bytes());
        assert_eq!(of("<meta charset=windows-1251>").as_deref(), Some("windows-1251"));
        assert_eq!(of("<META content='text/html; charset = \"Shift_JIS\"'>").as_deref(), Some("shift_jis"));
        assert_eq!(of("<?xml version='1.0' encoding='koi8-r'?>").as_deref(), Some("koi8-r"));
        assert_eq!(of("<meta charset=nonsense><meta charset=big5>").as_deref(), Some("big5"));
        assert_eq!(of("<p>no such thing"), None);
    }

    #[test]
    fn binary_is_not_text() {
        assert!(!looks_like_text(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0]));
        assert!(looks_like_text(b"plain \x1b[31mred\x1b[0m text"));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_and_any_declaration_decode(bytes: Vec<u8>, label in "[a-z0-9-]{0,12}") {
            decode(&bytes, Some(&label));
            declared(&bytes);
            looks_like_text(&bytes);
        }
    }
}
