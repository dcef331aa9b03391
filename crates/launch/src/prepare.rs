//! From options to a launch that can be looked at: everything that can be judged is judged here, and nothing is done.
//!
//! [`prepare`] gives a [`Prepared`] with its plan; [`Prepared::clear`] asks where the agent is not trusted, and only
//! what it gives, a [`Cleared`], can be launched.

use bastion_host::signals::Stop;

use crate::agent::Provider;
use crate::assemble;
use crate::consent::{self, Answer, Consent, Question};
use crate::contents::{self, Contents};
use crate::credentials;
use crate::driver::{Driver, Launch, Launched, Notice, Session};
use crate::error::LaunchError;
use crate::image::{Context, FinalUser};
use crate::local::{self, harness};
use crate::locate::{self, Located};
use crate::options::{LaunchOptions, Machine};
use crate::payload::Payload;
use crate::plan::{LaunchPlan, PlannedBind, PlannedImage, PlannedProfile, PlannedProvider, Variable};
use crate::profiles::{self, Profile};
use crate::secret::Masker;
use crate::settings::{self, ImageSource, Resolved, Target};
use crate::temp::Temp;

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
    let mut problems = credentials::problems(&resolved.providers, &located.bases);
    let harness = match harness(options, machine, &resolved) {
        Ok(found) => found,
        Err(problem) => {
            problems.push(problem);
            harness::Found::default()
        }
    };
    let payload = assemble::payload(options, machine, &located, &contents, &resolved, &harness)?;
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
    let consent = consent::judge(options, machine, &located, &contents, &resolved, &profiles)?;
    let digest = contents.digest();
    let policy = contents.policy.take();
    let context = match &resolved.image {
        None => None,
        Some(_) if options.from.is_none() => Some(contents.context?),
        Some(from) => Some(Context::read(from, policy.is_some())?),
    };
    if resolved.target == Target::Local {
        let file = located.parsed.agent.policy.as_deref().map(|path| located.bases.resolve(path)).transpose()?;
        let policy = file.as_deref().zip(policy.as_deref());
        let local = &located.parsed.agent.sandbox.local;
        warnings.extend(local::judge(machine, local, &resolved.binds, &profiles, policy, &resolved.providers)?);
    }
    warnings.extend(problems.iter().map(|problem| format!("it could not be launched: {problem}")));
    let plan =
        plan_of(&located, &resolved, &payload, &profiles, context.as_ref(), &consent, &harness, digest, warnings)?;
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
        consent::settle(&self.consent, &self.located.manifest, &self.machine, ask)?;
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
        driver.check(&plan, stop)?;
        if !providers.is_empty() {
            tell(Notice::Step("fetching credentials"));
        }
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
            bases: &located.bases,
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

/// What of this machine the harness needs, where it runs here.
fn harness(options: &LaunchOptions, machine: &Machine, resolved: &Resolved) -> Result<harness::Found, LaunchError> {
    if resolved.target != Target::Local || options.harness_dir.is_some() && options.harness_bin.is_none() {
        return Ok(harness::Found::default());
    }
    let given = options.harness_bin.as_ref().map(|program| machine.cwd.join(program));
    harness::find(&resolved.harness, given.as_deref(), machine.var("PATH").unwrap_or_default())
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

#[allow(clippy::too_many_arguments)] // the parts of the one value that it makes
fn plan_of(
    located: &Located,
    resolved: &Resolved,
    payload: &Payload,
    profiles: &[Profile],
    context: Option<&Context>,
    consent: &Consent,
    harness: &harness::Found,
    digest: String,
    warnings: Vec<String>,
) -> Result<LaunchPlan, LaunchError> {
    let agent = &located.parsed.agent;
    let seconds = resolved.at.as_second();
    let image = resolved.image.as_ref().zip(context).map(|(from, context)| PlannedImage {
        from: ImageSource::clone(from),
        tag: format!("openshell/agent-{}:{seconds}", agent.id),
        user: match &context.user {
            FinalUser::Named(name) => Some(name.clone()),
            FinalUser::Inherited => None,
        },
    });
    Ok(LaunchPlan {
        v: 1,
        agent: agent.id.to_string(),
        manifest: located.manifest.clone(),
        digest,
        trust: consent.shown(),
        target: resolved.target.clone(),
        sandbox: resolved.name.clone(),
        is_named: resolved.is_named,
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
        harness_files: harness
            .binds
            .iter()
            .map(|(source, destination)| PlannedBind { source: source.clone(), destination: destination.clone() })
            .collect(),
        binds: resolved.binds.clone(),
        warnings,
    })
}
