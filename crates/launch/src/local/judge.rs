//! Can this launch run on this machine? Judged before anything is done, and once more where it becomes a job.

use std::path::{Path, PathBuf};

use bastion_egress::credential::PLACEHOLDER;
use bastion_egress::policy::Policy;
use bastion_host::files::read_capped;
use zeroize::Zeroizing;

use super::job::{Back, Credential, Handed, Job, Limits};
use super::layout::Layout;
use super::{binds, outside, size};
use crate::agent::{self, Provider, Source};
use crate::driver::Launch;
use crate::error::LaunchError;
use crate::options::Machine;
use crate::paths::Bases;
use crate::profiles::{Profile, managed};

/// A file of more roots is not larger, in bytes.
const MAX_ROOTS: u64 = 4 << 20;

/// Judges what only this driver reads. Gives what the user should know.
///
/// # Errors
/// The first thing that can't be so on this machine.
pub(crate) fn judge(
    machine: &Machine,
    local: &agent::Local,
    bound: &[agent::Bind],
    profiles: &[Profile],
    policy: Option<(&Path, &[u8])>,
    providers: &[Provider],
) -> Result<Vec<String>, LaunchError> {
    limits(local)?;
    binds::judge(bound, machine)?;
    more_roots(machine)?;
    let policy = outside::read_policy(&sources(profiles), policy.map(source).as_ref())?;
    let mut warnings = policy.warnings().to_vec();
    for provider in providers {
        for credential in provider.credentials.iter().filter(|credential| credential.export) {
            carried(&policy, provider, &credential.env)?;
        }
        let Some(refresh) = &provider.refresh else { continue };
        let key = &refresh.credential_key;
        let managed = managed(provider, profiles);
        let Some(credential) = provider.credentials.iter().find(|credential| managed.contains(&credential.env)) else {
            let what = format!("is to be refreshed, and the provider `{}` has no such credential", provider.id);
            return Err(LaunchError::refused(format!("the credential {key}"), what));
        };
        let variables = provider.credentials.iter().filter(|own| own.export && managed.contains(&own.env)).count();
        if variables > 1 {
            let what = "is to be refreshed and has several variables, which is not yet supported here: each would spend the \
                        same token; export one of them";
            return Err(LaunchError::refused(format!("the credential {key}"), what));
        }
        if carried(&policy, provider, &credential.env)?.refresh.is_none() {
            let what = format!("is to be refreshed, and the profile `{}` does not say where", provider.profile);
            return Err(LaunchError::refused(format!("the credential {key}"), what));
        }
        for material in refresh.materials.iter().filter(|material| material.hidden()) {
            if !matches!(material.source, Source::FileJson { .. }) {
                warnings.push(format!(
                    "the {} of {key} is no field of a file: where a refresh replaces it, the new one is lost with the run",
                    material.name
                ));
            }
        }
    }
    Ok(warnings)
}

/// How the provider's profile carries this credential.
fn carried<'p>(
    policy: &'p Policy,
    provider: &Provider,
    env: &str,
) -> Result<&'p bastion_egress::policy::Shape, LaunchError> {
    policy.carried(&provider.profile, env).ok_or_else(|| {
        let what = format!("is none of the profile `{}`, so nothing says where it may go", provider.profile);
        LaunchError::refused(format!("the credential {env} of the provider `{}`", provider.id), what)
    })
}

/// The job of a launch whose parts are judged.
pub(crate) fn job(launch: &Launch<'_, '_>, layout: &Layout, identity: (u32, u32)) -> Result<Job, LaunchError> {
    let (plan, machine) = (launch.plan, launch.machine);
    let profiles = sources(launch.profiles);
    let file = launch.policy.zip(plan.policy.as_deref()).map(|(bytes, path)| source((path, bytes)));
    let policy = outside::read_policy(&profiles, file.as_ref())?;
    let mut env: Vec<(String, String)> =
        plan.env.iter().map(|variable| (variable.name.clone(), variable.value.clone())).collect();
    let mut credentials = Vec::new();
    for (provider, secrets) in launch.providers.iter().zip(launch.secrets) {
        let handed = |name: &str| provider.credentials.iter().any(|own| own.env == name && own.export);
        for (name, secret) in secrets.credentials.iter().filter(|(name, _)| handed(name)) {
            if carried(&policy, provider, name)?.style.is_none() {
                env.push((name.clone(), secret.reveal().to_owned())); // an account id: it is no secret
                continue;
            }
            env.push((name.clone(), format!("{PLACEHOLDER}{name}")));
            let managed = managed(provider, launch.profiles);
            let refreshed = provider.refresh.as_ref().filter(|_| managed.contains(name));
            let hand = |secret: &crate::secret::Secret| Handed(Zeroizing::new(secret.reveal().to_owned()));
            credentials.push(Credential {
                env: name.clone(),
                profile: provider.profile.clone(),
                value: hand(secret),
                materials: refreshed.map_or_else(Vec::new, |_| {
                    secrets.materials.iter().map(|(name, secret)| (name.clone(), hand(secret))).collect()
                }),
                back: refreshed.map_or_else(Vec::new, |refresh| places(refresh, launch.bases)),
            });
        }
    }
    let mut mounts = Vec::new();
    for bind in &plan.harness_files {
        mounts.push(binds::Bound {
            source: bind.source.clone(),
            destination: bind.destination.clone(),
            writable: false,
        });
    }
    mounts.extend(binds::judge(&plan.binds, machine)?);
    Ok(Job {
        name: plan.sandbox.clone(),
        dir: layout.root().to_owned(),
        state_dir: machine.state_dir.clone(),
        supervisor_state: crate::runs::supervisor_state(plan),
        identity,
        mounts,
        env,
        limits: limits(&plan.local)?,
        hard_requirement: plan.local.hard_requirement,
        profiles,
        policy: file,
        credentials,
        more_roots: more_roots(machine)?,
        keep: plan.keep,
    })
}

/// The fields that the materials of a refresh were read from.
fn places(refresh: &agent::Refresh, bases: &Bases) -> Vec<Back> {
    let place = |material: &agent::Material| match &material.source {
        Source::FileJson { path, query } => {
            Some(Back { material: material.name.clone(), file: bases.credential(path).ok()?, query: query.clone() })
        }
        _ => None,
    };
    refresh.materials.iter().filter_map(place).collect()
}

fn limits(local: &agent::Local) -> Result<Limits, LaunchError> {
    let bytes = |key, value: &Option<String>| value.as_deref().map(|text| size::bytes(key, text)).transpose();
    Ok(Limits {
        memory: bytes("memory", &local.memory)?,
        pids: local.pids,
        cpu_millis: local.cpu.as_deref().map(size::cpu_millis).transpose()?,
        tmp_size: bytes("tmp_size", &local.tmp_size)?,
    })
}

fn more_roots(machine: &Machine) -> Result<Option<Vec<u8>>, LaunchError> {
    let Some(file) = machine.var(outside::MORE_ROOTS) else { return Ok(None) };
    let file: PathBuf = machine.cwd.join(file);
    let pem = read_capped(&file, MAX_ROOTS).map_err(|error| {
        LaunchError::usage(outside::MORE_ROOTS, format!("names {}, which can't be read: {error}", file.display()))
    })?;
    outside::roots(&pem).map_err(|what| LaunchError::usage(outside::MORE_ROOTS, what))?;
    Ok(Some(pem))
}

fn sources(profiles: &[Profile]) -> Vec<(String, Vec<u8>)> {
    profiles.iter().map(|profile| (profile.file.display().to_string(), profile.bytes.clone())).collect()
}

fn source((path, bytes): (&Path, &[u8])) -> (String, Vec<u8>) {
    (path.display().to_string(), bytes.to_vec())
}
