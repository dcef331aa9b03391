//! The pool itself: reuse, replacement, threads, and machines that can't.

use std::ffi::OsString;

use bastion_extract::{FailReason, Limits, Outcome, Pool, PoolConfig, PoolError};

use crate::{PLANTED, config, extract_with, failure, pool};

#[test]
fn many_threads_share_few_workers() {
    let pool = Pool::new(PoolConfig { workers: 2, ..config() }).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                for file in 0..20 {
                    let text = format!("{PLANTED} {thread} {file}");
                    let outcome = extract_with(pool, "a.txt", text.as_bytes(), Limits::default());
                    assert!(matches!(outcome, Outcome::Text(document) if document.text == text));
                }
            });
        }
    });
}

#[test]
fn a_worker_outlives_the_thread_that_asked_first() {
    let pool = pool();
    std::thread::scope(|scope| {
        scope.spawn(|| extract_with(&pool, "a.txt", b"one", Limits::default()));
    });
    let outcome = extract_with(&pool, "a.txt", b"two", Limits::default());
    assert!(matches!(outcome, Outcome::Text(document) if document.text == "two"));
}

#[test]
fn a_large_file_goes_through_the_pipe() {
    let text = format!("{PLANTED}\n").repeat(200_000);
    let outcome = extract_with(&pool(), "a.txt", text.as_bytes(), Limits::default());
    assert!(matches!(outcome, Outcome::Text(document) if document.text == text.trim_end()));
}

#[test]
fn no_time_at_all_is_a_timeout() {
    let pool = pool();
    let limits = Limits { seconds: 0, ..Limits::default() };
    assert_eq!(failure(&extract_with(&pool, "a.txt", b"text", limits)), Some(FailReason::Timeout));
    assert!(matches!(extract_with(&pool, "a.txt", b"text", Limits::default()), Outcome::Text(_)));
}

#[test]
fn the_program_is_missing() {
    let missing = PoolConfig { worker: "/nowhere/bastion".into(), ..config() };
    assert!(matches!(Pool::new(missing), Err(PoolError::Spawn { .. })));
}

#[test]
fn the_program_is_another() {
    for (program, args) in [("/bin/true", &[][..]), ("/bin/cat", &[]), ("/bin/echo", &["BXT1"])] {
        let other =
            PoolConfig { worker: program.into(), worker_args: args.iter().map(OsString::from).collect(), ..config() };
        assert!(matches!(Pool::new(other), Err(PoolError::NotAWorker { .. })), "{program}");
    }
}

#[test]
fn uncaged_works_where_the_owner_chose_it() {
    let pool = Pool::new(PoolConfig { uncaged: true, ..config() }).unwrap();
    assert!(matches!(extract_with(&pool, "a.txt", b"text", Limits::default()), Outcome::Text(_)));
}

/// What the kernel says of the worker itself: proc(5), `Seccomp: 2` is a filter, `NoNewPrivs: 1`, no core, no files.
#[cfg(target_os = "linux")]
#[test]
fn the_worker_is_caged() {
    let pool = pool();
    assert!(matches!(extract_with(&pool, "a.txt", b"text", Limits::default()), Outcome::Text(_)));
    let own = std::process::id().to_string();
    let mut seen = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(status) = std::fs::read_to_string(entry.path().join("status")) else { continue };
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|value| value.trim().to_owned())
                .unwrap_or_default()
        };
        if field("PPid:") == own && field("Name:").starts_with("extract_worker") {
            // Other tests' workers may not be caged yet, or on purpose.
            seen += usize::from(field("Seccomp:") == "2" && field("NoNewPrivs:") == "1");
        }
    }
    assert!(seen > 0);
}
