//! `bastion init|sign|payload|verify`: a manifest and its signature.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use bastion_host::files;
use bastion_launch::sign as agent;
use bastion_trust::identity::{self, Kind};
use bastion_trust::manifest::MAX_MANIFEST_BYTES;
use bastion_trust::{Signed, Standing, init as first, sign as signing};

use super::launch::machine;
use crate::args;
use crate::registry;
use crate::settings;
use crate::terminal::{print_line, styled};
use crate::words::Exit;

/// `bastion init FOLDER`.
pub(crate) fn init(args: &args::Init) -> Result<ExitCode> {
    let own =
        || Ok::<_, anyhow::Error>(identity::find(&settings::state_dir()?, Kind::Sign).map(|identity| identity.host));
    let owner = match &args.owner {
        Some(owner) => owner.clone(),
        None => own()?.unwrap_or_else(settings::host_name),
    };
    let path = create(&args.folder, &owner)?;
    print_line(&format!("{} is written; read it, then sign it:\n  bastion sign {}", path.display(), path.display()));
    Ok(ExitCode::SUCCESS)
}

/// Writes a first manifest with an id that no agent of this machine has.
pub(crate) fn create(folder: &Path, owner: &str) -> Result<std::path::PathBuf> {
    let taken: Vec<String> = registry::all()?.into_iter().map(|agent| agent.id).collect();
    let (path, _) = first::init(folder, owner, |id| taken.iter().any(|known| known == id))?;
    Ok(path)
}

/// `bastion sign MANIFEST`.
pub(crate) fn sign(args: &args::Sign) -> Result<ExitCode> {
    let manifest = manifest_of(&args.manifest);
    let signed = match (&args.cert, &args.key, &args.value) {
        (Some(cert), _, Some(value)) => record(&manifest, cert, value)?,
        (Some(cert), Some(key), None) => sign_with(&manifest, cert, key)?,
        (None, None, None) => {
            let machine = super::up::Machine::ensure(&bastion_host::clock::SystemClock)?;
            let cert = manifest.with_file_name(super::up::OWNER_CERT);
            machine.write_certificate(&cert)?;
            sign_with(&manifest, Path::new(super::up::OWNER_CERT), machine.signer_key())?
        }
        _ => {
            return Err(Exit::Usage(
                "--cert and --key go together; without both this machine's own signer is used".into(),
            )
            .into());
        }
    };
    for warning in &signed.warnings {
        eprintln!("bastion: {} {warning}", styled("33", "warning:"));
    }
    let serial = signed.serial.map_or_else(String::new, |serial| format!(", serial {serial}"));
    print_line(&format!("{} is signed: digest {}{serial}", manifest.display(), signed.digest));
    Ok(ExitCode::SUCCESS)
}

/// A folder's manifest, or an agent's.
fn manifest_of(path: &Path) -> PathBuf {
    let agent = path.join(bastion_launch::MANIFEST);
    if agent.is_file() { agent } else { registry::manifest_of(path) }
}

fn sign_with(manifest: &Path, cert: &Path, key: &Path) -> Result<Signed> {
    Ok(if agent::is_agent(manifest) {
        agent::sign(&machine()?, manifest, None, cert, key)?
    } else {
        signing::sign(&settings::gate(None)?, manifest, cert, key)?
    })
}

fn record(manifest: &Path, cert: &Path, value: &str) -> Result<Signed> {
    Ok(if agent::is_agent(manifest) {
        agent::record(&machine()?, manifest, None, cert, value)?
    } else {
        signing::record(&settings::gate(None)?, manifest, cert, value)?
    })
}

/// `bastion payload MANIFEST`.
pub(crate) fn payload(args: &args::ManifestArg) -> Result<ExitCode> {
    let path = manifest_of(&args.manifest);
    if agent::is_agent(&path) {
        std::io::stdout().lock().write_all(&agent::payload(&machine()?, &path, None)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let bytes = files::read_capped(&path, MAX_MANIFEST_BYTES as u64).with_context(|| format!("{}", path.display()))?;
    let payload =
        bastion_trust::payload(&bytes).map_err(|error| Exit::Refused(format!("{}: {error}", path.display())))?;
    std::io::stdout().lock().write_all(&payload)?;
    Ok(ExitCode::SUCCESS)
}

/// `bastion verify MANIFEST`.
pub(crate) fn verify(args: &args::Verify) -> Result<ExitCode> {
    let gate = settings::gate(args.ca.as_deref())?;
    let path = registry::manifest_of(&args.manifest);
    let admitted = match gate.judge(&path, args.allow_unsigned) {
        Ok(admitted) => admitted,
        Err(refused) => {
            if args.json {
                let row = serde_json::json!({ "ok": false, "code": refused.code.to_string(), "detail": refused.detail, "id": refused.manifest_id });
                print_line(&row.to_string());
                return Err(Exit::Silent(3).into());
            }
            return Err(Exit::from(&refused).into());
        }
    };
    let manifest = admitted.manifest();
    if args.json {
        let gate = match admitted.standing() {
            Standing::Signed { cn, cert, chained, serial, not_after } => {
                serde_json::json!({ "cn": cn, "cert": cert, "chained": chained, "serial": serial, "not_after": not_after.to_string() })
            }
            Standing::Bypassed { reason } => serde_json::json!({ "bypassed": reason }),
        };
        let row =
            serde_json::json!({ "ok": true, "id": manifest.id.to_string(), "digest": admitted.digest(), "gate": gate });
        print_line(&row.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let say = |key: &str, value: &str| print_line(&format!("{key:<12} {value}"));
    match admitted.standing() {
        Standing::Signed { cn, cert, serial, not_after, .. } => {
            say("signed by", &format!("{cn} ({cert}), chained to the root, until {not_after:.0}"));
            match serial {
                Some(serial) => say("serial", &serial.to_string()),
                None => say("serial", "none: an older signed copy could not be told from this one"),
            }
        }
        Standing::Bypassed { reason } => say("NOT SIGNED", reason),
    }
    say("id", manifest.id.as_ref());
    say("digest", &admitted.digest());
    for root in admitted.roots() {
        say("root", &format!("{} ({})", root.label, root.path.display()));
    }
    say("output", &admitted.default_out().display().to_string());
    say("stages", &manifest.stages.iter().map(|stage| stage.as_str()).collect::<Vec<_>>().join(" "));
    say("sweep", manifest.sweep.as_str());
    say("ops", &manifest.ops.iter().map(|op| op.as_str()).collect::<Vec<_>>().join(" "));
    for grant in &manifest.grants {
        let ops = grant.ops.iter().map(|op| op.as_str()).collect::<Vec<_>>().join(" ");
        say("grant", &format!("{}: {ops}, until {}", grant.host, grant.until));
    }
    Ok(ExitCode::SUCCESS)
}
