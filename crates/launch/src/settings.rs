//! What holds for this launch? Flags above the environment above the manifest, all of it judged before anything is done.
mod image;
mod providers;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::agent::{Agent, Bind, Provider, RunMode};
use crate::error::LaunchError;
use crate::locate::Located;
use crate::name;
use crate::options::{LaunchOptions, Machine};
use crate::parse::{is_component, is_variable};
use crate::runs;
use crate::variables;
use image::image;
use providers::providers;

pub use image::ImageSource;
pub(crate) use image::image_at;

/// Where an agent runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// In a sandbox of this machine.
    Local,
    /// On an OpenShell gateway of this name.
    Gateway(String),
}

/// Everything that flags, environment and manifest decide.
pub(crate) struct Resolved {
    pub(crate) target: Target,
    pub(crate) name: String,
    /// Whether the user chose the name.
    pub(crate) is_named: bool,
    /// The time that name and tag say.
    pub(crate) at: Timestamp,
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
    let (name, at) = named(options, machine, agent)?;
    let image = match &target {
        Target::Local => None,
        Target::Gateway(_) => Some(image(options, machine, located)?),
    };
    let binds = binds(options, machine, located, &target)?;
    Ok(Resolved {
        target,
        name,
        is_named: options.name.is_some(),
        at,
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

/// The sandbox's name, and the time in it: a second later for each run of this machine that has the name.
fn named(options: &LaunchOptions, machine: &Machine, agent: &Agent) -> Result<(String, Timestamp), LaunchError> {
    let mut at = machine.clock.now();
    if let Some(name) = &options.name {
        let name = name::given(name)?;
        if runs::is_known(&machine.state_dir, &name) {
            let what =
                format!("is the name of a run of this machine; `bastion runs rm {name}` ends and forgets that one");
            return Err(LaunchError::usage("--name", what));
        }
        return Ok((name, at));
    }
    let prefix = agent.sandbox.name_prefix.clone().unwrap_or_else(|| name::prefix_of(agent.id.as_str()));
    let mut name = name::made(&prefix, at)?;
    while runs::is_known(&machine.state_dir, &name) {
        at = at.saturating_add(SignedDuration::from_secs(1)).unwrap_or(at);
        name = name::made(&prefix, at)?;
    }
    Ok((name, at))
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

/// The binds, each from an absolute path: those of the manifest as its other paths, those of the command line from the
/// current folder, and in both `~/` is the home folder.
fn binds(
    options: &LaunchOptions,
    machine: &Machine,
    located: &Located,
    target: &Target,
) -> Result<Vec<Bind>, LaunchError> {
    if *target != Target::Local {
        return match options.binds.first() {
            Some(_) => Err(LaunchError::usage(
                "--bind",
                "is for the local driver; a gateway's sandbox sees no folder of the host",
            )),
            None => Ok(Vec::new()),
        };
    }
    let mut binds = Vec::new();
    for bind in &located.parsed.agent.sandbox.local.binds {
        let source = located.bases.credential(&bind.source)?.to_string_lossy().into_owned();
        binds.push(Bind { source, ..bind.clone() });
    }
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
        let source = match (source.strip_prefix("~/"), &machine.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => machine.cwd.join(source),
        };
        let source = source.to_string_lossy().into_owned(); // from UTF-8, unless the current folder is none
        binds.push(Bind { source, destination: destination.map(str::to_owned), writable });
    }
    Ok(binds)
}
