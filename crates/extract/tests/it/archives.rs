//! Archives are listed; they are opened as deep as the owner allows.

use std::io::Write;

use bastion_extract::{Limits, Outcome};

use crate::{PLANTED, extract_with, made, pool};

fn text(name: &str, bytes: &[u8], archive_depth: u32) -> String {
    match extract_with(&pool(), name, bytes, Limits { archive_depth, ..Limits::default() }) {
        Outcome::Text(document) => document.text,
        other => panic!("{other:?}"),
    }
}

fn tar(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, bytes).unwrap();
    archive.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn zip_tar_and_gzip_are_listed_and_opened_only_when_allowed() {
    let inside = PLANTED.as_bytes();
    let cases = [
        ("a.zip", made::zip(&[("letters/note.txt", inside)])),
        ("a.tar", tar("letters/note.txt", inside)),
        ("a.tar.gz", gzip(&tar("letters/note.txt", inside))),
        ("note.txt.gz", gzip(inside)),
    ];
    for (name, bytes) in cases {
        let listed = text(name, &bytes, 0);
        assert!(listed.contains("note.txt") && !listed.contains(PLANTED), "{name}: {listed}");
        assert!(text(name, &bytes, 1).contains(PLANTED), "{name}");
    }
}

#[test]
fn depth_counts_archives_in_archives() {
    let nested = made::zip(&[("inner.zip", &made::zip(&[("note.txt", PLANTED.as_bytes())]))]);
    let once = text("a.zip", &nested, 1);
    assert!(once.contains("inner.zip") && !once.contains(PLANTED));
    assert!(text("a.zip", &nested, 2).contains(PLANTED));
}

#[test]
fn seven_zip_is_listed() {
    let mut writer = sevenz_rust2::ArchiveWriter::new(std::io::Cursor::new(Vec::new())).unwrap();
    let entry = sevenz_rust2::ArchiveEntry::new_file("letters/note.txt");
    writer.push_archive_entry(entry, Some(PLANTED.as_bytes())).unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    assert_eq!(text("a.7z", &bytes, 0), "letters/note.txt");
}
