//! Text in any encoding, as it is; HTML without its tags.

use crate::charset;
use crate::readers::{Budget, Found, Read, Refusal, flatten, office};
use crate::{Kind, tidy};

/// The byte-order mark.
const MARK: char = '\u{feff}';

/// Text, source, Markdown, CSV, JSON, XML: the characters of the file. Markup of XML stays, since it may be the content.
pub(super) fn read(kind: Kind, bytes: &[u8], budget: &Budget) -> Read {
    let declared = if kind == Kind::Xml { charset::declared(bytes) } else { None };
    let text = charset::decode(bytes, declared.as_deref()).into_owned();
    if text.len() as u64 / 4 > budget.max_chars {
        return Err(Refusal::TooLarge("more characters than max_doc_chars"));
    }
    let title = if kind == Kind::Markdown { first_heading(&text) } else { None };
    Ok(Found { text, title, reader: "text", pages: None })
}

fn first_heading(markdown: &str) -> Option<String> {
    markdown.lines().take(50).find_map(|line| line.strip_prefix("# ")).and_then(tidy::title)
}

/// HTML: decoded first, as the library takes bytes that are no UTF-8 for Latin-1.
pub(super) fn html(bytes: Vec<u8>) -> Read {
    let declared = charset::declared(&bytes);
    let html = charset::decode(&bytes, declared.as_deref()).into_owned();
    drop(bytes);
    html_text(html)
}

/// The text of an HTML document that is decoded already.
pub(super) fn html_text(html: String) -> Read {
    let title = html_title(&html);
    // The mark outranks what the page says of its encoding, which no longer holds.
    let marked = format!("{MARK}{}", flatten::html(html.trim_start_matches(MARK)));
    drop(html);
    let mut found = office::convert(docling::InputFormat::Html, "html", marked.into_bytes(), "html")?;
    found.title = title.or(found.title);
    Ok(found)
}

/// The content of `<title>`, entities resolved.
fn html_title(html: &str) -> Option<String> {
    let head = &html[..html.floor_char_boundary(64 * 1024)];
    let lower = head.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower[start..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    let raw = &head[start..end];
    let text = quick_xml::escape::unescape(raw).map_or_else(|_| raw.to_owned(), |text| text.into_owned());
    tidy::title(&text)
}
