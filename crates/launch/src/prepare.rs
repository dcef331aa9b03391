//! From options to a launch that can be looked at: everything that can be judged is judged here, and nothing is done.
//!
//! [`prepare`] gives a [`Prepared`] with its plan; [`Prepared::clear`] asks where the agent is not trusted, and only
//! what it gives, a [`Cleared`], can be launched.

use std::path::{Path, PathBuf};

use bastion_host::files::read_capped;
use bastion_host::signals::Stop;

use crate::agent::Provider;
use crate::consent::{self, Answer, Consent, Question};
use crate::contents::{self, Contents};
use crate::credentials;
use crate::driver::{Driver, Launch, Launched, Notice, Session};
use crate::error::LaunchError;
use crate::image::{Context, FinalUser};
use crate::locate::{self, Located};
use crate::options::{LaunchOptions, Machine, Supervisor};
use crate::payload::{self, Payload};
use crate::plan::{LaunchPlan, PlannedImage, PlannedProfile, PlannedProvider, Variable};
use crate::profiles::{self, Profile};
use crate::prompt;
use crate::secret::Masker;
use crate::settings::{self, ImageSource, Resolved, Target};
use crate::temp::Temp;
use crate::{parse, paths};

/// Harnesses whose adapters the supervisor has.
const BUILT_IN: &[&str] = &["codex", "claude", "opencode", "command"];
/// The supervisor may be this large, in bytes.
const MAX_SUPERVISOR: u64 = 64 << 20;

/// A launch that is judged and not yet allowed.
pub struct Prepared {
    machine: Machine,
    plan: LaunchPlan,
    consent: Consent,
    located: Located,
    payload: Payload,
    policy: Option<Vec<u8>>,
    context: Option<Context>,
    profiles: Vec<Profile>,
    providers: Vec<Provider>,
    /// Why credentials are missing that can be looked at without running anything.
    problems: Vec<LaunchError>,
}

/// A launch that may happen.
pub struct Cleared(Prepared);

/// Judges everything that can be judged without doing anything.
///
/// # Errors
/// The first thing that can't be launched as it is.
pub fn prepare(options: &LaunchOptions, machine: &Machine) -> Result<Prepared, LaunchError> {
    let located = locate::locate(options, machine)?;
    let resolved = settings::resolve(options, machine, &located)?;
    let mut contents = Contents::read(&located)?;
    let payload = payload_of(options, machine, &located, &contents, &resolved)?;
    let mut warnings = located.parsed.warnings.clone();
    warnings.extend(resolved.warnings.iter().cloned());
    let mut shadowed = std::mem::take(&mut contents.warnings);
    let wanted: Vec<&str> = resolved.providers.iter().map(|provider| provider.profile.as_str()).collect();
    let profiles = chosen(&wanted, &contents, &located, &mut shadowed)?;
    for warning in shadowed {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    let consent = consent::judge(options, machine, &located, &contents, &resolved)?;
    let digest = contents.digest();
    let policy = contents.policy.take();
    let context = match &resolved.image {
        None => None,
        Some(_) if options.from.is_none() => Some(contents.context?),
        Some(from) => Some(Context::read(from, policy.is_some())?),
    };
    let problems = credentials::problems(&resolved.providers, &located.bases);
    warnings.extend(problems.iter().map(|problem| format!("it could not be launched: {problem}")));
    let plan =
        plan_of(machine, &located, &resolved, &payload, &profiles, context.as_ref(), &consent, digest, warnings)?;
    Ok(Prepared {
        machine: machine.clone(),
        plan,
        consent,
        located,
        payload,
        policy,
        context,
        profiles,
        providers: resolved.providers,
        problems,
    })
}

impl Prepared {
    /// What will happen.
    pub fn plan(&self) -> &LaunchPlan {
        &self.plan
    }

    /// What the user is to be asked, where that is so.
    pub fn question(&self) -> Option<&Question> {
        match &self.consent {
            Consent::Ask(question) => Some(question),
            _ => None,
        }
    }

    /// Asks where the agent is not trusted, and remembers a yes.
    ///
    /// # Errors
    /// Where a credential can't be there, or nobody said yes.
    pub fn clear(mut self, ask: &mut dyn FnMut(&Question) -> Answer) -> Result<Cleared, LaunchError> {
        if !self.problems.is_empty() {
            return Err(self.problems.remove(0));
        }
        consent::settle(&self.consent, &self.machine, ask)?;
        Ok(Cleared(self))
    }
}

impl Cleared {
    /// What will happen.
    pub fn plan(&self) -> &LaunchPlan {
        &self.0.plan
    }

    /// Launches it. `tell` gets what goes on; `stop` ends it between and within steps, and nothing stays in the
    /// temporary folder.
    ///
    /// # Errors
    /// The first step that failed, with what was done before it.
    pub fn launch(
        self,
        driver: &dyn Driver,
        stop: &Stop,
        tell: &mut dyn FnMut(Notice<'_>),
    ) -> Result<Launched, LaunchError> {
        let Prepared { machine, plan, located, payload, policy, context, profiles, providers, .. } = self.0;
        driver.check(&plan)?;
        tell(Notice::Step("fetching credentials"));
        let secrets = credentials::resolve(&providers, &located.bases, &machine.cwd, stop)?;
        let hidden = providers.iter().zip(&secrets).flat_map(|(provider, secrets)| {
            let shown = |name: &str| {
                let materials = provider.refresh.iter().flat_map(|refresh| &refresh.materials);
                materials.into_iter().any(|material| material.name == name && !material.hidden())
            };
            let materials = secrets.materials.iter().filter(move |(name, _)| !shown(name));
            secrets.credentials.iter().chain(materials).map(|(_, secret)| secret).collect::<Vec<_>>()
        });
        let masker = Masker::new(hidden);
        let temp = Temp::new(&machine.temp_dir)?;
        let mut session = Session::new(stop, &masker, tell);
        session.check("before anything was done on the gateway")?;
        driver.start(Launch {
            plan: &plan,
            machine: &machine,
            temp,
            payload: &payload,
            policy: policy.as_deref(),
            context: context.as_ref(),
            profiles: &profiles,
            providers: &providers,
            secrets: &secrets,
            session: &mut session,
        })
    }
}

/// The profiles of this launch: those that were hashed, and others where an option names them.
fn chosen(
    wanted: &[&str],
    contents: &Contents,
    located: &Located,
    warnings: &mut Vec<String>,
) -> Result<Vec<Profile>, LaunchError> {
    let mut profiles: Vec<Profile> = Vec::new();
    for id in wanted {
        if profiles.iter().any(|profile| profile.id == *id) {
            continue;
        }
        match contents.profiles.iter().find(|profile| profile.id == *id) {
            Some(profile) => profiles.push(profile.clone()),
            None => profiles.extend(profiles::find(&[*id], &contents::folders(located)?, warnings)?),
        }
    }
    Ok(profiles)
}

/// Step 5 to 8: runtime, a handed-over harness, the agent's files, the prompt.
fn payload_of(
    options: &LaunchOptions,
    machine: &Machine,
    located: &Located,
    contents: &Contents,
    resolved: &Resolved,
) -> Result<Payload, LaunchError> {
    let agent = &located.parsed.agent;
    let mut payload = Payload::default();
    let supervisor = match &machine.supervisor {
        Supervisor::Bytes(bytes) => bytes.to_vec(),
        Supervisor::Path(path) => read_capped(path, MAX_SUPERVISOR).map_err(|error| {
            LaunchError::refused(format!("the supervisor {}", path.display()), format!("can't be read: {error}"))
        })?,
    };
    let runtime = |name: &str| Path::new("runtime").join(name);
    payload.put(&runtime("bastion-supervisor"), supervisor, true, "the runtime")?;
    for (name, argument) in [("entrypoint.sh", ""), ("subagent.sh", " subagent")] {
        let script = format!("#!/bin/sh\nexec {}{argument} \"$@\"\n", payload::SUPERVISOR);
        payload.put(&runtime(name), script.into_bytes(), true, "the runtime")?;
    }
    harness_files(options, machine, &resolved.harness, &mut payload)?;
    let mut variables = vec![
        ("HARNESS".to_owned(), resolved.harness.clone()),
        ("RUN_MODE".to_owned(), resolved.mode.as_str().to_owned()),
        ("POLL_INTERVAL_SECONDS".to_owned(), resolved.poll_interval.to_string()),
        ("PAYLOAD_VERSION".to_owned(), agent.payload_version.to_string()),
        ("USER_PROMPT".to_owned(), options.prompt.clone()),
    ];
    let mut listed = serde_json::json!({ "skill": [], "subagent": [], "resource": [] });
    for ((kind, asset), (name, bytes)) in agent.assets().zip(&contents.assets) {
        let place = paths::destination(&asset.destination)?;
        if place.starts_with("runtime") || place == Path::new("agent.json") || place == Path::new("agent-prompt.md") {
            let subject = format!("the destination {} of the {name}", place.display());
            return Err(LaunchError::refused(subject, "is the runtime's own"));
        }
        payload.put(&place, bytes.clone(), false, name)?;
        // the supervisor finds a subagent by its id alone
        let known = PathBuf::from(format!("subagents/{}.md", asset.id));
        if kind == "subagent" && !payload.holds(&known) {
            payload.put(&known, bytes.clone(), false, name)?;
        }
        if let Some(variable) = &asset.expose_as {
            variables.push((variable.clone(), prompt::subagent_command(&asset.id)));
        }
        if let Some(list) = listed[kind].as_array_mut() {
            list.push(serde_json::json!({ "id": asset.id, "path": place }));
        }
    }
    let rendered = prompt::render(&agent.prompt_template, &contents.prompt, &variables)?;
    payload.put(Path::new("agent-prompt.md"), rendered.into_bytes(), false, "the prompt")?;
    let providers: Vec<_> = resolved
        .providers
        .iter()
        .map(|provider| serde_json::json!({ "id": provider.id, "name": provider.name, "profile": provider.profile }))
        .collect();
    let about = serde_json::json!({
        "schema_version": 1,
        "id": agent.id.as_str(),
        "display_name": agent.display_name,
        "description": agent.description,
        "payload_version": agent.payload_version,
        "digest": contents.digest(),
        "harness": { "name": resolved.harness, "supported": { &resolved.harness: resolved.harness_settings } },
        "run_mode": resolved.mode,
        "poll_interval_seconds": resolved.poll_interval,
        "providers": providers,
        "skills": listed["skill"],
        "subagents": listed["subagent"],
        "resources": listed["resource"],
    });
    payload.put(Path::new("agent.json"), format!("{about:#}\n").into_bytes(), false, "the launcher")?;
    Ok(payload)
}

/// A harness binary or adapter that was handed over, or the certainty that the supervisor has its own.
fn harness_files(
    options: &LaunchOptions,
    machine: &Machine,
    harness: &str,
    payload: &mut Payload,
) -> Result<(), LaunchError> {
    let place = Path::new("runtime/harnesses").join(harness);
    if let Some(dir) = &options.harness_dir {
        let given = machine.cwd.join(dir);
        let own = given.join(harness);
        let dir = if given.join("exec.sh").is_file() { given } else { own };
        let origin = "--harness-dir";
        if !dir.join("exec.sh").is_file() {
            let (dir, given) = (dir.display(), options.harness_dir.as_deref().unwrap_or(Path::new("")).display());
            return Err(LaunchError::usage(origin, format!("{given}: neither it nor {dir} has exec.sh")));
        }
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let here = dir.join(&folder);
            for entry in std::fs::read_dir(&here).map_err(LaunchError::file(&here))? {
                let entry = entry.map_err(LaunchError::file(&here))?;
                let (from, to) = (entry.path(), folder.join(entry.file_name()));
                let meta = from.symlink_metadata().map_err(LaunchError::file(&from))?;
                if meta.is_dir() {
                    folders.push(to);
                } else {
                    use std::os::unix::fs::PermissionsExt as _;
                    let program =
                        meta.permissions().mode() & 0o111 != 0 || to.extension().is_some_and(|end| end == "sh");
                    payload.put_file(&place.join(&to), &from, program, origin)?;
                }
            }
        }
    } else if !BUILT_IN.contains(&harness) {
        let what = format!("has no adapter: built in are {}; give its folder with --harness-dir", BUILT_IN.join(", "));
        return Err(LaunchError::refused(format!("the harness `{harness}`"), what));
    }
    if let Some(program) = &options.harness_bin {
        payload.put_file(&place.join(harness), &machine.cwd.join(program), true, "--harness-bin")?;
    }
    Ok(())
}

#[allow(clippy::too_many_arguments)] // the parts of the one value that it makes
fn plan_of(
    machine: &Machine,
    located: &Located,
    resolved: &Resolved,
    payload: &Payload,
    profiles: &[Profile],
    context: Option<&Context>,
    consent: &Consent,
    digest: String,
    warnings: Vec<String>,
) -> Result<LaunchPlan, LaunchError> {
    let agent = &located.parsed.agent;
    let seconds = machine.clock.now().as_second();
    let image = resolved.image.as_ref().zip(context).map(|(from, context)| PlannedImage {
        from: ImageSource::clone(from),
        tag: format!("openshell/agent-{}:{seconds}", agent.id),
        user: match &context.user {
            FinalUser::Named(name) => Some(name.clone()),
            FinalUser::Inherited => None,
        },
    });
    debug_assert!(parse::is_component(&resolved.harness));
    Ok(LaunchPlan {
        v: 1,
        agent: agent.id.to_string(),
        manifest: located.manifest.clone(),
        digest,
        trust: consent.shown(),
        target: resolved.target.clone(),
        sandbox: resolved.name.clone(),
        image,
        harness: resolved.harness.clone(),
        harness_settings: resolved.harness_settings.clone(),
        run_mode: resolved.mode,
        poll_interval_seconds: resolved.poll_interval,
        attach: resolved.attach,
        keep: resolved.keep,
        reset_refresh: resolved.reset_refresh,
        env: resolved.env.iter().map(|(name, value)| Variable { name: name.clone(), value: value.clone() }).collect(),
        payload: payload.planned(),
        policy: agent.policy.as_deref().map(|path| located.bases.resolve(path)).transpose()?,
        settings: if resolved.target == Target::Local { Vec::new() } else { agent.settings.clone() },
        profiles: profiles
            .iter()
            .map(|profile| PlannedProfile {
                id: profile.id.clone(),
                file: profile.file.clone(),
                hosts: profile.hosts(),
            })
            .collect(),
        providers: resolved.providers.iter().map(PlannedProvider::from).collect(),
        local: agent.sandbox.local.clone(),
        binds: resolved.binds.clone(),
        warnings,
    })
}
