//! FictionBook 2, as XML events: title, authors, then the body's paragraphs; pictures are passed over.
//!
//! Source: the FictionBook 2.0 schema. Events, not a tree, so that depth costs nothing.

use std::io::{Cursor, Read as _};

use quick_xml::Reader;
use quick_xml::escape::{resolve_html5_entity, resolve_predefined_entity};
use quick_xml::events::Event;

use crate::charset;
use crate::readers::{Found, Read, Refusal, UNPACKED};

/// A book, or a ZIP that holds one.
pub(super) fn read(bytes: Vec<u8>) -> Read {
    let bytes = if bytes.starts_with(b"PK") { unzip(&bytes)? } else { bytes };
    let declared = charset::declared(&bytes);
    book(&charset::decode(&bytes, declared.as_deref()))
}

fn unzip(bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let damaged = |_| Refusal::Damaged("the book in the archive could not be unpacked");
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
    let part = archive.by_index(0).map_err(damaged)?;
    let mut book = Vec::new();
    part.take(UNPACKED + 1).read_to_end(&mut book).map_err(|_| Refusal::Damaged("the book could not be unpacked"))?;
    if book.len() as u64 > UNPACKED {
        return Err(Refusal::TooLarge("the book is larger, unpacked, than its reader takes"));
    }
    Ok(book)
}

#[derive(Default)]
struct State {
    text: String,
    title: String,
    /// Names of the elements around, innermost last.
    around: Vec<String>,
}

impl State {
    fn inside(&self, name: &str) -> bool {
        self.around.iter().any(|element| element == name)
    }

    fn open(&mut self, name: String) {
        match name.as_str() {
            "title" if !self.inside("title") => self.text.push_str("\n\n## "),
            "p" | "v" | "subtitle" | "text-author" | "empty-line" | "tr" => self.new_line(),
            "td" | "th" => self.text.push_str(" | "),
            "stanza" | "section" | "author" | "body" => self.text.push('\n'),
            _ => {}
        }
        self.around.push(name);
    }

    /// A heading of several paragraphs stays one line.
    fn new_line(&mut self) {
        let in_title = self.inside("title");
        match (in_title, self.text.ends_with("## ")) {
            (true, true) => {}
            (true, false) => self.text.push(' '),
            _ => self.text.push('\n'),
        }
    }

    fn close(&mut self, name: &str) {
        // Tolerant of elements closed out of order.
        if let Some(at) = self.around.iter().rposition(|element| element == name) {
            self.around.truncate(at);
        }
        match name {
            "p" | "v" | "title" | "subtitle" if !self.inside("title") => self.text.push('\n'),
            "first-name" | "middle-name" | "last-name" | "nickname" => self.text.push(' '),
            "book-title" | "author" | "annotation" => self.text.push('\n'),
            _ => {}
        }
    }

    fn add(&mut self, text: &str) {
        let in_info = self.inside("title-info");
        if self.inside("book-title") && in_info {
            self.title.push_str(text);
        }
        let wanted = self.inside("body")
            || (in_info && ["book-title", "author", "annotation"].iter().any(|name| self.inside(name)));
        if wanted && !self.inside("binary") {
            self.text.push_str(text);
        }
    }
}

fn book(xml: &str) -> Read {
    let mut reader = Reader::from_str(xml);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut state = State::default();
    loop {
        match reader.read_event() {
            Ok(Event::Start(element)) => state.open(local_name(element.local_name().as_ref())),
            Ok(Event::Empty(element)) => {
                let name = local_name(element.local_name().as_ref());
                state.open(name.clone());
                state.close(&name);
            }
            Ok(Event::End(element)) => state.close(&local_name(element.local_name().as_ref())),
            Ok(Event::Text(text)) => state.add(&text.decode().unwrap_or_default()),
            Ok(Event::CData(text)) => state.add(&text.decode().unwrap_or_default()),
            Ok(Event::GeneralRef(reference)) => {
                let name = reference.decode().unwrap_or_default();
                let character = reference.resolve_char_ref().ok().flatten();
                // Entities that a book defines for itself stand for nothing here: no bomb can go off.
                let known = resolve_predefined_entity(&name).or_else(|| resolve_html5_entity(&name));
                match (character, known) {
                    (Some(character), _) => state.add(character.encode_utf8(&mut [0; 4])),
                    (None, Some(text)) => state.add(text),
                    (None, None) => {}
                }
            }
            Ok(Event::Eof) => break,
            Ok(_) => {}
            // What was read so far is a book, if a torn one.
            Err(_) if !state.text.trim().is_empty() => break,
            Err(_) => return Err(Refusal::Damaged("not well-formed XML")),
        }
    }
    Ok(Found { title: Some(state.title), text: state.text, reader: "fb2", pages: None })
}

fn local_name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_is_read_in_order_without_its_pictures() {
        let found = book(
            "<?xml version='1.0'?><FictionBook><description><title-info><author><first-name>Ann</first-name>\
             <last-name>Lee</last-name></author><book-title>Rain &amp; Sun</book-title><lang>en</lang></title-info>\
             </description><body><section><title><p>Part</p><p>One</p></title><p>It <emphasis>rai</emphasis>ned &#8212; \
             a lot&nbsp;.</p><poem><stanza><v>drip</v><v>drop</v></stanza></poem></section></body>\
             <binary id='x'>QUJDREVG</binary></FictionBook>",
        )
        .unwrap();
        assert_eq!(found.title.as_deref(), Some("Rain & Sun"));
        assert!(found.text.contains("Ann Lee"), "{}", found.text);
        assert!(found.text.contains("## Part One\n"), "{}", found.text);
        assert!(found.text.contains("It rained — a lot\u{a0}."), "{}", found.text);
        assert!(found.text.contains("drip\n\ndrop") || found.text.contains("drip\ndrop"), "{}", found.text);
        assert!(!found.text.contains("QUJD"));
    }

    #[test]
    fn entities_of_its_own_are_not_expanded() {
        let found = book(
            "<!DOCTYPE b [<!ENTITY a \"haha\"><!ENTITY b \"&a;&a;\">]><FictionBook><body><p>x&b;y</p></body></FictionBook>",
        )
        .unwrap();
        assert_eq!(found.text.trim(), "xy");
    }
}
