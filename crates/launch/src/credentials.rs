//! What is in the credentials? Each source gives a value or a reason, and a value is a [`Secret`] from its first byte.
//!
//! A reason never quotes what a command or a file said: that may be the secret.

use std::time::Duration;

use bastion_host::child::{self, End, Job};
use bastion_host::files::read_capped;
use bastion_host::signals::Stop;
use zeroize::Zeroizing;

use crate::agent::{Provider, Source};
use crate::error::LaunchError;
use crate::paths::Bases;
use crate::secret::Secret;

/// A command may take this long.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// A credential may be this many bytes long.
const MAX_SECRET: usize = 128 << 10;
const MAX_FILE: u64 = 4 << 20;

/// A provider's values: by variable, and by name of the refresh material.
pub struct ProviderSecrets {
    /// The provider's id.
    pub id: String,
    /// By variable.
    pub credentials: Vec<(String, Secret)>,
    /// By name.
    pub materials: Vec<(String, Secret)>,
}

/// Which source it is, for messages.
struct Subject<'a> {
    provider: &'a str,
    env: &'a str,
}

impl Subject<'_> {
    fn error(&self, what: impl Into<String>) -> LaunchError {
        LaunchError::Credential { provider: self.provider.to_owned(), env: self.env.to_owned(), what: what.into() }
    }
}

/// What can be found out without running anything: why a credential would be missing.
pub(crate) fn problems(providers: &[Provider], bases: &Bases) -> Vec<LaunchError> {
    let mut problems = Vec::new();
    for provider in providers {
        let subject = |env| Subject { provider: &provider.id, env };
        for (name, source) in sources(provider) {
            if !matches!(source, Source::HostCommand { .. }) {
                problems.extend(quiet(&subject(name), source, bases).err());
            }
        }
    }
    problems
}

/// Every source of a provider by the name that it fills.
pub(crate) fn sources(provider: &Provider) -> impl Iterator<Item = (&str, &Source)> {
    let credentials = provider.credentials.iter().map(|credential| (credential.env.as_str(), &credential.source));
    let materials = provider.refresh.iter().flat_map(|refresh| &refresh.materials);
    credentials.chain(materials.map(|material| (material.name.as_str(), &material.source)))
}

/// Asks every source.
pub(crate) fn resolve(
    providers: &[Provider],
    bases: &Bases,
    cwd: &std::path::Path,
    stop: &Stop,
) -> Result<Vec<ProviderSecrets>, LaunchError> {
    let mut all = Vec::with_capacity(providers.len());
    for provider in providers {
        let value = |env: &str, source: &Source| {
            let subject = Subject { provider: &provider.id, env };
            match source {
                Source::HostCommand { command } => run(&subject, command, cwd, stop),
                _ => quiet(&subject, source, bases),
            }
        };
        let mut secrets = ProviderSecrets { id: provider.id.clone(), credentials: vec![], materials: vec![] };
        for credential in &provider.credentials {
            secrets.credentials.push((credential.env.clone(), value(&credential.env, &credential.source)?));
        }
        for material in provider.refresh.iter().flat_map(|refresh| &refresh.materials) {
            secrets.materials.push((material.name.clone(), value(&material.name, &material.source)?));
        }
        all.push(secrets);
    }
    Ok(all)
}

/// A value that needs no command.
fn quiet(subject: &Subject<'_>, source: &Source, bases: &Bases) -> Result<Secret, LaunchError> {
    match source {
        Source::Value { value } => usable(subject, Zeroizing::new(value.clone())),
        Source::FileJson { path, query } => {
            let file = bases.credential(path)?;
            let shown = file.display().to_string();
            let bytes = read_capped(&file, MAX_FILE)
                .map(Zeroizing::new)
                .map_err(|error| subject.error(format!("{shown} can't be read: {error}")))?;
            let json: serde_json::Value =
                serde_json::from_slice(&bytes).map_err(|_| subject.error(format!("{shown} is no JSON")))?;
            let found = query.split('.').try_fold(&json, |value, key| match value {
                serde_json::Value::Array(list) => key.parse::<usize>().ok().and_then(|i| list.get(i)),
                other => other.get(key),
            });
            let text = match found {
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(serde_json::Value::Number(number)) => number.to_string(),
                Some(serde_json::Value::Bool(yes)) => yes.to_string(),
                Some(_) => return Err(subject.error(format!("`{query}` in {shown} is no text"))),
                None => return Err(subject.error(format!("there is no `{query}` in {shown}"))),
            };
            usable(subject, Zeroizing::new(text))
        }
        Source::HostCommand { .. } => Err(subject.error("comes from a command")),
    }
}

fn run(subject: &Subject<'_>, command: &str, cwd: &std::path::Path, stop: &Stop) -> Result<Secret, LaunchError> {
    let job = Job {
        program: "sh".into(),
        args: vec!["-c".into(), command.into()],
        cwd: Some(cwd.to_owned()),
        limit: Some(COMMAND_LIMIT),
        keep: MAX_SECRET,
        ..Job::default()
    };
    let ended = child::run(&job, stop, &mut |_, _| {})
        .map_err(|error| subject.error(format!("its host command can't be started: {error}")))?;
    let stdout = Zeroizing::new(ended.stdout);
    drop(Zeroizing::new(ended.stderr));
    match ended.how {
        End::Exited(status) if status.success() => {}
        End::Exited(status) => {
            return Err(subject.error(format!("its host command ended with {status}; run it by hand to see why")));
        }
        End::TimedOut => {
            return Err(subject.error(format!("its host command took longer than {} s", COMMAND_LIMIT.as_secs())));
        }
        End::Interrupted(signal) => {
            let during = format!("while the credential {} was being fetched", subject.env);
            return Err(LaunchError::Interrupted { signal, during, done: Vec::new() });
        }
    }
    if ended.truncated {
        return Err(subject.error(format!("its host command printed more than {MAX_SECRET} bytes")));
    }
    let text = std::str::from_utf8(&stdout).map_err(|_| subject.error("its host command printed no UTF-8"))?;
    usable(subject, Zeroizing::new(text.trim_end_matches(['\n', '\r']).to_owned()))
}

fn usable(subject: &Subject<'_>, value: Zeroizing<String>) -> Result<Secret, LaunchError> {
    if value.trim().is_empty() {
        return Err(subject.error("its source is empty"));
    }
    if value.contains('\0') || value.len() > MAX_SECRET {
        return Err(subject.error("its source is nothing that a variable can hold"));
    }
    Ok(Secret::new(value.to_string()))
}
