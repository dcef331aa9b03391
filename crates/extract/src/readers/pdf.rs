//! PDF, by the library `pdf_oxide`: the text layer, page by page.

use pdf_oxide::PdfDocument;
use pdf_oxide::error::Error;
use pdf_oxide::object::Object;
use pdf_oxide::optional_content::decode_pdf_text_string;

use crate::readers::{Budget, Found, Read, Refusal};
use crate::tidy;

/// The text of every page, [`tidy::PAGE_BREAK`] between two.
pub(super) fn read(bytes: Vec<u8>, budget: &Budget) -> Read {
    let document = PdfDocument::from_bytes(bytes).map_err(|error| refusal(&error))?;
    // Most encrypted files open with the empty user password (PDF 32000-1 §7.6.3.1): they restrict, they don't hide.
    if document.is_encrypted() && !document.authenticate(b"").unwrap_or(false) {
        return Err(Refusal::Encrypted);
    }
    let count = document.page_count().map_err(|error| refusal(&error))?;
    let mut text = String::new();
    let mut unread = None;
    for page in 0..count {
        if page > 0 {
            text.push(tidy::PAGE_BREAK);
        }
        match document.extract_text(page) {
            Ok(page_text) => text.push_str(&page_text),
            Err(error) => unread = Some(refusal(&error)),
        }
        if text.len() as u64 / 4 > budget.max_chars {
            return Err(Refusal::TooLarge("more characters than max_doc_chars"));
        }
    }
    let blank = text.trim().is_empty();
    match unread.or_else(|| if blank { unpackable(&document, count) } else { None }) {
        // A page that can't be read is a gap; a file of such pages is damaged.
        Some(refusal) if blank => Err(refusal),
        _ => Ok(Found { text, pages: u32::try_from(count).ok(), title: title(&document), reader: "pdf" }),
    }
}

/// Why a file seems to have no text although it may have some: the library passes over a page whose content can't be
/// unpacked as if it were blank.
fn unpackable(document: &PdfDocument, pages: usize) -> Option<Refusal> {
    const LOOKED_AT: usize = 100;
    (0..pages.min(LOOKED_AT)).find_map(|page| match document.get_page_content_data(page) {
        Ok(_) => None,
        Err(Error::Decode(_)) => Some(Refusal::TooLarge("a page of it is larger, unpacked, than its reader takes")),
        Err(_) => Some(Refusal::Damaged("its pages could not be read")),
    })
}

/// `Title` of the information dictionary (PDF 32000-1 §14.3.3).
fn title(document: &PdfDocument) -> Option<String> {
    let follow = |object: &Object| match object.as_reference() {
        Some(reference) => document.load_object(reference).ok(),
        None => Some(object.clone()),
    };
    let information = follow(document.trailer().as_dict()?.get("Info")?)?;
    let title = follow(information.as_dict()?.get("Title")?)?;
    Some(decode_pdf_text_string(title.as_string()?))
}

fn refusal(error: &Error) -> Refusal {
    match error {
        Error::EncryptedPdf => Refusal::Encrypted,
        _ => Refusal::Damaged("its pages could not be read"),
    }
}
