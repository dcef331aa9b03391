//! `bastion doctor`: what this machine allows, and what is set up.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use bastion_cage::sandbox::State;
use bastion_extract::{ExternalReaders, Job, Limits, Outcome, Pool, PoolConfig};
use bastion_serve::Client;
use serde::Serialize;

use crate::args;
use crate::registry;
use crate::settings;
use crate::terminal::{print_line, styled};
use crate::words::Exit;

/// One finding.
#[derive(Debug, Serialize)]
struct Finding {
    what: String,
    /// `true`: as it should be; `false`: something does not work; absent: a matter of choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    says: String,
}

/// Starts a reader as a sweep would, and has it read a line.
fn reader_works() -> Result<()> {
    let config = PoolConfig {
        worker: std::env::current_exe()?,
        worker_args: vec![settings::WORKER_ARG.into()],
        workers: 1,
        uncaged: false,
        external: ExternalReaders::none(),
    };
    match Pool::new(config)?.extract(Job { name: "a.txt", bytes: b"a line", limits: Limits::default() })? {
        Outcome::Text(_) => Ok(()),
        other => anyhow::bail!("a reader did not read a plain line: {other:?}"),
    }
}

/// Whether this machine's own certificate, its key and the roots can be used, as a client would.
fn tls_works() -> (Option<bool>, String) {
    let files = match super::client::tls_files(&args::Tls::default()) {
        Ok(files) => files,
        // none of its own is a matter of choice: `up` makes them
        Err(error) => return (None, error.to_string()),
    };
    let works = || -> Result<()> {
        let gate = Arc::new(settings::gate(Some(&files.ca))?);
        Client::new("localhost:1", &files, gate, "localhost")?;
        Ok(())
    };
    match works() {
        Ok(()) => (Some(true), format!("{} and its key, roots in {}", files.cert.display(), files.ca.display())),
        Err(error) => (Some(false), format!("{error:#}")),
    }
}

/// What this machine has to make a sandbox of. What is missing is no fault of a machine that runs no agents: it is told
/// with its mend, and `bastion launch` refuses.
fn sandbox_layers() -> Vec<(String, Option<bool>, String)> {
    let layer = |finding: bastion_cage::sandbox::Finding| {
        let mend = finding.mend.map(|mend| format!("; {mend}")).unwrap_or_default();
        let (ok, missing) = match finding.state {
            State::Enforced => (Some(true), ""),
            State::Partial => (None, "in part: "),
            State::Missing => (None, "MISSING, no agent runs here: "),
        };
        (format!("sandbox: {}", finding.layer), ok, format!("{missing}{}{mend}", finding.detail))
    };
    bastion_cage::sandbox::survey().into_iter().map(layer).collect()
}

/// `bastion doctor`.
pub(crate) fn doctor(args: &args::Json) -> Result<ExitCode> {
    let mut findings = Vec::new();
    let mut note =
        |what: &str, ok: Option<bool>, says: String| findings.push(Finding { what: what.to_owned(), ok, says });
    match settings::state_dir() {
        Ok(dir) => note("state", None, dir.display().to_string()),
        Err(error) => note("state", Some(false), format!("{error:#}")),
    }
    match reader_works() {
        Ok(()) => {
            note("caged reader", Some(true), "documents are read in a worker with no files and no network".to_owned());
        }
        Err(error) => note("caged reader", Some(false), format!("{error:#}")),
    }
    let (ok, says) = tls_works();
    note("mutual TLS", ok, says);
    match registry::all() {
        Ok(agents) => {
            let gate = settings::gate(None)?;
            for agent in agents {
                let judged = gate.judge(&agent.manifest, false);
                let says = judged.as_ref().map_or_else(ToString::to_string, |_| "its manifest verifies".to_owned());
                note(&format!("agent {}", agent.id), Some(judged.is_ok()), says);
            }
        }
        Err(error) => note("agents", Some(false), format!("{error:#}")),
    }
    for tool in bastion_extract::probe_external() {
        let says = match (&tool.path, &tool.version) {
            (Some(path), Some(version)) => format!("{} ({version})", path.display()),
            (Some(path), None) => path.display().to_string(),
            (None, _) => "not found; the built-in readers do without".to_owned(),
        };
        note(&format!("reader: {}", tool.name), None, says);
    }
    match settings::embedding() {
        Ok(Some(embedding)) => match (embedding.open)() {
            Ok(embedder) => {
                let tag = embedder.tag();
                let place = embedding
                    .host
                    .map_or_else(|| "on this machine".to_owned(), |host| format!("at {host}: text is sent there"));
                note("embedding model", Some(true), format!("{} ({} dimensions) {place}", tag.name, tag.dims));
            }
            Err(error) => note("embedding model", Some(false), error.to_string()),
        },
        Ok(None) => {
            note("embedding model", None, "none: search by full text alone (bastion models add embed)".to_owned());
        }
        Err(error) => note("embedding model", Some(false), format!("{error:#}")),
    }
    for (what, ok, says) in sandbox_layers() {
        note(&what, ok, says);
    }
    if let Err(error) = settings::stages(false, false) {
        note("settings", Some(false), format!("{error:#}"));
    }
    for (name, _, value) in settings::shown() {
        if let Some(value) = value {
            note(name, None, value);
        }
    }
    let broken = findings.iter().any(|finding| finding.ok == Some(false));
    for finding in &findings {
        if args.json {
            print_line(&serde_json::to_string(finding)?);
            continue;
        }
        let mark = match finding.ok {
            Some(true) => styled("32", "ok"),
            Some(false) => styled("31", "NO"),
            None => "--".to_owned(),
        };
        print_line(&format!("{mark}  {:<26} {}", finding.what, finding.says));
    }
    if broken { Err(Exit::Silent(1).into()) } else { Ok(ExitCode::SUCCESS) }
}
