//! `bastion reveal`: the value behind a token, for the owner on this machine.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use bastion_stages::{Revealed, Vault};

use crate::args;
use crate::registry::{self, Agent};
use crate::settings;
use crate::terminal::{print_line, printable};
use crate::words::Exit;

/// `bastion reveal TOKEN…`.
pub(crate) fn reveal(args: &args::Reveal) -> Result<ExitCode> {
    let vaults = vaults(args)?;
    let mut missing = 0;
    for token in &args.tokens {
        let token = format!("[{}]", token.trim_matches(['[', ']']));
        match find(&vaults, &token)? {
            Some(found) if args.json => print_line(&serde_json::to_string(&found)?),
            Some(found) => print_line(&format!("{token}\t{}", printable(&found.value))),
            None => {
                missing += 1;
                eprintln!("bastion: {token}: no value of this token is known here");
            }
        }
    }
    if missing > 0 { Err(Exit::Silent(1).into()) } else { Ok(ExitCode::SUCCESS) }
}

fn find(vaults: &[Vault], token: &str) -> Result<Option<Revealed>> {
    for vault in vaults {
        if let Some(mut found) = vault.reveal(token)? {
            found.docs.retain(|doc| doc.as_bytes() != &[0; 32]); // where names are kept: no document
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The vault of the agent that is named; else of every agent this machine knows.
fn vaults(args: &args::Reveal) -> Result<Vec<Vault>> {
    let paths = match &args.manifest {
        Some(manifest) => vec![vault_of(&registry::resolve(manifest, args.out.as_deref())?)?],
        None => {
            let agents = match registry::here()? {
                Some(agent) => vec![agent],
                None => registry::all()?,
            };
            agents.iter().filter(|agent| agent.out.exists()).map(vault_of).collect::<Result<Vec<_>>>()?
        }
    };
    if paths.is_empty() {
        return Err(Exit::Usage("no agent is known here; name one with --manifest".into()).into());
    }
    paths
        .iter()
        .filter(|path| args.manifest.is_some() || path.exists())
        .map(|path| Ok(Vault::open_existing(path)?))
        .collect()
}

fn vault_of(agent: &Agent) -> Result<PathBuf> {
    let place = settings::vaults()?;
    Ok(place.of(
        &agent.id,
        &agent.out.canonicalize().with_context(|| format!("{}: no output folder; sweep first", agent.out.display()))?,
    ))
}
