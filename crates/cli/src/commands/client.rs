//! `bastion search|read|cards|status|health`: what another host does, from here.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use bastion_serve::{Client, TlsFiles};

use crate::args::{self, Remote};
use crate::registry::{self, Agent};
use crate::settings;
use crate::terminal::{print_line, printable, printable_text, styled};
use crate::words::Exit;

/// `bastion search QUERY`.
pub(crate) fn search(args: &args::Search) -> Result<ExitCode> {
    let answer = connect(&args.remote)?.search(&args.query.join(" "), Some(args.k))?;
    if args.remote.json {
        print_line(&serde_json::to_string(&answer)?);
        return Ok(ExitCode::SUCCESS);
    }
    for (at, hit) in answer.hits.iter().enumerate() {
        let name = hit.path.as_deref().map_or_else(|| hit.doc[..12.min(hit.doc.len())].to_owned(), printable);
        let place = format!("{} {}–{}", &hit.doc, hit.start, hit.end);
        print_line(&format!("{}. {}  {}", at + 1, styled("1", &name), styled("2", &place)));
        let text = printable_text(hit.text.trim());
        text.lines().for_each(|line| print_line(&format!("   {line}")));
        print_line("");
    }
    if answer.hits.is_empty() {
        eprintln!("nothing found");
    }
    Ok(ExitCode::SUCCESS)
}

/// `bastion read DOC`.
pub(crate) fn read(args: &args::Read) -> Result<ExitCode> {
    let answer = connect(&args.remote)?.read_range(&args.doc, args.start, args.end)?;
    if args.remote.json {
        print_line(&serde_json::to_string(&answer)?);
    } else {
        print_line(printable_text(&answer.text).trim_end_matches('\n'));
        if answer.end < answer.total {
            eprintln!(
                "characters {} to {} of {}; go on with --start {}",
                answer.start, answer.end, answer.total, answer.end
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `bastion cards`.
pub(crate) fn cards(args: &args::Cards) -> Result<ExitCode> {
    let client = connect(&args.remote)?;
    let page = if args.dirs {
        client.dirs(&args.prefix, args.offset, Some(args.limit))?
    } else {
        client.cards(&args.prefix, args.offset, Some(args.limit))?
    };
    if args.remote.json {
        print_line(&serde_json::to_string(&page)?);
        return Ok(ExitCode::SUCCESS);
    }
    let text = |card: &serde_json::Value, key: &str| {
        card.get(key).and_then(|value| value.as_str()).map(printable).unwrap_or_default()
    };
    let number = |card: &serde_json::Value, key: &str| card.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0);
    for card in &page.cards {
        if args.dirs {
            print_line(&format!(
                "{}/\t{} files\t{} bytes",
                text(card, "path"),
                number(card, "files"),
                number(card, "bytes")
            ));
        } else {
            let status = match (text(card, "status").as_str(), text(card, "reason")) {
                ("ok", _) => format!("{} characters", number(card, "chars")),
                (status, reason) if reason.is_empty() => status.to_owned(),
                (status, reason) => format!("{status}: {reason}"),
            };
            print_line(&format!("{}\t{status}\t{}", text(card, "path"), text(card, "title")));
        }
    }
    if let Some(next) = page.next_offset {
        eprintln!("{} of {}; go on with --offset {next}", page.cards.len(), page.total);
    }
    Ok(ExitCode::SUCCESS)
}

/// `bastion status`.
pub(crate) fn status(args: &Remote) -> Result<ExitCode> {
    let answer = connect(args)?.status()?;
    if args.json {
        print_line(&serde_json::to_string(&answer)?);
        return Ok(ExitCode::SUCCESS);
    }
    match &answer.state {
        serde_json::Value::Object(state) => {
            for (key, value) in state {
                let value = value.as_str().map_or_else(|| value.to_string(), printable);
                print_line(&format!("{key:<22} {value}"));
            }
        }
        _ => print_line("no sweep has run yet"),
    }
    if let Some(ranking) = answer.ranking {
        print_line(&format!("{:<22} {}", "ranking", ranking.as_str()));
    }
    Ok(ExitCode::SUCCESS)
}

/// `bastion health`.
pub(crate) fn health(args: &Remote) -> Result<ExitCode> {
    let answer = connect(args)?.health()?;
    if args.json {
        print_line(&serde_json::to_string(&answer)?);
    } else {
        let id = answer.id.as_deref().map_or_else(|| "?".to_owned(), printable);
        print_line(&format!(
            "{id}: {}",
            if answer.serving { "serving" } else { "reachable, but not serving: the manifest does not verify" }
        ));
    }
    if answer.serving { Ok(ExitCode::SUCCESS) } else { Err(Exit::Silent(1).into()) }
}

/// A client of the endpoint that is meant.
fn connect(args: &Remote) -> Result<Client> {
    let (endpoint, owner) = endpoint(args)?;
    let files = tls_files(&args.tls)?;
    let gate = Arc::new(settings::gate(Some(&files.ca))?);
    Ok(Client::new(&endpoint, &files, gate, &owner)?)
}

/// Address and owner: what is named; else the agent of the folder we stand in; else the only one that runs here.
fn endpoint(args: &Remote) -> Result<(String, String)> {
    if let Some(endpoint) = &args.endpoint {
        let host = endpoint.rsplit_once(':').map_or(endpoint.as_str(), |(host, _)| host);
        let known = || {
            registry::all()
                .ok()?
                .into_iter()
                .find(|agent| agent.endpoint().as_deref() == Some(endpoint))
                .map(|agent| agent.owner)
        };
        let owner = args.owner.clone().or_else(known).unwrap_or_else(|| host.to_owned());
        if owner.parse::<std::net::IpAddr>().is_ok() || owner.starts_with('[') {
            return Err(
                Exit::Usage(format!("{endpoint} is an address: say whose endpoint it is with --owner HOST")).into()
            );
        }
        return Ok((endpoint.clone(), owner));
    }
    let owner = |agent: &Agent| args.owner.clone().unwrap_or_else(|| agent.owner.clone());
    if let Some(agent) = registry::here()? {
        let Some(endpoint) = agent.endpoint() else {
            bail!(
                "the agent `{}` of this folder has no endpoint running here; start it with: bastion up {}",
                agent.id,
                folder_of(&agent)
            );
        };
        return Ok((endpoint, owner(&agent)));
    }
    let running: Vec<(Agent, String)> =
        registry::all()?.into_iter().filter_map(|agent| agent.endpoint().map(|at| (agent, at))).collect();
    match running.as_slice() {
        [(agent, endpoint)] => Ok((endpoint.clone(), owner(agent))),
        [] => bail!("no endpoint runs here; start one with `bastion up FOLDER`, or name one with --endpoint HOST:PORT"),
        several => {
            let list: String = several
                .iter()
                .map(|(agent, at)| format!("\n  {}  --endpoint {at}  ({})", agent.id, folder_of(agent)))
                .collect();
            bail!("several endpoints run here; name one, or stand in its folder:{list}")
        }
    }
}

fn folder_of(agent: &Agent) -> String {
    agent.manifest.parent().and_then(|dir| dir.parent()).unwrap_or(&agent.manifest).display().to_string()
}

/// The three TLS files: flags, environment, this machine's own.
pub(crate) fn tls_files(flags: &args::Tls) -> Result<TlsFiles> {
    let given = settings::tls(flags);
    let own = super::up::Machine::files()?;
    let mut missing = Vec::new();
    let mut pick = |given: Option<PathBuf>, own: Option<PathBuf>, name: &'static str| {
        given.or(own).unwrap_or_else(|| {
            missing.push(name);
            PathBuf::new()
        })
    };
    let files = TlsFiles {
        cert: pick(given.cert, own.as_ref().map(|own| own.cert.clone()), "FREEAGENT_TLS_CERT (--cert)"),
        key: pick(given.key, own.as_ref().map(|own| own.key.clone()), "FREEAGENT_TLS_KEY (--key)"),
        ca: pick(given.ca, own.map(|own| own.ca), "FREEAGENT_CA_ROOT (--ca)"),
    };
    if missing.is_empty() {
        Ok(files)
    } else {
        let text = format!(
            "{}: not set, and this machine has none of its own (see `bastion ca` and `bastion up`)",
            missing.join(", ")
        );
        Err(Exit::Usage(text).into())
    }
}
