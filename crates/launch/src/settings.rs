//! What holds for this launch? Flags above the environment above the manifest, all of it judged before anything is done.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::agent::{Agent, Bind, Provider, RunMode};
use crate::error::LaunchError;
use crate::locate::Located;
use crate::name;
use crate::options::{LaunchOptions, Machine};
use crate::parse::{is_component, is_variable};
use crate::paths::Bases;
use crate::variables;

/// Where an agent runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// In a sandbox of this machine.
    Local,
    /// On an OpenShell gateway of this name.
    Gateway(String),
}

/// What the image is built from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// A Dockerfile and the folder it lies in, which is the build context.
    Dockerfile(PathBuf),
    /// An image by its reference.
    Reference(String),
}

/// Everything that flags, environment and manifest decide.
pub(crate) struct Resolved {
    pub(crate) target: Target,
    pub(crate) name: String,
    /// None where the target needs no image.
    pub(crate) image: Option<ImageSource>,
    pub(crate) harness: String,
    /// What belongs to the adapter.
    pub(crate) harness_settings: serde_json::Value,
    pub(crate) mode: RunMode,
    pub(crate) poll_interval: u64,
    pub(crate) attach: bool,
    pub(crate) keep: bool,
    pub(crate) reset_refresh: bool,
    /// Those of this harness, with the flags put in.
    pub(crate) providers: Vec<Provider>,
    /// Variables of the sandbox, in order.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) binds: Vec<Bind>,
    pub(crate) warnings: Vec<String>,
}

pub(crate) fn resolve(options: &LaunchOptions, machine: &Machine, located: &Located) -> Result<Resolved, LaunchError> {
    let agent = &located.parsed.agent;
    if options.once && options.watch {
        return Err(LaunchError::usage("--once", "and --watch exclude each other"));
    }
    if options.attach && options.detach {
        return Err(LaunchError::usage("--attach", "and --detach exclude each other"));
    }
    let harness = harness(options, agent)?;
    let mode = mode(options, machine, agent)?;
    let poll_interval = match options.poll_interval {
        Some(0) => return Err(LaunchError::usage("--poll-interval", "must be greater than zero")),
        Some(seconds) => seconds,
        None => variables::number(machine, "OPENSHELL_AGENT_POLL_INTERVAL_SECONDS", 1)?
            .unwrap_or(agent.runtime.poll_interval_seconds),
    };
    let mut warnings = Vec::new();
    let harness_settings = harness_settings(machine, agent, &harness);
    let providers = providers(options, agent, &harness)?;
    let target = target(options, agent)?;
    let mut env = supervisor_env(machine, agent, &harness, mode, poll_interval)?;
    if harness == "codex" {
        for (name, key) in CODEX {
            if let Some(value) = harness_settings[key].as_str() {
                env.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    env.extend(extra_env(options, &providers, &env, &mut warnings)?);
    let name = match &options.name {
        Some(name) => name::given(name)?,
        None => name::made(agent.sandbox.name_prefix.as_deref().unwrap_or(agent.id.as_str()), machine.clock.now())?,
    };
    let image = match &target {
        Target::Local => None,
        Target::Gateway(_) => Some(image(options, machine, located)?),
    };
    let binds = binds(options, agent, &target)?;
    Ok(Resolved {
        target,
        name,
        image,
        harness,
        harness_settings,
        mode,
        poll_interval,
        attach: options.attach || (!options.detach && mode == RunMode::Once),
        keep: options.keep,
        reset_refresh: options.reset_refresh || variables::switch(machine, "OPENSHELL_AGENT_RESET_REFRESH")?,
        providers,
        env,
        binds,
        warnings,
    })
}

/// Variables of older launchers that set what the manifest says of `codex`.
const CODEX: [(&str, &str); 2] = [("CODEX_MODEL", "model"), ("CODEX_REASONING", "reasoning")];

fn harness(options: &LaunchOptions, agent: &Agent) -> Result<String, LaunchError> {
    let supported: Vec<&str> = agent.harness.supported.iter().map(|(name, _)| name.as_str()).collect();
    let name = match (&options.harness, &agent.harness.default, supported.as_slice()) {
        (Some(name), ..) | (None, Some(name), _) => name.clone(),
        (None, None, [only]) => (*only).to_owned(),
        _ => {
            let all = supported.join(", ");
            return Err(LaunchError::usage(
                "--harness",
                format!("is needed: the agent has no default, and supports {all}"),
            ));
        }
    };
    if !supported.contains(&name.as_str()) {
        return Err(LaunchError::refused(
            format!("the harness `{}`", name.escape_debug()),
            format!("is not supported by `{}`; supported are {}", agent.id, supported.join(", ")),
        ));
    }
    Ok(name)
}

fn harness_settings(machine: &Machine, agent: &Agent, harness: &str) -> serde_json::Value {
    let own = agent.harness.supported.iter().find(|(name, _)| name == harness);
    let mut settings = own.map_or_else(|| serde_json::json!({}), |(_, settings)| settings.clone());
    if harness == "codex" {
        for (name, key) in CODEX {
            if let Some(value) = machine.var(name) {
                settings[key] = value.into();
            }
        }
    }
    settings
}

fn mode(options: &LaunchOptions, machine: &Machine, agent: &Agent) -> Result<RunMode, LaunchError> {
    const NAME: &str = "OPENSHELL_AGENT_RUN_MODE";
    let from_env = match machine.var(NAME) {
        None => None,
        Some(name) => Some(RunMode::named(name).ok_or_else(|| LaunchError::usage(NAME, "must be once or watch"))?),
    };
    Ok(match (options.once, options.watch) {
        (true, _) => RunMode::Once,
        (_, true) => RunMode::Watch,
        _ => from_env.unwrap_or(agent.runtime.mode),
    })
}

fn target(options: &LaunchOptions, agent: &Agent) -> Result<Target, LaunchError> {
    match options.gateway.as_ref().or(agent.sandbox.gateway.as_ref()).map(String::as_str) {
        None | Some("local") => Ok(Target::Local),
        Some(name) if is_component(name) => Ok(Target::Gateway(name.to_owned())),
        Some(name) => Err(LaunchError::refused(format!("the gateway name `{}`", name.escape_debug()), "is none")),
    }
}

fn supervisor_env(
    machine: &Machine,
    agent: &Agent,
    harness: &str,
    mode: RunMode,
    poll_interval: u64,
) -> Result<Vec<(String, String)>, LaunchError> {
    let runtime = &agent.runtime;
    let number =
        |name: &str, own: u64| variables::number(machine, name, 0).map(|value| value.unwrap_or(own).to_string());
    let mut env = vec![
        ("HARNESS", harness.to_owned()),
        ("ID", agent.id.to_string()),
        ("RUN_MODE", mode.as_str().to_owned()),
        ("POLL_INTERVAL_SECONDS", poll_interval.to_string()),
        ("MAX_TRANSIENT_FAILURES", number("OPENSHELL_AGENT_MAX_TRANSIENT_FAILURES", runtime.max_transient_failures)?),
        ("MAX_CYCLES", number("OPENSHELL_AGENT_MAX_CYCLES", runtime.max_cycles)?),
        ("CYCLE_TIMEOUT_SECONDS", number("OPENSHELL_AGENT_CYCLE_TIMEOUT_SECONDS", runtime.cycle_timeout_seconds)?),
        (
            "SILENCE_TIMEOUT_SECONDS",
            number("OPENSHELL_AGENT_SILENCE_TIMEOUT_SECONDS", runtime.silence_timeout_seconds)?,
        ),
    ]
    .into_iter()
    .map(|(name, value)| (format!("OPENSHELL_AGENT_{name}"), value))
    .collect::<Vec<_>>();
    env.extend(variables::passed_on(machine)?);
    Ok(env)
}

fn extra_env(
    options: &LaunchOptions,
    providers: &[Provider],
    taken: &[(String, String)],
    warnings: &mut Vec<String>,
) -> Result<Vec<(String, String)>, LaunchError> {
    let mut extra: Vec<(String, String)> = Vec::new();
    for given in &options.env {
        let (name, value) = given
            .split_once('=')
            .filter(|(name, value)| is_variable(name) && !value.contains('\0'))
            .ok_or_else(|| LaunchError::usage("--env", "takes KEY=VALUE"))?;
        let refused = |why: &str| Err(LaunchError::usage(format!("--env {name}"), why));
        if name.starts_with("OPENSHELL_") || taken.iter().any(|(other, _)| other == name) {
            return refused("is set by the launcher; use its option or the launcher's own environment");
        }
        if providers.iter().flat_map(|provider| &provider.credentials).any(|credential| credential.env == name) {
            return refused("is a credential; its value would stand on a command line");
        }
        if extra.iter().any(|(other, _)| other == name) {
            return refused("is given twice");
        }
        if ["TOKEN", "SECRET", "PASSWORD", "API_KEY"].iter().any(|part| name.to_ascii_uppercase().contains(part)) {
            warnings
                .push(format!("--env {name} can be read by everyone on this machine; a secret belongs in a provider"));
        }
        extra.push((name.to_owned(), value.to_owned()));
    }
    Ok(extra)
}

fn providers(options: &LaunchOptions, agent: &Agent, harness: &str) -> Result<Vec<Provider>, LaunchError> {
    let mut providers = agent.providers.clone();
    for given in &options.providers {
        let usage = |what: String| LaunchError::usage(format!("--provider {}", given.escape_debug()), what);
        let (place, value) = given.split_once('=').ok_or_else(|| usage("is no ID.FIELD=VALUE".to_owned()))?;
        let (id, field) = place.rsplit_once('.').ok_or_else(|| usage("is no ID.FIELD=VALUE".to_owned()))?;
        if !is_component(value) {
            return Err(usage("has a value that is no name".to_owned()));
        }
        let known: Vec<String> = agent.providers.iter().map(|provider| provider.id.clone()).collect();
        let provider = providers
            .iter_mut()
            .find(|provider| provider.id == id)
            .ok_or_else(|| usage(format!("names no provider; there are {}", known.join(", "))))?;
        match (field, &mut provider.refresh) {
            ("name", _) => value.clone_into(&mut provider.name),
            ("profile", _) => value.clone_into(&mut provider.profile),
            ("credential_key", Some(refresh)) => value.clone_into(&mut refresh.credential_key),
            ("credential_key", None) => {
                return Err(usage("sets the key of a refresh that the provider has not".to_owned()));
            }
            _ => return Err(usage("names no field; there are name, profile, credential_key".to_owned())),
        }
    }
    providers.retain(|provider| provider.harness.as_deref().is_none_or(|only| only == harness));
    for (i, provider) in providers.iter().enumerate() {
        if providers[..i].iter().any(|other| other.name == provider.name) {
            let subject = format!("the provider name `{}`", provider.name);
            return Err(LaunchError::refused(subject, "is used twice in this launch"));
        }
    }
    Ok(providers)
}

fn image(options: &LaunchOptions, machine: &Machine, located: &Located) -> Result<ImageSource, LaunchError> {
    match &options.from {
        Some(from) => image_at(from, &machine.cwd, &located.bases),
        None => {
            let own = located.parsed.agent.sandbox.from.as_deref().unwrap_or("agent://.");
            image_at(own, &located.bases.agent, &located.bases)
        }
    }
}

/// What `from` means, a relative path starting at `base`.
pub(crate) fn image_at(from: &str, base: &Path, bases: &Bases) -> Result<ImageSource, LaunchError> {
    let prefixed = from.contains("://");
    let path = if prefixed { bases.resolve(from)? } else { base.join(from) };
    let is_path = prefixed || from.starts_with(['/', '.']) || path.symlink_metadata().is_ok();
    if !is_path {
        return reference(from);
    }
    let refused = |path: &Path, why: String| LaunchError::refused(format!("the image source {}", path.display()), why);
    let meta = path.symlink_metadata().map_err(|error| refused(&path, format!("can't be read: {error}")))?;
    let file = if path.is_dir() { path.join("Dockerfile") } else { path.clone() };
    let what = if path.is_dir() {
        file.symlink_metadata().map_err(|_| refused(&path, "has no Dockerfile in it".to_owned()))?
    } else {
        meta
    };
    if what.is_symlink() {
        return Err(refused(&file, "is a link; the Dockerfile must be a file of its own".to_owned()));
    }
    if !what.is_file() {
        return Err(refused(&file, "is no regular file".to_owned()));
    }
    Ok(ImageSource::Dockerfile(file))
}

fn reference(from: &str) -> Result<ImageSource, LaunchError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-/:@".contains(&b);
    if !from.bytes().all(plain) || !from.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        let subject = format!("the image source `{}`", from.escape_debug());
        return Err(LaunchError::refused(subject, "is neither a file, nor a folder, nor an image reference"));
    }
    Ok(ImageSource::Reference(from.to_owned()))
}

fn binds(options: &LaunchOptions, agent: &Agent, target: &Target) -> Result<Vec<Bind>, LaunchError> {
    if *target != Target::Local {
        return match options.binds.first() {
            Some(_) => Err(LaunchError::usage(
                "--bind",
                "is for the local driver; a gateway's sandbox sees no folder of the host",
            )),
            None => Ok(Vec::new()),
        };
    }
    let mut binds = agent.sandbox.local.binds.clone();
    for given in &options.binds {
        let usage = || LaunchError::usage(format!("--bind {}", given.escape_debug()), "is no DIR[:DEST][:rw]");
        let (rest, writable) = match given.strip_suffix(":rw") {
            Some(rest) => (rest, true),
            None => (given.strip_suffix(":ro").unwrap_or(given), false),
        };
        let (source, destination) = match rest.split_once(':') {
            Some((source, destination)) => (source, Some(destination)),
            None => (rest, None),
        };
        if source.is_empty() || destination.is_some_and(|to| !to.starts_with('/') || to.contains(':')) {
            return Err(usage());
        }
        binds.push(Bind { source: source.to_owned(), destination: destination.map(str::to_owned), writable });
    }
    Ok(binds)
}
