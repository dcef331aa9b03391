//! Takes the marks of emphasis and links out of markup before the office library reads it.
//!
//! The library trims every differently styled stretch of a paragraph and joins them with blanks, so that `har<b>bour</b>`
//! becomes two words and a number that is half bold two numbers, which nobody finds again, neither a search nor the rules
//! that hide personal values. Without the marks a paragraph is one stretch, and its blanks are its own.

use std::io::{Cursor, Read as _, Write as _};

use zip::write::SimpleFileOptions;

use crate::Kind;
use crate::detect::ending;
use crate::readers::office::MAX_PART;

/// Elements of HTML that style words or link them. Superscripts stay: a note's number is not part of its word.
const HTML: &[&str] = &[
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "dfn", "em", "font", "i", "ins", "kbd", "mark",
    "s", "samp", "small", "span", "strike", "strong", "tt", "u", "var", "wbr",
];
/// Run properties and links of WordprocessingML (ECMA-376 part 1, §17.3.2, §17.16.22).
const WORD: &[&str] =
    &["w:b", "w:bCs", "w:i", "w:iCs", "w:u", "w:strike", "w:dstrike", "w:vertAlign", "w:rStyle", "w:hyperlink"];
/// Spans and links of OpenDocument (part 3, §6.1.7, §6.1.8).
const OPEN_DOCUMENT: &[&str] = &["text:span", "text:a"];

/// HTML without emphasis and links.
pub(super) fn html(html: &str) -> String {
    without(html, HTML)
}

/// A package whose text parts are without emphasis and links; as it was where it has none or can't be unpacked, in
/// which case the library says why.
pub(super) fn package(kind: Kind, bytes: Vec<u8>) -> Vec<u8> {
    let (names, part): (&[&str], fn(&str) -> bool) = match kind {
        Kind::Docx => (WORD, |part| part.starts_with("word/") && ending(part) == "xml"),
        Kind::Odt | Kind::Ods | Kind::Odp => (OPEN_DOCUMENT, |part| part == "content.xml" || part == "styles.xml"),
        Kind::Epub => (HTML, |part| matches!(ending(part).as_str(), "xhtml" | "html" | "htm" | "xml")),
        _ => return bytes,
    };
    repacked(&bytes, names, part).unwrap_or(bytes)
}

fn repacked(bytes: &[u8], names: &[&str], wanted: fn(&str) -> bool) -> Option<Vec<u8>> {
    let mut from = zip::ZipArchive::new(Cursor::new(bytes)).ok()?;
    let mut to = zip::ZipWriter::new(Cursor::new(Vec::with_capacity(bytes.len())));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut unpacked = 0;
    for index in 0..from.len() {
        let raw = from.by_index_raw(index).ok()?;
        let name = raw.name().to_owned();
        if !wanted(&name) {
            to.raw_copy_file(raw).ok()?;
            continue;
        }
        drop(raw);
        let mut text = Vec::new();
        from.by_index(index).ok()?.take(MAX_PART + 1).read_to_end(&mut text).ok()?;
        unpacked += text.len() as u64;
        if unpacked > MAX_PART {
            return None;
        }
        to.start_file(name, stored).ok()?;
        match String::from_utf8(text) {
            Ok(text) => to.write_all(without(&text, names).as_bytes()).ok()?,
            // In another encoding, which the library knows how to read.
            Err(other) => to.write_all(other.as_bytes()).ok()?,
        }
    }
    Some(to.finish().ok()?.into_inner())
}

/// `markup` without the start and end tags of the elements named; what is between them stays.
fn without(markup: &str, names: &[&str]) -> String {
    let mut out = String::with_capacity(markup.len());
    let mut rest = markup;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let end = if names.iter().any(|name| is_tag(tag, name)) { tag_end(tag) } else { None };
        match end {
            Some(end) => rest = &tag[end..],
            None => {
                out.push('<');
                rest = &tag[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Whether `text` begins with a start or end tag of `name`.
fn is_tag(text: &str, name: &str) -> bool {
    let text = text.strip_prefix("</").or_else(|| text.strip_prefix('<')).unwrap_or(text);
    let named = text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    named && matches!(text.as_bytes().get(name.len()), Some(b'>' | b'/' | b' ' | b'\t' | b'\r' | b'\n'))
}

/// Where the tag at the start of `text` ends; a `>` in a quoted attribute does not end it. `None` where it never does.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate().take(64 * 1024) {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emphasis_and_links_go_and_the_rest_stays() {
        assert_eq!(html("<p>har<b class='>'>bour</B> <a\nhref=x>l</a><br>b<body>"), "<p>harbour l<br>b<body>");
        assert_eq!(html("a < b <i"), "a < b <i");
        assert_eq!(html("x<sup>2</sup>"), "x<sup>2</sup>");
        let word = "<w:r><w:rPr><w:b/><w:u w:val=\"single\"/></w:rPr><w:t>x</w:t></w:r><w:body>";
        assert_eq!(without(word, WORD), "<w:r><w:rPr></w:rPr><w:t>x</w:t></w:r><w:body>");
    }
}
