//! What kind of file is it? By its bytes first, by its name where bytes don't tell.
//!
//! Signatures: the formats' own (PDF 32000-1 §7.5.2, APPNOTE.TXT 4.3, [MS-CFB] 2.2, RFC 1952, POSIX ustar, RTF 1.9);
//! inside a ZIP the names of its parts (OPC, ODF `mimetype`, EPUB OCF). Never an error: what nobody knows is
//! [`Kind::Unknown`].

use std::io::{Cursor, Read};

use docling::InputFormat;

use crate::charset;

/// A kind of file that has a reader, or that is known to have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are the formats'")]
pub enum Kind {
    Text,
    Markdown,
    Html,
    Xml,
    Json,
    Csv,
    Pdf,
    Docx,
    Xlsx,
    Xlsb,
    Xls,
    Pptx,
    Doc,
    Ppt,
    Rtf,
    Odt,
    Ods,
    Odp,
    Epub,
    Fb2,
    Eml,
    Msg,
    Mbox,
    /// An office file in an encrypting envelope ([MS-OFFCRYPTO] 2.3.4).
    EncryptedOffice,
    Zip,
    Tar,
    SevenZip,
    Gzip,
    Image,
    /// A format of the past or of other vendors that the office library reads: Pages, WordPerfect, Visio, DjVu and so on.
    OtherOffice,
    Unknown,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detected {
    /// Media type (IANA where registered).
    pub mime: &'static str,
    /// Kind, which decides the reader.
    pub kind: Kind,
}

/// What `bytes` are, with `name` as a hint.
pub fn detect(name: &str, bytes: &[u8]) -> Detected {
    let ending = ending(name);
    let kind = binary(bytes, &ending)
        .unwrap_or_else(|| if charset::looks_like_text(bytes) { text(bytes, &ending) } else { Kind::Unknown });
    Detected { mime: mime(kind, bytes, &ending), kind }
}

/// The part of a name after its last dot, in lower case.
pub(crate) fn ending(name: &str) -> String {
    name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default()
}

fn binary(bytes: &[u8], ending: &str) -> Option<Kind> {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    let head = &bytes[..bytes.len().min(1024)];
    if memchr::memmem::find(head, b"%PDF-").is_some() {
        return Some(Kind::Pdf);
    }
    if starts(b"PK\x03\x04") || starts(b"PK\x05\x06") {
        return Some(zip_kind(bytes, ending));
    }
    if starts(&[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]) {
        return Some(compound_kind(bytes, ending));
    }
    if starts(b"7z\xbc\xaf\x27\x1c") {
        return Some(Kind::SevenZip);
    }
    if starts(&[0x1f, 0x8b]) {
        return Some(Kind::Gzip);
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return Some(Kind::Tar);
    }
    if is_image(bytes) {
        return Some(Kind::Image);
    }
    if head.trim_ascii_start().starts_with(b"{\\rtf") {
        return Some(Kind::Rtf);
    }
    if charset::looks_like_text(bytes) {
        return None;
    }
    match InputFormat::detect(bytes)? {
        InputFormat::Doc => Some(Kind::Doc),
        InputFormat::WordPerfect
        | InputFormat::Djvu
        | InputFormat::PalmDoc
        | InputFormat::MacWp
        | InputFormat::Lwp
        | InputFormat::T602 => Some(Kind::OtherOffice),
        _ => None,
    }
}

fn is_image(bytes: &[u8]) -> bool {
    let riff = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let bitmap = bytes.starts_with(b"BM") && bytes.get(6..10) == Some(&[0; 4]);
    let signatures: [&[u8]; 6] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*"];
    riff || bitmap || signatures.iter().any(|magic| bytes.starts_with(magic))
}

fn zip_kind(bytes: &[u8], ending: &str) -> Kind {
    let Ok(mut archive) = zip::ZipArchive::new(Cursor::new(bytes)) else {
        // Its directory is damaged; the name is all that is left.
        return by_office_ending(ending).unwrap_or(Kind::Zip);
    };
    let mut mimetype = String::new();
    if let Ok(part) = archive.by_name("mimetype") {
        let _ = part.take(128).read_to_string(&mut mimetype);
    }
    let open_document = |kind: &str| mimetype.trim().starts_with(&format!("application/vnd.oasis.opendocument.{kind}"));
    let has = |part: &str| archive.index_for_name(part).is_some();
    if has("word/document.xml") {
        Kind::Docx
    } else if has("xl/workbook.bin") {
        Kind::Xlsb
    } else if has("xl/workbook.xml") {
        Kind::Xlsx
    } else if has("ppt/presentation.xml") {
        Kind::Pptx
    } else if open_document("text") {
        Kind::Odt
    } else if open_document("spreadsheet") {
        Kind::Ods
    } else if open_document("presentation") {
        Kind::Odp
    } else if mimetype.trim() == "application/epub+zip" || has("META-INF/container.xml") && ending == "epub" {
        Kind::Epub
    } else if has("[Content_Types].xml") {
        // A package whose main part has another name; its relations say which.
        by_office_ending(ending).unwrap_or(Kind::OtherOffice)
    } else if matches!(ending, "pages" | "numbers" | "key" | "hwpx" | "vsdx") {
        Kind::OtherOffice
    } else if has_fiction_book(archive.file_names(), archive.len()) {
        Kind::Fb2
    } else {
        Kind::Zip
    }
}

/// `book.fb2.zip` holds one book and nothing else.
fn has_fiction_book<'a>(mut names: impl Iterator<Item = &'a str>, count: usize) -> bool {
    count == 1 && names.all(|name| ending(name) == "fb2")
}

fn compound_kind(bytes: &[u8], ending: &str) -> Kind {
    match InputFormat::detect(bytes) {
        Some(InputFormat::Doc) => Kind::Doc,
        Some(InputFormat::Xls) => Kind::Xls,
        Some(InputFormat::Ppt) => Kind::Ppt,
        Some(InputFormat::Email) => Kind::Msg,
        Some(_) => Kind::OtherOffice,
        None if has_stream(bytes, "EncryptedPackage") => Kind::EncryptedOffice,
        None => by_office_ending(ending).unwrap_or(Kind::Unknown),
    }
}

/// Whether the name of a stream stands anywhere in a compound file, as its directory writes it (UTF-16LE).
fn has_stream(bytes: &[u8], name: &str) -> bool {
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    memchr::memmem::find(bytes, &name).is_some()
}

fn by_office_ending(ending: &str) -> Option<Kind> {
    Some(match ending {
        "docx" | "docm" | "dotx" | "dotm" => Kind::Docx,
        "xlsx" | "xlsm" | "xltx" | "xltm" => Kind::Xlsx,
        "xlsb" => Kind::Xlsb,
        "pptx" | "pptm" | "ppsx" | "ppsm" | "potx" => Kind::Pptx,
        "doc" | "dot" => Kind::Doc,
        "xls" | "xlt" => Kind::Xls,
        "ppt" | "pps" | "pot" => Kind::Ppt,
        "msg" => Kind::Msg,
        "odt" | "ott" => Kind::Odt,
        "ods" | "ots" => Kind::Ods,
        "odp" | "otp" => Kind::Odp,
        "epub" => Kind::Epub,
        "sdw" | "sdd" | "sda" | "vor" | "wps" | "hwp" | "qpw" | "wb3" => Kind::OtherOffice,
        _ => return None,
    })
}

fn text(bytes: &[u8], ending: &str) -> Kind {
    // Enough to see a declaration; a cut character at the end does no harm.
    let decoded = charset::decode(&bytes[..bytes.len().min(8192) & !3], None);
    let head = decoded.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let lower = head.to_ascii_lowercase();
    if head.starts_with('<') {
        if lower.contains("<fictionbook") {
            return Kind::Fb2;
        }
        let html = ["<!doctype html", "<html"].iter().any(|tag| lower.contains(tag))
            || ["<head", "<body"].iter().any(|tag| lower.starts_with(tag));
        if html {
            return Kind::Html;
        }
        if lower.starts_with("<?xml") {
            return if matches!(ending, "html" | "htm" | "xhtml") { Kind::Html } else { Kind::Xml };
        }
    }
    if head.starts_with("From ") && head.split_once('\n').is_some_and(|(_, rest)| headers(rest) > 0) {
        return Kind::Mbox;
    }
    match ending {
        "md" | "markdown" | "mdown" | "mkd" => return Kind::Markdown,
        "html" | "htm" | "xhtml" => return Kind::Html,
        "csv" | "tsv" => return Kind::Csv,
        "json" | "jsonl" | "ndjson" | "geojson" => return Kind::Json,
        "xml" | "rss" | "atom" | "xsd" | "xsl" | "svg" => return Kind::Xml,
        "fb2" => return Kind::Fb2,
        "eml" | "mht" | "mhtml" => return Kind::Eml,
        "mbox" => return Kind::Mbox,
        _ => {}
    }
    if headers(head) >= 3 { Kind::Eml } else { Kind::Text }
}

/// How many header fields of a mail message (RFC 5322) `head` begins with.
fn headers(head: &str) -> usize {
    const KNOWN: [&str; 14] = [
        "from",
        "to",
        "cc",
        "subject",
        "date",
        "received",
        "return-path",
        "message-id",
        "mime-version",
        "content-type",
        "delivered-to",
        "sender",
        "reply-to",
        "x-mailer",
    ];
    let mut known = 0;
    for line in head.lines().take(100) {
        if line.starts_with([' ', '\t']) {
            continue;
        }
        let Some((name, _)) = line.split_once(':') else { break };
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            break;
        }
        known += usize::from(KNOWN.contains(&name.to_ascii_lowercase().as_str()));
    }
    known
}

fn mime(kind: Kind, bytes: &[u8], ending: &str) -> &'static str {
    match kind {
        Kind::Text => "text/plain",
        Kind::Markdown => "text/markdown",
        Kind::Html => "text/html",
        Kind::Xml => "application/xml",
        Kind::Json => "application/json",
        Kind::Csv if ending == "tsv" => "text/tab-separated-values",
        Kind::Csv => "text/csv",
        Kind::Pdf => "application/pdf",
        Kind::Docx if ending == "docm" => "application/vnd.ms-word.document.macroEnabled.12",
        Kind::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        Kind::Xlsx if ending == "xlsm" => "application/vnd.ms-excel.sheet.macroEnabled.12",
        Kind::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        Kind::Xlsb => "application/vnd.ms-excel.sheet.binary.macroEnabled.12",
        Kind::Xls => "application/vnd.ms-excel",
        Kind::Pptx => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        Kind::Doc => "application/msword",
        Kind::Ppt => "application/vnd.ms-powerpoint",
        Kind::Rtf => "application/rtf",
        Kind::Odt => "application/vnd.oasis.opendocument.text",
        Kind::Ods => "application/vnd.oasis.opendocument.spreadsheet",
        Kind::Odp => "application/vnd.oasis.opendocument.presentation",
        Kind::Epub => "application/epub+zip",
        Kind::Fb2 => "application/x-fictionbook+xml",
        Kind::Eml => "message/rfc822",
        Kind::Msg => "application/vnd.ms-outlook",
        Kind::Mbox => "application/mbox",
        Kind::EncryptedOffice => "application/x-ole-storage",
        Kind::Zip => "application/zip",
        Kind::Tar => "application/x-tar",
        Kind::SevenZip => "application/x-7z-compressed",
        Kind::Gzip => "application/gzip",
        Kind::Image => image_mime(bytes),
        Kind::OtherOffice | Kind::Unknown => "application/octet-stream",
    }
}

fn image_mime(bytes: &[u8]) -> &'static str {
    match bytes {
        [0x89, ..] => "image/png",
        [0xff, ..] => "image/jpeg",
        [b'G', ..] => "image/gif",
        [b'I' | b'M', ..] => "image/tiff",
        [b'R', ..] => "image/webp",
        _ => "image/bmp",
    }
}
