//! Walks, sweeps with nothing changed, and PDFs.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use super::tools::{Bastion, cpu_seconds, is_there, median};

/// A tree of `count` small files, a hundred to a folder.
fn tree(root: &Path, count: usize) -> Result<()> {
    for at in 0..count {
        let folder = root.join(format!("d{}/e{}", at / 10_000, at / 100));
        if at % 100 == 0 {
            std::fs::create_dir_all(&folder)?;
        }
        std::fs::write(folder.join(format!("note{at}.txt")), format!("note {at}\n"))?;
    }
    Ok(())
}

/// Walk and unchanged sweep of a tree against the faster of `find` and `fd`.
pub(crate) fn walk(program: &Path, count: usize) -> Result<()> {
    let home = tempfile::tempdir()?;
    let bastion = Bastion { program, home: home.path() };
    let root = home.path().join("tree");
    tree(&root, count)?;
    let root_text = root.to_str().context("the temporary folder's name")?;
    let start = Instant::now();
    bastion.run(&["up", "--once", "--quiet", root_text])?;
    println!("walk: first whole sweep of {count} files: {:.1} s", start.elapsed().as_secs_f64());
    let manifest = root.join(".agent/manifest.yaml");
    let manifest = manifest.to_str().context("the temporary folder's name")?;
    let find = median(5, || {
        let mut find = Command::new("find");
        find.args([root_text, "-name", ".agent", "-prune", "-o", "-type", "f", "-printf", "%s %T@\n"]);
        find
    })?;
    let fd = ["fdfind", "fd"].into_iter().find(|name| is_there(name));
    let fd = fd.map(|name| {
        median(5, || {
            let mut fd = Command::new(name);
            fd.args(["--unrestricted", "--exclude", ".agent", "--type", "f", ".", root_text]);
            fd
        })
    });
    let fd = fd.transpose()?;
    let peer = fd.map_or(find, |fd| fd.min(find));
    let walk = median(5, || bastion.command(&["walk", "--quiet", manifest]))?;
    let sweep = median(5, || bastion.command(&["sweep", "--once", "--quiet", manifest]))?;
    let fd = fd.map_or("not there".to_owned(), |fd| format!("{:.3} s", fd.as_secs_f64()));
    println!("walk: find {:.3} s, fd {fd}", find.as_secs_f64());
    println!(
        "walk: `bastion walk`, nothing changed: {:.3} s, {:.2}x the faster (aim 1.2)",
        walk.as_secs_f64(),
        walk.as_secs_f64() / peer.as_secs_f64()
    );
    println!(
        "walk: whole sweep, nothing changed: {:.3} s, {:.2}x the faster (aim 3)",
        sweep.as_secs_f64(),
        sweep.as_secs_f64() / peer.as_secs_f64()
    );
    Ok(())
}

/// PDF text against `pdftotext`, in processor time.
pub(crate) fn pdf(program: &Path, dir: &Path) -> Result<()> {
    if !is_there("pdftotext") {
        println!("pdf: left out, pdftotext is not there");
        return Ok(());
    }
    let home = tempfile::tempdir()?;
    let bastion = Bastion { program, home: home.path() };
    let folder = home.path().join("pdfs");
    std::fs::create_dir(&folder)?;
    let mut count = 0;
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "pdf") {
                std::fs::copy(&path, folder.join(format!("{count}.pdf")))?;
                count += 1;
            }
        }
    }
    let text = folder.to_str().context("the temporary folder's name")?;
    bastion.run(&["ca", "init"])?;
    bastion.run(&["init", text])?;
    let manifest = folder.join(".agent/manifest.yaml");
    let manifest = manifest.to_str().context("the temporary folder's name")?;
    bastion.run(&["sign", manifest])?;
    bastion.run(&["walk", "--quiet", manifest])?;
    let ours = cpu_seconds(&format!(
        "BASTION_STATE_DIR='{}' FREEAGENT_NO_EXTERNAL=1 '{}' extract --quiet '{manifest}'",
        home.path().join("state").display(),
        program.display()
    ))?;
    let peer = cpu_seconds(&format!("for pdf in '{text}'/*.pdf; do pdftotext \"$pdf\" -; done"))?;
    println!("pdf: {count} files: {ours:.2} s of CPU, pdftotext {peer:.2} s: {:.2}x (aim 1.5)", ours / peer);
    Ok(())
}
