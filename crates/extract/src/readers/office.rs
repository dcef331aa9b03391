//! Office files, e-books and HTML, by the library `docling`: its document model, printed as plain text.

use std::io::Cursor;

use docling::{
    ContentLayer, ContentLayers, ConversionError, DocumentConverter, InputFormat, MarkdownExportOptions, SourceDocument,
};

use crate::Kind;
use crate::detect;
use crate::readers::{Found, Read, Refusal, flatten};

/// An office file of a known kind.
pub(super) fn read(kind: Kind, bytes: Vec<u8>) -> Read {
    let (format, extension) = match kind {
        Kind::Docx => (InputFormat::Docx, "docx"),
        Kind::Xlsx | Kind::Xlsb => (InputFormat::Xlsx, "xlsx"),
        Kind::Xls => (InputFormat::Xls, "xls"),
        Kind::Pptx => (InputFormat::Pptx, "pptx"),
        Kind::Doc => (InputFormat::Doc, "doc"),
        Kind::Ppt => (InputFormat::Ppt, "ppt"),
        Kind::Rtf => (InputFormat::Rtf, "rtf"),
        Kind::Odt => (InputFormat::Odt, "odt"),
        Kind::Ods => (InputFormat::Ods, "ods"),
        Kind::Odp => (InputFormat::Odp, "odp"),
        Kind::Epub => (InputFormat::Epub, "epub"),
        Kind::Msg => (InputFormat::Email, "msg"),
        _ => return Err(Refusal::Unsupported),
    };
    if bytes.starts_with(b"PK") {
        check_sizes(&bytes)?;
    }
    convert(format, extension, flatten::package(kind, bytes), "office")
}

/// The largest part of markup in a package, unpacked, in bytes. The worker's environment tells the library the same.
pub(crate) const MAX_PART: u64 = 256 << 20;

/// Refuses a package with a part of markup that says it is larger, unpacked, than [`MAX_PART`]. One that is and says
/// otherwise is stopped by the library at the same size. Pictures and films may be as large as they like: nobody
/// unpacks them.
fn check_sizes(bytes: &[u8]) -> Result<(), Refusal> {
    let Ok(mut archive) = zip::ZipArchive::new(Cursor::new(bytes)) else { return Ok(()) };
    let markup = |name: &str| {
        matches!(detect::ending(name).as_str(), "xml" | "rels" | "bin" | "html" | "xhtml" | "htm" | "opf" | "ncx")
    };
    for index in 0..archive.len() {
        if let Ok(part) = archive.by_index_raw(index)
            && part.size() > MAX_PART
            && markup(part.name())
        {
            return Err(Refusal::TooLarge("a part of it is larger, unpacked, than its reader takes"));
        }
    }
    Ok(())
}

/// A file of a kind that only the library knows.
pub(super) fn other(name: &str, bytes: Vec<u8>) -> Read {
    let extension = detect::ending(name);
    let format = InputFormat::detect(&bytes).or_else(|| InputFormat::from_extension(&extension));
    match format {
        Some(InputFormat::Image | InputFormat::Audio | InputFormat::Video | InputFormat::Pdf) | None => {
            Err(Refusal::Unsupported)
        }
        Some(format) => convert(format, &extension, bytes, "office"),
    }
}

/// Converts `bytes` and prints them.
pub(super) fn convert(format: InputFormat, extension: &str, bytes: Vec<u8>, reader: &'static str) -> Read {
    let source = SourceDocument {
        // The library puts the name into messages and, for some formats, into the text.
        name: String::new(),
        format,
        bytes,
        extension: Some(extension.to_owned()),
        path: None,
        base_url: None,
        encoding: None,
        media_type: None,
    };
    let converter = DocumentConverter::new()
        .fetch_images(false)
        .compact_tables(true)
        .skip_empty_cells(true)
        // Without it a word whose letters differ in style falls apart.
        .strict(true);
    let metadata = converter.document_metadata(&source);
    let pages = metadata.properties.get("pages").or_else(|| metadata.properties.get("slides"));
    let pages = pages.and_then(|count| count.parse().ok()).filter(|count| *count > 0);
    let document = converter.convert(source).map_err(|error| refusal(&error))?.document;
    let options = MarkdownExportOptions {
        // Comments, headers, footers and hidden sheets are text of the document too.
        layers: ContentLayers::BODY
            .with(ContentLayer::Furniture)
            .with(ContentLayer::Notes)
            .with(ContentLayer::Invisible),
        traverse_pictures: true,
        ..MarkdownExportOptions::plain_text()
    };
    let (text, _) = document.export_to_markdown_with_options(&options);
    Ok(Found { text: without_rules(&text), pages, title: metadata.title, reader })
}

/// Leaves out the lines `| - | - |` that tell Markdown a table's head from its body.
fn without_rules(text: &str) -> String {
    let rule = |line: &str| {
        let line = line.trim();
        line.len() > 2
            && line.starts_with('|')
            && line.contains('-')
            && line.bytes().all(|byte| b"|-: ".contains(&byte))
    };
    let mut out = String::with_capacity(text.len());
    text.split_inclusive('\n').filter(|line| !rule(line)).for_each(|line| out.push_str(line));
    out
}

fn refusal(error: &ConversionError) -> Refusal {
    if error.encryption().is_some() {
        return Refusal::Encrypted;
    }
    if error.limit().is_some() {
        return Refusal::TooLarge("a table of it has more cells than its reader takes");
    }
    let words = error.to_string().to_ascii_lowercase();
    let says = |any: &[&str]| any.iter().any(|word| words.contains(word));
    match error {
        ConversionError::UnknownFormat { .. } | ConversionError::UnsupportedFormat(_) => Refusal::Unsupported,
        _ if says(&["encrypted", "password", "decrypt"]) => Refusal::Encrypted,
        _ if says(&["exceeds", "too large", "limit", "bomb"]) => {
            Refusal::TooLarge("a part of it is larger, unpacked, than its reader takes")
        }
        _ => Refusal::Damaged("its reader could not make sense of it"),
    }
}
