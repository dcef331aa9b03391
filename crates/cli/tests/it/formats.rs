//! Small real documents of every kind that a test can make, each holding the same lines.

use std::io::{Cursor, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;

fn zipped(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Each line as one element made by `wrap`.
fn each(lines: &[&str], wrap: impl Fn(&str) -> String) -> String {
    lines.iter().map(|line| wrap(line)).collect()
}

fn docx(lines: &[&str]) -> Vec<u8> {
    let body = each(lines, |line| format!("<w:p><w:r><w:t>{line}</w:t></w:r></w:p>"));
    zipped(&[
        (
            "[Content_Types].xml",
            r#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#,
        ),
        (
            "_rels/.rels",
            r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>"#,
        ),
        (
            "word/document.xml",
            &format!(
                r#"<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{body}</w:body></w:document>"#
            ),
        ),
    ])
}

fn odt(lines: &[&str]) -> Vec<u8> {
    let body = each(lines, |line| format!("<text:p>{line}</text:p>"));
    zipped(&[
        ("mimetype", "application/vnd.oasis.opendocument.text"),
        (
            "META-INF/manifest.xml",
            r#"<?xml version="1.0"?><manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="/" manifest:media-type="application/vnd.oasis.opendocument.text"/><manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>"#,
        ),
        (
            "content.xml",
            &format!(
                r#"<?xml version="1.0"?><office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2"><office:body><office:text>{body}</office:text></office:body></office:document-content>"#
            ),
        ),
    ])
}

fn xlsx(lines: &[&str]) -> Vec<u8> {
    let mut row = 0;
    let rows = lines.iter().map(|line| {
        row += 1;
        format!(r#"<row r="{row}"><c r="A{row}" t="inlineStr"><is><t>{line}</t></is></c></row>"#)
    });
    let rows: String = rows.collect();
    zipped(&[
        (
            "[Content_Types].xml",
            r#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>"#,
        ),
        (
            "_rels/.rels",
            r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#,
        ),
        (
            "xl/workbook.xml",
            r#"<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="s" sheetId="1" r:id="rId1"/></sheets></workbook>"#,
        ),
        (
            "xl/_rels/workbook.xml.rels",
            r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#,
        ),
        (
            "xl/worksheets/sheet1.xml",
            &format!(
                r#"<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{rows}</sheetData></worksheet>"#
            ),
        ),
    ])
}

fn epub(lines: &[&str]) -> Vec<u8> {
    let body = each(lines, |line| format!("<p>{line}</p>"));
    zipped(&[
        ("mimetype", "application/epub+zip"),
        (
            "META-INF/container.xml",
            r#"<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="c.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"#,
        ),
        (
            "c.opf",
            r#"<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">x</dc:identifier><dc:title>Book</dc:title><dc:language>en</dc:language></metadata><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>"#,
        ),
        (
            "a.xhtml",
            &format!(
                r#"<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title></head><body>{body}</body></html>"#
            ),
        ),
    ])
}

fn pdf(lines: &[&str]) -> Vec<u8> {
    let text = each(lines, |line| {
        format!("({}) Tj 0 -20 Td ", line.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)"))
    });
    let content = format!("BT /F1 12 Tf 40 700 Td {text}ET");
    let objects = [
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>>>>>>>".to_owned(),
        format!("<</Length {}>>stream\n{content}\nendstream", content.len()),
    ];
    let mut file = String::from("%PDF-1.4\n");
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let start = file.len();
    file.push_str("xref\n0 5\n0000000000 65535 f \n");
    places.iter().for_each(|place| file.push_str(&format!("{place:010} 00000 n \n")));
    file.push_str(&format!("trailer<</Size 5/Root 1 0 R>>\nstartxref\n{start}\n%%EOF"));
    file.into_bytes()
}

/// Writes one document of each kind into `dir`, each with these lines (plain ASCII without markup characters), and
/// gives their names.
pub(crate) fn write_all(dir: &Path, lines: &[&str]) -> Vec<&'static str> {
    let plain = lines.join("\n") + "\n";
    let json = serde_json::to_vec_pretty(&serde_json::json!({ "notes": lines })).unwrap();
    let mail = format!(
        "From: a.sender@example.net\r\nTo: b@example.net\r\nSubject: notes\r\nDate: Mon, 2 Mar 2026 10:00:00 +0000\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{}\r\n",
        lines.join("\r\n")
    );
    let utf16: Vec<u8> = std::iter::once(0xfeff_u16).chain(plain.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let documents: Vec<(&'static str, Vec<u8>)> = vec![
        ("plain.txt", plain.clone().into_bytes()),
        ("utf16.txt", utf16),
        ("note.md", format!("# Notes\n\n{plain}").into_bytes()),
        ("page.html", format!("<html><head><title>t</title></head><body>{}</body></html>", each(lines, |line| format!("<p>{line}</p>"))).into_bytes()),
        ("table.csv", format!("line\n{}", each(lines, |line| format!("\"{line}\"\n"))).into_bytes()),
        ("data.json", json),
        ("data.xml", format!("<?xml version=\"1.0\"?><notes>{}</notes>", each(lines, |line| format!("<n>{line}</n>"))).into_bytes()),
        ("mail.eml", mail.clone().into_bytes()),
        ("mail.mbox", format!("From a.sender@example.net Mon Mar  2 10:00:00 2026\n{}\n", mail.replace("\r\n", "\n")).into_bytes()),
        ("letter.rtf", format!("{{\\rtf1\\ansi {}}}", each(lines, |line| format!("{line}\\par\n"))).into_bytes()),
        ("book.fb2", format!("<?xml version=\"1.0\"?><FictionBook xmlns=\"http://www.gribuser.ru/xml/fictionbook/2.0\"><body><section>{}</section></body></FictionBook>", each(lines, |line| format!("<p>{line}</p>"))).into_bytes()),
        ("book.epub", epub(lines)),
        ("letter.docx", docx(lines)),
        ("letter.odt", odt(lines)),
        ("sheet.xlsx", xlsx(lines)),
        ("paper.pdf", pdf(lines)),
    ];
    for (name, bytes) in &documents {
        std::fs::write(dir.join(name), bytes).unwrap();
    }
    documents.into_iter().map(|(name, _)| name).collect()
}
