//! Mail: a message (RFC 5322, MIME), Outlook's, and mailboxes of many.
//!
//! One document each: subject, addresses and date, the body, then every attachment's name and text. A mailbox is one
//! document with a heading per message. Attachments are read by their own readers, within the bounds of the file around
//! them, and a bad one costs only itself.

use std::fmt::Write;

use docling::{ArchiveLimits, EmailAttachments};
use mail_parser::{Address, Message, MessageParser, MimeHeaders, PartType};

use crate::readers::{Budget, Found, Read, Refusal, inner, office, text};
use crate::{Kind, tidy};

/// One message.
pub(super) fn message(bytes: &[u8], budget: &Budget, depth: u32) -> Read {
    let message = parse(bytes)?;
    let title = message.subject().and_then(tidy::title);
    let mut text = String::new();
    print(&message, &mut text, budget, depth);
    Ok(Found { text, title, reader: "mail", pages: None })
}

/// Multipart nesting beyond this is no mail that anyone wrote, and its parser works through every level again.
const MAX_PARTS_DEEP: usize = 200;

fn parse(bytes: &[u8]) -> Result<Message<'_>, Refusal> {
    let boundaries = memchr::memmem::find_iter(bytes, b"multipart/").take(MAX_PARTS_DEEP * 10 + 1).count();
    if boundaries > MAX_PARTS_DEEP * 10 {
        return Err(Refusal::TooLarge("more parts in it than its reader takes"));
    }
    MessageParser::default().parse(bytes).ok_or(Refusal::Damaged("no header of a message"))
}

/// Outlook's own format ([MS-OXMSG]): headers and body by the office library, attachments as above.
pub(super) fn outlook(bytes: Vec<u8>, budget: &Budget, depth: u32) -> Read {
    let attachments = EmailAttachments::open(&bytes, &ArchiveLimits::default());
    let mut found = office::read(Kind::Msg, bytes)?;
    found.reader = "mail";
    let subject = found.text.trim_start().lines().next().map(|line| line.trim_start_matches("# ").to_owned());
    found.title = found.title.or(subject);
    if let Ok(attachments) = attachments {
        for entry in attachments.entries() {
            let bytes = attachments.data(entry.index).unwrap_or_default().to_vec();
            inner(&mut found.text, &entry.name, bytes, budget, depth);
        }
    }
    Ok(found)
}

/// Many messages in one file (RFC 4155, and its dialects mboxo and mboxrd).
pub(super) fn mailbox(bytes: &[u8], budget: &Budget, depth: u32) -> Read {
    let mut all = String::new();
    let mut messages = 0u32;
    for raw in split(bytes) {
        let raw = unquote(raw);
        let Ok(message) = parse(&raw) else { continue };
        messages += 1;
        let subject = message.subject().and_then(tidy::title).unwrap_or_else(|| format!("Message {messages}"));
        let _ = write!(all, "\n\n# {subject}\n\n");
        print(&message, &mut all, budget, depth);
        if all.len() as u64 / 4 > budget.max_chars {
            return Err(Refusal::TooLarge("more characters than max_doc_chars"));
        }
    }
    if messages == 0 {
        return Err(Refusal::Damaged("no message in the mailbox"));
    }
    Ok(Found { text: all, reader: "mail", pages: None, title: None })
}

/// The messages between separator lines: `From ` at the start of the file or after an empty line, a time in it, and a
/// header field in the line below, so that a sentence that begins with "From " separates nothing.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut starts = Vec::new();
    for at in memchr::memmem::find_iter(bytes, b"From ") {
        let before = &bytes[..at];
        let first = before.trim_ascii().is_empty();
        if !(first || before.ends_with(b"\n\n") || before.ends_with(b"\r\n\r\n")) {
            continue;
        }
        let Some(end) = memchr::memchr(b'\n', &bytes[at..]) else { continue };
        let (line, next) = (&bytes[at..at + end], &bytes[at + end + 1..]);
        if (first || has_time(line)) && (is_field(next) || next.starts_with(b">From ")) {
            starts.push((at, at + end + 1));
        }
    }
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([bytes.len()]);
    starts.iter().zip(ends).map(|((_, body), end)| &bytes[*body..end]).collect()
}

/// Whether `hh:mm` stands in a line (RFC 4155, appendix A: the separator ends with a date in UTC).
fn has_time(line: &[u8]) -> bool {
    line.windows(5).any(|window| matches!(window, [b'0'..=b'9', b'0'..=b'9', b':', b'0'..=b'9', b'0'..=b'9']))
}

/// Whether a header field begins here: a name of printable characters and a colon (RFC 5322 §2.2).
fn is_field(line: &[u8]) -> bool {
    let name = line.iter().take(100).position(|byte| !(byte.is_ascii_graphic() && *byte != b':'));
    name.is_some_and(|end| end > 0 && line[end] == b':')
}

/// Takes one `>` off lines that had to be marked because they begin with "From ".
fn unquote(raw: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(raw.len());
    for line in raw.split_inclusive(|byte| *byte == b'\n') {
        let marks = line.iter().take_while(|byte| **byte == b'>').count();
        let quoted = marks > 0 && line[marks..].starts_with(b"From ");
        plain.extend_from_slice(&line[usize::from(quoted)..]);
    }
    plain
}

fn print(message: &Message<'_>, text: &mut String, budget: &Budget, depth: u32) {
    headers(message, text);
    for id in &message.text_body {
        if let Some(part) = message.part(*id) {
            match &part.body {
                PartType::Text(body) => text.push_str(body),
                PartType::Html(body) => text.push_str(&html(body)),
                _ => {}
            }
            text.push_str("\n\n");
        }
    }
    for part in message.attachments() {
        let name = part.attachment_name().unwrap_or_default();
        match &part.body {
            PartType::Binary(bytes) | PartType::InlineBinary(bytes) => {
                inner(text, name, bytes.to_vec(), budget, depth);
            }
            PartType::Text(body) => inner(text, &named(name, "txt"), body.as_bytes().to_vec(), budget, depth),
            PartType::Html(body) => inner(text, &named(name, "html"), body.as_bytes().to_vec(), budget, depth),
            PartType::Message(message) => {
                let name = message.subject().unwrap_or(name).to_owned();
                inner(text, &named(&name, "eml"), message.raw_message().to_vec(), budget, depth);
            }
            PartType::Multipart(_) => {}
        }
    }
}

fn named(name: &str, ending: &str) -> String {
    if name.is_empty() || ending == "eml" { format!("{name}.{ending}") } else { name.to_owned() }
}

fn headers(message: &Message<'_>, text: &mut String) {
    if let Some(subject) = message.subject() {
        let _ = writeln!(text, "Subject: {subject}");
    }
    let fields = [("From", message.from()), ("To", message.to()), ("Cc", message.cc()), ("Bcc", message.bcc())];
    for (name, address) in fields {
        let list = address.map(addresses).unwrap_or_default();
        if !list.is_empty() {
            let _ = writeln!(text, "{name}: {list}");
        }
    }
    if let Some(date) = message.date() {
        let _ = writeln!(text, "Date: {}", date.to_rfc3339());
    }
    text.push('\n');
}

fn addresses(address: &Address<'_>) -> String {
    let one = |one: &mail_parser::Addr<'_>| match (one.name(), one.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (Some(only), None) | (None, Some(only)) => only.to_owned(),
        (None, None) => String::new(),
    };
    address.iter().map(one).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
}

/// A body that is HTML only. The parser has decoded it.
fn html(body: &str) -> String {
    let read = std::panic::AssertUnwindSafe(|| text::html_text(body.to_owned()));
    match std::panic::catch_unwind(read) {
        Ok(Ok(found)) => found.text,
        _ => mail_parser::decoders::html::html_to_text(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_that_begins_with_from_separates_nothing() {
        let mailbox =
            b"From a@x Mon Jan  1 00:00:00 2024\nSubject: one\n\nHello\n\nFrom here on it rains.\n>From there too.\n\n\
            From b@x Mon Jan  1 00:00:00 2024\nSubject: two\n\nBye\n";
        let parts = split(mailbox);
        assert_eq!(parts.len(), 2);
        let found = self::mailbox(mailbox, &Budget::new(1000, 0), 0).unwrap();
        assert!(found.text.contains("# one") && found.text.contains("# two"));
        assert!(found.text.contains("\nFrom there too."));
        assert!(found.text.contains("From here on it rains."));
    }

    proptest::proptest! {
        #[test]
        fn no_byte_of_a_mailbox_is_read_twice(bytes in "(From a@b 10:00\n|a: b\n|\n|>From x\n|text\n){0,20}") {
            let total: usize = split(bytes.as_bytes()).iter().map(|message| message.len()).sum();
            proptest::prop_assert!(total <= bytes.len());
        }
    }
}
