//! Programs of the machine, in their cage: played by small scripts, which try what they must not.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use bastion_extract::{Document, ExternalReaders, Limits, Outcome, Pool, PoolConfig, Tool};

use crate::{PLANTED, config, extract_with, failure, made};

/// A folder with a program `name` that runs `script`.
fn program(name: &'static str, script: &str) -> (tempfile::TempDir, Tool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    (folder, Tool { name, path: Some(path), version: None })
}

fn with(tools: Vec<Tool>) -> Pool {
    Pool::new(PoolConfig { external: ExternalReaders::of(tools), ..config() }).unwrap()
}

fn read(pool: &Pool, name: &str, bytes: &[u8]) -> Outcome {
    extract_with(pool, name, bytes, Limits { seconds: 10, ..Limits::default() })
}

fn document(outcome: Outcome) -> Document {
    match outcome {
        Outcome::Text(document) => document,
        other => panic!("{other:?}"),
    }
}

/// A PDF without text, and a PNG file's first bytes.
fn blank_pdf() -> Vec<u8> {
    made::pdf(&[b"0 0 m 10 10 l S"])
}
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

#[test]
fn a_pdf_without_text_is_given_to_pdftotext() {
    let (_folder, tool) = program("pdftotext", &format!("cat >/dev/null; printf 'Page one.\\f{PLANTED}\\n\\f'"));
    let found = document(read(&with(vec![tool]), "a.pdf", &blank_pdf()));
    assert_eq!(found.text, format!("Page one.\u{c}{PLANTED}"));
    assert_eq!((found.reader.as_str(), found.pages), ("pdftotext", Some(2)));
}

#[test]
fn an_image_is_given_to_tesseract() {
    let (_folder, tool) = program("tesseract", &format!("cat >/dev/null; echo '{PLANTED}'"));
    let found = document(read(&with(vec![tool]), "a.png", PICTURE));
    assert_eq!((found.text.as_str(), found.mime.as_str()), (PLANTED, "image/png"));
}

#[test]
fn what_a_built_in_reader_reads_is_given_to_nobody() {
    let (_folder, tool) = program("pdftotext", "echo wrong");
    let found = document(read(&with(vec![tool]), "a.pdf", &made::pdf(&[&made::shown(PLANTED)])));
    assert_eq!(found.reader, "pdf");
}

#[test]
fn a_program_that_fails_hangs_or_floods_changes_nothing() {
    for script in ["exit 1", "cat >/dev/null; sleep 600", "yes", "kill -9 $$", "cat >/dev/null"] {
        let (_folder, tool) = program("tesseract", script);
        let pool = with(vec![tool]);
        let limits = Limits { seconds: 3, max_doc_chars: 100_000, ..Limits::default() };
        let outcome = extract_with(&pool, "a.png", PICTURE, limits);
        assert!(matches!(outcome, Outcome::Skipped { .. }), "{script}: {outcome:?}");
    }
}

/// Each line that the script can say is something it must not be able to do.
#[test]
fn a_program_sees_none_of_the_owners_files_and_no_network() {
    let private = tempfile::tempdir().unwrap();
    let secret = private.path().join("secret");
    std::fs::write(&secret, "SECRET\n").unwrap();
    let attempts = format!(
        "cat >/dev/null\ncat {secret} 2>/dev/null\nls / >/dev/null 2>&1 && echo LISTED\n\
         (echo x > {folder}/new) 2>/dev/null && echo WROTE\ncat /etc/passwd >/dev/null 2>&1 && echo PASSWD\n\
         cat /proc/$PPID/environ >/dev/null 2>&1 && echo ENVIRON\necho done",
        secret = secret.display(),
        folder = private.path().display()
    );
    let (_folder, tool) = program("tesseract", &attempts);
    // The control: outside, the same script does all of it.
    let free = Command::new(tool.path.as_deref().unwrap()).stdin(std::process::Stdio::null()).output().unwrap();
    let free = String::from_utf8(free.stdout).unwrap();
    for word in ["SECRET", "LISTED", "WROTE", "PASSWD"] {
        assert!(free.contains(word), "{word} in {free}");
    }
    assert_eq!(document(read(&with(vec![tool]), "a.png", PICTURE)).text, "done");
}

#[test]
fn an_office_file_that_is_torn_is_given_to_soffice() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("made.pdf"), made::pdf(&[&made::shown(PLANTED)])).unwrap();
    let path = folder.path().join("soffice");
    // Its output folder is the argument after --outdir.
    let script = "#!/bin/sh\nwhile [ \"$1\" != --outdir ]; do shift; done\ncat \"$(dirname \"$0\")/made.pdf\" > \"$2/input.pdf\"\n";
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let tool = Tool { name: "soffice", path: Some(path), version: None };
    let whole = made::docx(&made::word_paragraph("x"));
    let torn = &whole[..whole.len() / 2];
    assert!(failure(&read(&with(Vec::new()), "a.docx", torn)).is_some());
    let found = document(read(&with(vec![tool]), "a.docx", torn));
    assert_eq!((found.text.as_str(), found.reader.as_str()), (PLANTED, "soffice"));
    assert!(found.mime.contains("wordprocessingml"));
}

/// The program itself, not a script in its place, starts and reads in the cage.
#[test]
fn the_real_pdftotext_works_in_its_cage() {
    let Some(real) = on_path("pdftotext") else {
        println!("SKIPPED: pdftotext is not installed");
        return;
    };
    let (folder, tool) = program(
        "pdftotext",
        &format!("cat >/dev/null; exec {} -q -enc UTF-8 \"$(dirname \"$0\")/real.pdf\" -", real.display()),
    );
    std::fs::write(folder.path().join("real.pdf"), made::pdf(&[&made::shown(PLANTED)])).unwrap();
    assert_eq!(document(read(&with(vec![tool]), "a.pdf", &blank_pdf())).text, PLANTED);
}

fn on_path(name: &str) -> Option<PathBuf> {
    let found = bastion_extract::probe_external().into_iter().find(|tool| tool.name == name)?;
    assert_eq!(found.path.is_some(), found.version.is_some(), "what is found tells its version");
    found.path.filter(|path| Path::new(path).is_file())
}
