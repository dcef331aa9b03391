//! Reads the files given and prints a line for each: kind, outcome, characters, seconds. The program is its own worker.
//!
//! `extract [--uncaged] [--jobs N] [--text DIR] [--archive-depth N] FILE…`
#![allow(clippy::disallowed_methods, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use bastion_extract::{ExternalReaders, Job, Limits, Outcome, Pool, PoolConfig};

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "__extract-worker") {
        return bastion_extract::worker_main();
    }
    let uncaged = flag(&mut args, "--uncaged");
    let external = flag(&mut args, "--external");
    let jobs = option(&mut args, "--jobs").and_then(|n| n.parse().ok()).unwrap_or(2);
    let texts = option(&mut args, "--text").map(PathBuf::from);
    let archive_depth = option(&mut args, "--archive-depth").and_then(|n| n.parse().ok()).unwrap_or(0);
    let limits = Limits { archive_depth, ..Limits::default() };
    let config = PoolConfig {
        worker: std::env::current_exe().unwrap_or_default(),
        worker_args: vec!["__extract-worker".into()],
        workers: jobs,
        uncaged,
        external: if external { ExternalReaders::found() } else { ExternalReaders::none() },
    };
    let pool = match Pool::new(config) {
        Ok(pool) => pool,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let queue = Mutex::new(args.iter());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().ok().and_then(|mut queue| queue.next());
                    let Some(path) = next else { break };
                    read(&pool, Path::new(path), limits, texts.as_deref());
                }
            });
        }
    });
    ExitCode::SUCCESS
}

fn read(pool: &Pool, path: &Path, limits: Limits, texts: Option<&Path>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Ok(bytes) = std::fs::read(path) else {
        println!("{name}\tunreadable");
        return;
    };
    let start = Instant::now();
    let outcome = pool.extract(Job { name: &name, bytes: &bytes, limits });
    let seconds = start.elapsed().as_secs_f64();
    let kind = bastion_extract::detect(&name, &bytes).kind;
    let line = match outcome {
        Ok(Outcome::Text(document)) => {
            if let Some(texts) = texts {
                let _ = std::fs::write(texts.join(format!("{name}.txt")), &document.text);
            }
            let chars = document.text.chars().count();
            let (pages, title, lang) = (document.pages, document.title, document.lang);
            format!("text\t{chars} characters\t{}\tpages {pages:?}\ttitle {title:?}\tlang {lang:?}", document.reader)
        }
        Ok(Outcome::Empty { reader, .. }) => format!("empty\t\t{reader}"),
        Ok(Outcome::Skipped { reason, .. }) => format!("skipped\t{reason}\t"),
        Ok(Outcome::Failed { reason, detail, .. }) => format!("failed\t{reason}\t{detail}"),
        Err(error) => format!("machine\t{error}\t"),
    };
    println!("{name}\t{kind:?}\t{seconds:.3}\t{line}");
}

fn flag(args: &mut Vec<String>, name: &str) -> bool {
    let found = args.iter().position(|arg| arg == name);
    found.map(|at| args.remove(at)).is_some()
}

fn option(args: &mut Vec<String>, name: &str) -> Option<String> {
    let at = args.iter().position(|arg| arg == name)?;
    args.remove(at);
    (at < args.len()).then(|| args.remove(at))
}
