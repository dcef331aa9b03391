//! `bastion serve` and `bastion audit`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bastion_host::clock::SystemClock;
use bastion_serve::{Endpoint, NoticeSink, ServeConfig, audit};
use bastion_trust::LivePolicy;

use super::sweep::{stop_on_signals, warn};
use crate::args;
use crate::registry;
use crate::settings;
use crate::terminal::{print_line, printable};
use crate::words::Exit;

/// `bastion serve MANIFEST`.
pub(crate) fn serve(args: &args::Serve) -> Result<ExitCode> {
    let manifest = registry::manifest_of(&args.manifest);
    if !manifest.is_file() {
        return Err(Exit::Usage(format!("{} is no manifest", manifest.display())).into());
    }
    let tls = super::client::tls_files(&args.tls)?;
    let bind = args.bind.clone().map_or_else(settings::bind, |bind| Ok(Some(bind)))?;
    let bind = bind
        .unwrap_or_else(|| "[::]:8470".to_owned())
        .parse()
        .map_err(|error| Exit::Usage(format!("--bind: {error}")))?;
    let gate = Arc::new(settings::gate(Some(&tls.ca))?);
    let out = match gate.judge(&manifest, args.allow_unsigned) {
        Ok(admitted) => {
            warn(&admitted);
            args.out.clone().unwrap_or_else(|| admitted.default_out())
        }
        // It may verify again later: everything but /health is 503 until then.
        Err(refused) => {
            eprintln!("bastion: {}; answering 503 until it verifies", Exit::from(&refused));
            // A manifest that does not verify chooses nothing but its own folder.
            std::path::absolute(bastion_sweep::place::of_refused(args.out.as_deref(), &refused))?
        }
    };
    bastion_host::files::create_private_dir(&out).with_context(|| format!("{}", out.display()))?;
    let stop = stop_on_signals()?;
    let config =
        ServeConfig { out: out.clone(), bind, port_file: args.port_file.clone(), tls, notices: NoticeSink::stderr() };
    let policy = LivePolicy::new(gate, manifest, args.allow_unsigned);
    let running = Endpoint::start(config, policy, settings::search_embedder(&out)?, Arc::new(SystemClock))?;
    eprintln!("bastion: listening at {}", running.address());
    while !stop.wait(Duration::from_secs(3600)) {}
    running.stop();
    let status = stop.requested().map_or(0, |signal| signal.exit_status());
    Err(Exit::Silent(status).into())
}

/// `bastion audit MANIFEST`.
pub(crate) fn audit(args: &args::Audit) -> Result<ExitCode> {
    let agent = registry::resolve(&args.manifest, args.out.as_deref())?;
    let summary = audit::summarize(&agent.out)?;
    if args.json {
        print_line(&serde_json::to_string(&summary)?);
        return Ok(ExitCode::SUCCESS);
    }
    for row in &summary.rows {
        let cn = row.cn.as_deref().map_or_else(|| "(nobody)".to_owned(), printable);
        let op = row.op.as_deref().unwrap_or("-");
        print_line(&format!(
            "{}  {cn:<24} {op:<12} {:>8} requests  {:>8} refused  {:>12} bytes",
            row.day, row.requests, row.refused, row.bytes
        ));
    }
    if summary.unreadable > 0 {
        eprintln!("{} lines can't be read", summary.unreadable);
    }
    Ok(ExitCode::SUCCESS)
}
