//! `bastion grant|revoke|agents`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use bastion_host::clock::{Clock, SystemClock};
use bastion_sweep::status;
use bastion_trust::Gate;
use bastion_trust::manifest::{self, Grant, Op, Ops};
use bastion_trust::sign::{self, SignError, Signed};

use crate::args;
use crate::registry::{self, Agent};
use crate::settings;
use crate::terminal::{print_line, printable, styled};
use crate::words::Exit;

/// `bastion grant FOLDER HOST`.
pub(crate) fn grant(args: &args::Grant) -> Result<ExitCode> {
    let ops = args.ops.iter().fold(Ops::default(), |ops, op| {
        ops.with(match op {
            args::Op::Search => Op::Search,
            args::Op::ReadRange => Op::ReadRange,
        })
    });
    let grant = Grant { host: args.host.clone(), ops, until: args.until };
    if args.until < SystemClock.now().to_zoned(jiff::tz::TimeZone::UTC).date() {
        return Err(Exit::Usage(format!("--until {} is over already", args.until)).into());
    }
    let (gate, path) = (settings::gate(args.tls.ca.as_deref())?, registry::manifest_of(&args.folder));
    let key = signer(&args.tls)?;
    let signed = told(sign::grant(&gate, &path, &grant, args.tls.cert.as_deref(), &key))?;
    print_line(&format!("{} may {} until {}{}", args.host, words(ops), args.until, serial(&signed)));
    Ok(ExitCode::SUCCESS)
}

/// `bastion revoke FOLDER HOST`.
pub(crate) fn revoke(args: &args::Revoke) -> Result<ExitCode> {
    let (gate, path) = (settings::gate(args.tls.ca.as_deref())?, registry::manifest_of(&args.folder));
    let key = signer(&args.tls)?;
    let signed = told(sign::revoke(&gate, &path, &args.host, args.tls.cert.as_deref(), &key))?;
    print_line(&format!("{} may nothing any more, from its next request on{}", args.host, serial(&signed)));
    Ok(ExitCode::SUCCESS)
}

/// The key that signs: the one that is named, else this machine's signer.
fn signer(tls: &args::Tls) -> Result<PathBuf> {
    match &tls.key {
        Some(key) => Ok(key.clone()),
        None => Ok(super::up::Machine::ensure(&SystemClock)?.signer_key().to_owned()),
    }
}

/// A gate that refuses is exit status 3.
fn told(signed: Result<Signed, SignError>) -> Result<Signed> {
    let signed = signed.map_err(|error| match error {
        SignError::Refused(refused) => anyhow::Error::from(Exit::from(&refused)),
        other => other.into(),
    })?;
    for warning in &signed.warnings {
        eprintln!("bastion: {} {warning}", styled("33", "warning:"));
    }
    Ok(signed)
}

fn serial(signed: &Signed) -> String {
    signed.serial.map_or_else(String::new, |serial| format!(" (signed, serial {serial})"))
}

fn words(ops: Ops) -> String {
    ops.iter().map(Op::as_str).collect::<Vec<_>>().join(" and ")
}

/// `bastion agents`.
pub(crate) fn agents(args: &args::Json) -> Result<ExitCode> {
    let agents = registry::all()?;
    if agents.is_empty() && !args.json {
        print_line("no agents yet; make one with: bastion up FOLDER");
    }
    let gate = settings::gate(None)?;
    agents.iter().try_for_each(|agent| show(agent, &gate, args.json))?;
    Ok(ExitCode::SUCCESS)
}

fn show(agent: &Agent, gate: &Gate, json: bool) -> Result<()> {
    let status = status(&agent.out, &SystemClock)?;
    let endpoint = agent.endpoint();
    // Only shown: what is served is decided by the endpoint's own gate.
    let grants = std::fs::read(&agent.manifest)
        .ok()
        .and_then(|bytes| manifest::parse(&bytes).ok())
        .map(|parsed| parsed.manifest().grants.clone())
        .unwrap_or_default();
    let refused = gate.judge(&agent.manifest, false).err();
    let state = status.state.as_ref();
    if json {
        let grants: Vec<_> = grants
            .iter()
            .map(|grant| serde_json::json!({ "host": grant.host, "ops": grant.ops.iter().map(Op::as_str).collect::<Vec<_>>(), "until": grant.until.to_string() }))
            .collect();
        let row = serde_json::json!({
            "id": agent.id, "owner": agent.owner, "manifest": agent.manifest, "out": agent.out, "endpoint": endpoint,
            "state": state, "running": status.running.is_some(), "overdue": status.overdue, "grants": grants,
            "refused": refused.as_ref().map(|refused| refused.code.as_str()),
        });
        print_line(&row.to_string());
        return Ok(());
    }
    print_line(&styled("1", &agent.id));
    let say = |key: &str, value: &str| print_line(&format!("  {key:<10} {value}"));
    say("manifest", &agent.manifest.display().to_string());
    if let Some(refused) = &refused {
        say(
            "refused",
            &styled("31", &format!("{}: {}: nothing is swept or served", refused.code, printable(&refused.detail))),
        );
    }
    say("endpoint", &endpoint.unwrap_or_else(|| "not running".to_owned()));
    match state {
        None => say("last run", "never"),
        Some(state) => {
            let outcome = match &state.last_error {
                Some(error) => format!("failed: {}", printable(error)),
                None => "ok".to_owned(),
            };
            say("last run", &format!("{:.0} {outcome}", state.last_finished.0));
            let next = state.next_due.map_or_else(|| "none: manual".to_owned(), |due| format!("{:.0}", due.0));
            say(
                "next run",
                &format!(
                    "{next}{}",
                    if status.overdue {
                        "  OVERDUE: nothing sweeps it (bastion up, or bastion service install)"
                    } else {
                        ""
                    }
                ),
            );
        }
    }
    let today = SystemClock.now().to_zoned(jiff::tz::TimeZone::UTC).date();
    for grant in grants {
        let over = if grant.until < today { " (over)" } else { "" };
        say("grant", &format!("{}: {}, until {}{over}", grant.host, words(grant.ops), grant.until));
    }
    Ok(())
}
