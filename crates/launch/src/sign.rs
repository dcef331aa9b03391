//! Signing an agent (launch.md §7): as a folder's manifest is signed, over the agent and every file it brings in.

use std::path::{Path, PathBuf};

use bastion_trust::sign::{ReadClaim, record_as, sign_as};
use bastion_trust::{Claim, Gate, MalformedError, Signed};

use crate::contents::Contents;
use crate::error::LaunchError;
use crate::locate::{self, Located, MANIFEST};
use crate::options::Machine;
use crate::parse;

/// Whether this path is an agent's manifest, which [`sign`] signs, and not a folder's.
pub fn is_agent(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == MANIFEST)
}

/// Signs the agent with this certificate and key. `cert` is recorded as given and read relative to the manifest.
///
/// # Errors
/// Where the agent can't be read, names no owner, or can't be signed; its file is then as it was.
pub fn sign(
    machine: &Machine,
    manifest: &Path,
    repo: Option<&Path>,
    cert: &Path,
    key: &Path,
) -> Result<Signed, LaunchError> {
    with_claim(machine, manifest, repo, |gate, path, read| Ok(sign_as(gate, path, cert, key, read)?))
}

/// Records a signature (base64 of DER) that was made elsewhere over [`payload`].
///
/// # Errors
/// As [`sign`], and where it does not verify.
pub fn record(
    machine: &Machine,
    manifest: &Path,
    repo: Option<&Path>,
    cert: &Path,
    value: &str,
) -> Result<Signed, LaunchError> {
    with_claim(machine, manifest, repo, |gate, path, read| Ok(record_as(gate, path, cert, value, read)?))
}

/// The bytes that a signature of the agent is over: RFC 8785 JSON.
///
/// # Errors
/// Where the agent can't be read.
pub fn payload(machine: &Machine, manifest: &Path, repo: Option<&Path>) -> Result<Vec<u8>, LaunchError> {
    let (located, contents) = read(machine, manifest, repo)?;
    Ok(contents.claim(&located.parsed.agent).payload)
}

fn read(machine: &Machine, manifest: &Path, repo: Option<&Path>) -> Result<(Located, Contents), LaunchError> {
    let manifest = machine.cwd.join(manifest);
    let located = locate::read(manifest.parent().unwrap_or(&manifest), repo, machine)?;
    let contents = Contents::read(&located)?;
    Ok((located, contents))
}

fn with_claim<T>(
    machine: &Machine,
    manifest: &Path,
    repo: Option<&Path>,
    act: impl FnOnce(&Gate, &PathBuf, ReadClaim<'_>) -> Result<T, LaunchError>,
) -> Result<T, LaunchError> {
    let (located, contents) = read(machine, manifest, repo)?;
    if located.parsed.agent.owner_host.is_none() {
        let what = "has no `owner: {host: …}`; write the signer's host name into it first";
        return Err(LaunchError::refused(located.manifest.display().to_string(), what));
    }
    // the files were read once; what signing changes is the manifest alone
    let claim = |bytes: &[u8]| -> Result<Claim, MalformedError> {
        let parsed = parse::parse(bytes)?;
        let payload = contents.payload_with(&parsed.json);
        Ok(Claim { payload, ..contents.claim(&parsed.agent) })
    };
    act(&machine.gate, &located.manifest, &claim)
}
