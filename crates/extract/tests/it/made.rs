//! Small files of each kind, made from their specifications.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use zip::write::SimpleFileOptions;

/// A ZIP of `parts`, in order; `mimetype` is stored, the rest deflated.
pub(crate) fn zip(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in parts {
        let method =
            if *name == "mimetype" { zip::CompressionMethod::Stored } else { zip::CompressionMethod::Deflated };
        writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn content_types(overrides: &[(&str, &str)]) -> String {
    let mut xml = String::from(
        r#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>"#,
    );
    for (part, kind) in overrides {
        xml += &format!(
            r#"<Override PartName="{part}" ContentType="application/vnd.openxmlformats-officedocument.{kind}+xml"/>"#
        );
    }
    xml + "</Types>"
}

fn relations(targets: &[(&str, &str)]) -> String {
    let mut xml = String::from(
        r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">"#,
    );
    for (number, (kind, target)) in targets.iter().enumerate() {
        xml += &format!(
            r#"<Relationship Id="rId{}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}" Target="{target}"/>"#,
            number + 1
        );
    }
    xml + "</Relationships>"
}

const CORE: &str = r#"<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Made Title</dc:title></cp:coreProperties>"#;

/// A Word document whose body is `body`.
pub(crate) fn docx(body: &str) -> Vec<u8> {
    let types = content_types(&[("/word/document.xml", "wordprocessingml.document.main")]);
    let root = r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/><Relationship Id="rId2" Type="http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties" Target="docProps/core.xml"/></Relationships>"#;
    let document = format!(
        r#"<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{body}</w:body></w:document>"#
    );
    zip(&[
        ("[Content_Types].xml", types.as_bytes()),
        ("_rels/.rels", root.as_bytes()),
        ("word/document.xml", document.as_bytes()),
        ("docProps/core.xml", CORE.as_bytes()),
    ])
}

/// A paragraph of Word.
pub(crate) fn word_paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}

/// An Excel book of one sheet whose rows are `rows`.
pub(crate) fn xlsx(rows: &str) -> Vec<u8> {
    let types = content_types(&[
        ("/xl/workbook.xml", "spreadsheetml.sheet.main"),
        ("/xl/worksheets/sheet1.xml", "spreadsheetml.worksheet"),
    ]);
    let book = r#"<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Tides" sheetId="1" r:id="rId1"/></sheets></workbook>"#;
    let sheet = format!(
        r#"<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{rows}</sheetData></worksheet>"#
    );
    zip(&[
        ("[Content_Types].xml", types.as_bytes()),
        ("_rels/.rels", relations(&[("officeDocument", "xl/workbook.xml")]).as_bytes()),
        ("xl/workbook.xml", book.as_bytes()),
        ("xl/_rels/workbook.xml.rels", relations(&[("worksheet", "worksheets/sheet1.xml")]).as_bytes()),
        ("xl/worksheets/sheet1.xml", sheet.as_bytes()),
    ])
}

/// A PowerPoint presentation of one slide that says `text`.
pub(crate) fn pptx(text: &str) -> Vec<u8> {
    let types = content_types(&[
        ("/ppt/presentation.xml", "presentationml.presentation.main"),
        ("/ppt/slides/slide1.xml", "presentationml.slide"),
    ]);
    const NS: &str = r#"xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main""#;
    let presentation = format!(
        r#"<p:presentation {NS}><p:sldIdLst><p:sldId id="256" r:id="rId1"/></p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/></p:presentation>"#
    );
    let slide = format!(
        r#"<p:sld {NS}><p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/><p:sp><p:nvSpPr><p:cNvPr id="2" name="T"/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr><p:spPr><a:xfrm><a:off x="1" y="1"/><a:ext cx="100" cy="100"/></a:xfrm></p:spPr><p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>"#
    );
    zip(&[
        ("[Content_Types].xml", types.as_bytes()),
        ("_rels/.rels", relations(&[("officeDocument", "ppt/presentation.xml")]).as_bytes()),
        ("ppt/presentation.xml", presentation.as_bytes()),
        ("ppt/_rels/presentation.xml.rels", relations(&[("slide", "slides/slide1.xml")]).as_bytes()),
        ("ppt/slides/slide1.xml", slide.as_bytes()),
    ])
}

/// An OpenDocument file of `kind` (`text`, `spreadsheet`, `presentation`) with `body` in its body element.
pub(crate) fn open_document(kind: &str, body: &str) -> Vec<u8> {
    let mime = format!("application/vnd.oasis.opendocument.{kind}");
    let content = format!(
        r#"<?xml version="1.0"?><office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" office:version="1.3"><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"#
    );
    let manifest = format!(
        r#"<?xml version="1.0"?><manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="/" manifest:media-type="{mime}"/><manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>"#
    );
    zip(&[
        ("mimetype", mime.as_bytes()),
        ("content.xml", content.as_bytes()),
        ("META-INF/manifest.xml", manifest.as_bytes()),
    ])
}

/// An EPUB of one chapter.
pub(crate) fn epub(text: &str) -> Vec<u8> {
    let container = r#"<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"#;
    let package = r#"<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Made Title</dc:title><dc:identifier id="i">x</dc:identifier><dc:language>en</dc:language></metadata><manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>"#;
    let chapter = format!(
        r#"<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>c</title></head><body><h1>One</h1><p>{text}</p></body></html>"#
    );
    zip(&[
        ("mimetype", b"application/epub+zip"),
        ("META-INF/container.xml", container.as_bytes()),
        ("content.opf", package.as_bytes()),
        ("c.xhtml", chapter.as_bytes()),
    ])
}

/// A PDF with one page per content stream, the streams deflated.
pub(crate) fn pdf(pages: &[&[u8]]) -> Vec<u8> {
    let mut objects: Vec<Vec<u8>> = Vec::new();
    let kids: String = (0..pages.len()).map(|page| format!("{} 0 R ", 4 + 2 * page)).collect();
    objects.push(b"<</Type/Catalog/Pages 2 0 R>>".to_vec());
    objects.push(format!("<</Type/Pages/Kids[{kids}]/Count {}>>", pages.len()).into_bytes());
    objects.push(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_vec());
    for (number, content) in pages.iter().enumerate() {
        let stream = 5 + 2 * number;
        objects.push(
            format!("<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {stream} 0 R/Resources<</Font<</F1 3 0 R>>>>>>")
                .into_bytes(),
        );
        let packed = deflate(content);
        let mut object = format!("<</Length {}/Filter/FlateDecode>>stream\n", packed.len()).into_bytes();
        object.extend_from_slice(&packed);
        object.extend_from_slice(b"\nendstream");
        objects.push(object);
    }
    pdf_of(&objects, "")
}

/// A PDF of these objects, numbered from 1, the first the catalog. `trailer` is added to the trailer dictionary.
pub(crate) fn pdf_of(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        offsets.push(file.len());
        file.extend_from_slice(format!("{} 0 obj\n", number + 1).as_bytes());
        file.extend_from_slice(object);
        file.extend_from_slice(b"\nendobj\n");
    }
    let table = file.len();
    file.extend_from_slice(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).as_bytes());
    for offset in offsets {
        file.extend_from_slice(format!("{offset:010} 00000 n \n").as_bytes());
    }
    let end = format!("trailer<</Size {}/Root 1 0 R{trailer}>>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1);
    file.extend_from_slice(end.as_bytes());
    file
}

/// A content stream that shows `text` on one line.
pub(crate) fn shown(text: &str) -> Vec<u8> {
    format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET").into_bytes()
}

pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A compound file ([MS-CFB]) of these streams.
pub(crate) fn compound(streams: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    for (path, bytes) in streams {
        if let Some((folder, _)) = path.rsplit_once('/') {
            file.create_storage_all(format!("/{folder}")).unwrap();
        }
        file.create_stream(format!("/{path}")).unwrap().write_all(bytes).unwrap();
    }
    file.flush().unwrap();
    file.into_inner().into_inner()
}

/// A Word 97 document of one piece of 8-bit text ([MS-DOC] 2.5.1 FIB, 2.9.38 Clx).
pub(crate) fn doc(text: &str) -> Vec<u8> {
    let mut main = vec![0u8; 0x600];
    let text: Vec<u8> = text.bytes().chain([b'\r']).collect();
    let count = u32::try_from(text.len()).unwrap();
    let mut put = |at: usize, bytes: &[u8]| main[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x00, &0xa5ecu16.to_le_bytes());
    put(0x02, &0x00c1u16.to_le_bytes());
    put(0x06, &0x0409u16.to_le_bytes());
    put(0x0a, &0x0200u16.to_le_bytes()); // fWhichTblStm: 1Table
    put(0x0c, &0x00bfu16.to_le_bytes());
    put(0x18, &0x600u32.to_le_bytes());
    put(0x1c, &(0x600 + count).to_le_bytes());
    put(0x20, &14u16.to_le_bytes()); // csw
    put(0x3e, &22u16.to_le_bytes()); // cslw
    put(0x4c, &count.to_le_bytes()); // ccpText
    put(0x98, &0x5du16.to_le_bytes()); // cbRgFcLcb
    put(0x1a2, &0u32.to_le_bytes()); // fcClx
    put(0x1a6, &21u32.to_le_bytes()); // lcbClx
    main.extend_from_slice(&text);
    let mut table = vec![0x02];
    table.extend_from_slice(&16u32.to_le_bytes());
    table.extend_from_slice(&0u32.to_le_bytes());
    table.extend_from_slice(&count.to_le_bytes());
    table.extend_from_slice(&0u16.to_le_bytes());
    table.extend_from_slice(&((0x600u32 * 2) | 0x4000_0000).to_le_bytes());
    table.extend_from_slice(&0u16.to_le_bytes());
    compound(&[("WordDocument", &main), ("1Table", &table)])
}

/// An Excel 97 book of one sheet with `text` in its first cell ([MS-XLS] 2.4: BOF, BoundSheet8, Label, EOF).
pub(crate) fn xls(text: &str) -> Vec<u8> {
    let record = |kind: u16, body: &[u8]| {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend_from_slice(&u16::try_from(body.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(body);
        bytes
    };
    let begin = |kind: u16| {
        let mut body = 0x0600u16.to_le_bytes().to_vec();
        body.extend_from_slice(&kind.to_le_bytes());
        body.extend_from_slice(&[0; 12]);
        record(0x0809, &body)
    };
    let mut book = begin(0x0005);
    let name = b"Tides";
    let sheet_at = u32::try_from(book.len() + 4 + 8 + name.len() + 4).unwrap();
    let mut bound = sheet_at.to_le_bytes().to_vec();
    bound.extend_from_slice(&[0, 0, u8::try_from(name.len()).unwrap(), 0]);
    bound.extend_from_slice(name);
    book.extend(record(0x0085, &bound));
    book.extend(record(0x000a, &[]));
    book.extend(begin(0x0010));
    let mut label = [0; 6].to_vec();
    label.extend_from_slice(&u16::try_from(text.len()).unwrap().to_le_bytes());
    label.push(0);
    label.extend_from_slice(text.as_bytes());
    book.extend(record(0x0204, &label));
    book.extend(record(0x000a, &[]));
    compound(&[("Workbook", &book)])
}

/// A PowerPoint 97 presentation of one slide ([MS-PPT] 2.3, 2.4): a current user, an edit, a persist directory, and a
/// document container whose slide list holds the text.
pub(crate) fn ppt(text: &str) -> Vec<u8> {
    let record = |version: u16, instance: u16, kind: u16, body: &[u8]| {
        let mut bytes = (version | (instance << 4)).to_le_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(body);
        bytes
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let persist = record(0, 0, 0x03f3, &words(&[2, 0, 1, 256, 0]));
    let header = record(0, 0, 0x0f9f, &words(&[1]));
    let chars: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let chars = record(0, 0, 0x0fa0, &chars);
    let list = record(0xf, 0, 0x0ff0, &[persist, header, chars].concat());
    let atom = record(1, 0, 0x03e9, &[0; 40]);
    let document = record(0xf, 0, 0x03e8, &[atom, list, record(0, 0, 0x03ea, &[])].concat());
    let slide_atom = record(2, 0, 0x03ef, &[0; 24]);
    let slide = record(0xf, 0, 0x03ee, &slide_atom);
    let slide_at = u32::try_from(document.len()).unwrap();
    let directory_at = u32::try_from(document.len() + slide.len()).unwrap();
    let directory = record(0, 0, 0x1772, &words(&[1 | (2 << 20), 0, slide_at]));
    let edit_at = directory_at + u32::try_from(directory.len()).unwrap();
    let edit = record(0, 0, 0x0ff5, &words(&[256, 0x0300_0000, 0, directory_at, 1, 3, 0]));
    let stream = [document, slide, directory, edit].concat();
    let mut user = words(&[20, 0xe391_c05f, edit_at]);
    user.extend_from_slice(&[0, 0, 0xf4, 3, 3, 0, 0, 0]);
    let user = record(0, 0, 0x0ff6, &user);
    compound(&[("Current User", &user), ("PowerPoint Document", &stream)])
}

/// An Outlook message ([MS-OXMSG] 2.2): subject and body as UTF-16 property streams.
pub(crate) fn msg(subject: &str, body: &str) -> Vec<u8> {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    compound(&[
        ("__properties_version1.0", &[0; 32]),
        ("__substg1.0_0037001F", &wide(subject)),
        ("__substg1.0_1000001F", &wide(body)),
        ("__substg1.0_001A001F", &wide("IPM.Note")),
    ])
}
