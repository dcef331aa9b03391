//! Messages, mailboxes, and what hangs on them.

use crate::{PLANTED, document, made, planted};

/// A message with an attachment.
fn with_attachment(name: &str, bytes: &[u8]) -> Vec<u8> {
    use std::fmt::Write;
    let mut packed = String::new();
    for byte in bytes {
        let _ = write!(packed, "={byte:02X}");
        if packed.len() % 72 < 3 {
            packed.push_str("=\n");
        }
    }
    format!(
        "From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: =?utf-8?q?Fl=C3=BCge?=\nDate: Mon, 1 Jan 2024 10:00:00 +0100\n\
         MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain; charset=utf-8\n\nHello body.\n\n\
         --b\nContent-Type: application/octet-stream\nContent-Disposition: attachment; filename=\"{name}\"\n\
         Content-Transfer-Encoding: quoted-printable\n\n{packed}\n--b--\n"
    )
    .into_bytes()
}

#[test]
fn a_message_has_headers_body_and_attachments() {
    let found = planted("a.eml", &with_attachment("a.docx", &made::docx(&made::word_paragraph(PLANTED))));
    assert_eq!(found.title.as_deref(), Some("Flüge"));
    for part in
        ["From: Ann <ann@example.org>", "To: bob@example.org", "Subject: Flüge", "2024-01-01", "Hello body.", "a.docx"]
    {
        assert!(found.text.contains(part), "{part}: {}", found.text);
    }
    assert_eq!(found.mime, "message/rfc822");
}

#[test]
fn a_message_is_known_without_its_ending() {
    let message = format!("Received: by x\nFrom: a@example.org\nTo: b@example.org\nSubject: s\n\n{PLANTED}\n");
    assert_eq!(planted("12345", message.as_bytes()).mime, "message/rfc822");
}

#[test]
fn a_bad_attachment_costs_only_itself() {
    let found = document("a.eml", &with_attachment("torn.docx", b"PK\x03\x04 torn"));
    assert!(found.text.contains("Hello body.") && found.text.contains("torn.docx"));
}

#[test]
fn html_bodies_lose_their_tags() {
    let message = format!(
        "From: a@example.org\nSubject: s\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n<html><body><p>{PLANTED}</p></body></html>\n"
    );
    assert!(!planted("a.eml", message.as_bytes()).text.contains("<p>"));
}

#[test]
fn legacy_charsets_are_decoded() {
    let (body, _, _) = encoding_rs::WINDOWS_1251.encode("Цапля ждёт у тихой гавани.");
    let head = "From: a@example.org\nSubject: s\nMIME-Version: 1.0\nContent-Type: text/plain; charset=windows-1251\nContent-Transfer-Encoding: 8bit\n\n";
    let found = document("a.eml", &[head.as_bytes(), &body].concat());
    assert!(found.text.contains("Цапля ждёт у тихой гавани."), "{}", found.text);
}

#[test]
fn a_mailbox_is_one_document_with_a_heading_per_message() {
    let mailbox = format!(
        "From a@example.org Mon Jan  1 00:00:00 2024\nFrom: a@example.org\nSubject: First\n\nOne.\n\n\
         From b@example.org Mon Jan  1 00:00:00 2024\nFrom: b@example.org\nSubject: Second\n\n{PLANTED}\n>From me.\n"
    );
    let found = planted("inbox", mailbox.as_bytes());
    assert_eq!(found.mime, "application/mbox");
    let (first, second) = (found.text.find("# First"), found.text.find("# Second"));
    assert!(first.is_some() && first < second, "{}", found.text);
    assert!(found.text.contains("\nFrom me."));
}

#[test]
fn outlook_messages() {
    let found = planted("a.msg", &made::msg("A_made title", &format!("<b> R&D a_b {PLANTED}")));
    assert_eq!(found.title.as_deref(), Some("A_made title"));
    assert!(found.text.contains("R&D a_b"), "nothing is escaped: {}", found.text);
}

#[test]
fn a_message_in_a_message() {
    let inside = with_attachment("note.txt", PLANTED.as_bytes());
    let head = "From: c@example.org\nSubject: Fwd\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: message/rfc822\n\n";
    let found = planted("a.eml", &[head.as_bytes(), &inside, b"\n--o--\n"].concat());
    assert!(found.text.contains("Flüge"));
}
