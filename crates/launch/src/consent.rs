//! May this agent act on this machine? Its owner is vouched for, it is the user's own, or the user is asked once.
//!
//! The answer is kept for one digest: another version of anything that the agent brings in is another question.

use std::fmt;
use std::path::{Path, PathBuf};

use bastion_host::clock::UtcMillis;
use bastion_host::files;
use bastion_trust::manifest::tree;
use bastion_trust::{Claim, RefusalCode, Standing};

use crate::agent::Source;
use crate::contents::Contents;
use crate::copy;
use crate::credentials;
use crate::error::LaunchError;
use crate::locate::Located;
use crate::options::{LaunchOptions, Machine};
use crate::profiles::{Profile, hosts_in};
use crate::settings::{ImageSource, Resolved, Target};
use crate::text::plain;
use crate::variables;

/// What the user is to say yes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The agent's id.
    pub agent: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Digest of all it brings in.
    pub digest: String,
    /// What it will do, line by line, fit for a terminal.
    pub acts: Vec<String>,
}

/// What the user said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Launch it, and remember that.
    Yes,
    /// Don't.
    No,
    /// There is nobody to ask.
    NoTerminal,
}

/// Why an agent may act, or what is to be asked first.
#[derive(Debug, Clone)]
pub(crate) enum Consent {
    /// It lies in the user's configuration folder.
    Own,
    /// An owner signed it whom this machine's CA vouches for.
    Signed {
        /// The owner.
        cn: String,
        /// What was signed: the gate judges it once more, and remembers it, when the agent acts.
        claim: Box<Claim>,
    },
    /// The user said yes to this version before.
    Remembered,
    /// The user said so with the option.
    Told(Question),
    /// The user is to be asked.
    Ask(Question),
}

impl Consent {
    /// In words, for the plan.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Own => "in your configuration folder".to_owned(),
            Self::Signed { cn, .. } => format!("signed by {cn}"),
            Self::Remembered => "this version was agreed to before".to_owned(),
            Self::Told(_) => "agreed to by --trust".to_owned(),
            Self::Ask(_) => "asks before the first launch of this version".to_owned(),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "The agent `{}` in {} is not signed by an owner this machine knows.",
            self.agent,
            plain(&self.folder.display().to_string())
        )?;
        writeln!(f, "Launched, it will")?;
        if self.acts.is_empty() {
            writeln!(f, "  do nothing outside its sandbox, and reach nothing from inside")?;
        }
        for act in &self.acts {
            writeln!(f, "  {act}")?;
        }
        write!(f, "This version: {}", self.digest)
    }
}

/// Judges the agent.
///
/// # Errors
/// Where the gate refuses its signature, or there is none and one is required.
pub(crate) fn judge(
    options: &LaunchOptions,
    machine: &Machine,
    located: &Located,
    contents: &Contents,
    resolved: &Resolved,
    profiles: &[Profile],
) -> Result<Consent, LaunchError> {
    let agent = &located.parsed.agent;
    let added = added(options, contents, profiles);
    // what an option puts in is another version too
    let digest = match added.as_slice() {
        [] => contents.digest(),
        _ => copy::sha256(format!("{}\n{}", contents.digest(), added.join("\n")).as_bytes()),
    };
    let required = options.require_signature || variables::switch(machine, "BASTION_REQUIRE_SIGNATURE")?;
    let gate = |code, detail: String| LaunchError::Gate { path: located.manifest.clone(), code, detail };
    if agent.signature.is_some() {
        let claim = contents.claim(agent);
        let standing = machine.gate.check_claim(&claim, &located.manifest);
        match standing.map_err(|fault| gate(fault.code, fault.detail))? {
            Standing::Signed { cn, .. } if added.is_empty() => {
                return Ok(Consent::Signed { cn, claim: Box::new(claim) });
            }
            Standing::Signed { .. } => {}
            Standing::Bypassed { reason } => return Err(gate(RefusalCode::Unsigned, reason)),
        }
    }
    if required {
        let why = match added.as_slice() {
            [] => "it has no signature, and one is required; `bastion sign` makes one".to_owned(),
            _ => format!("the signature does not cover what the options put in: {}", added.join(", ")),
        };
        return Err(gate(RefusalCode::Unsigned, why));
    }
    if located.own {
        return Ok(Consent::Own);
    }
    if answer_file(machine, &digest).is_file() {
        return Ok(Consent::Remembered);
    }
    let acts = acts(located, contents, resolved, profiles);
    let question = Question { agent: agent.id.to_string(), folder: located.bases.agent.clone(), digest, acts };
    Ok(if options.trust { Consent::Told(question) } else { Consent::Ask(question) })
}

/// Takes the answer and remembers a yes; of a signed agent the gate remembers the version.
pub(crate) fn settle(
    consent: &Consent,
    manifest: &Path,
    machine: &Machine,
    ask: &mut dyn FnMut(&Question) -> Answer,
) -> Result<(), LaunchError> {
    let question = match consent {
        Consent::Own | Consent::Remembered => return Ok(()),
        Consent::Signed { claim, .. } => {
            let judged = machine.gate.judge_claim(claim, manifest).map(|_| ());
            return judged.map_err(|fault| LaunchError::Gate {
                path: manifest.to_owned(),
                code: fault.code,
                detail: fault.detail,
            });
        }
        Consent::Told(question) => question,
        Consent::Ask(question) => {
            let refused = |what| Err(LaunchError::Untrusted { agent: question.agent.clone(), what });
            match ask(question) {
                Answer::Yes => question,
                Answer::No => return refused("you said no"),
                Answer::NoTerminal => {
                    return refused("there is no terminal to ask on; look at it with --dry-run, then give --trust");
                }
            }
        }
    };
    let record = serde_json::json!({
        "v": 1,
        "agent": question.agent,
        "folder": question.folder,
        "at": UtcMillis(machine.clock.now()),
        "acts": question.acts,
    });
    let file = answer_file(machine, &question.digest);
    let dir = file.parent().unwrap_or(&machine.state_dir).to_owned();
    files::create_private_dir(&dir).map_err(LaunchError::file(&dir))?;
    files::replace(&file, record.to_string().as_bytes(), files::PRIVATE_FILE).map_err(LaunchError::file(&file))
}

fn answer_file(machine: &Machine, digest: &str) -> PathBuf {
    machine.state_dir.join("trusted-agents").join(format!("{digest}.json"))
}

/// What options put in that is not among what was hashed: an image, and profiles that no provider of the manifest has.
fn added(options: &LaunchOptions, contents: &Contents, profiles: &[Profile]) -> Vec<String> {
    let known = |profile: &&Profile| contents.profiles.iter().any(|known| known.bytes == profile.bytes);
    let profiles = profiles.iter().filter(|profile| !known(profile));
    let profiles = profiles.map(|profile| format!("the profile {} ({})", profile.id, copy::sha256(&profile.bytes)));
    options.from.iter().map(|from| format!("the image {from}")).chain(profiles).collect()
}

/// What the agent does outside its sandbox, and what it may reach from inside.
fn acts(located: &Located, contents: &Contents, resolved: &Resolved, chosen: &[Profile]) -> Vec<String> {
    let agent = &located.parsed.agent;
    let mut acts = Vec::new();
    let mut say = |what: String| {
        let line = plain(&what);
        if !acts.contains(&line) {
            acts.push(line);
        }
    };
    for provider in &agent.providers {
        for (_, source) in credentials::sources(provider) {
            match source {
                Source::HostCommand { command } => say(format!("run on this machine: {command}")),
                Source::FileJson { path, query } => say(format!("read a credential: {path} ({query})")),
                Source::Value { .. } => {}
            }
        }
    }
    let assets = agent.assets().map(|(_, asset)| asset.source.as_str());
    let taken = assets.chain([agent.prompt_template.as_str()]).chain(agent.policy.as_deref());
    for path in taken.filter_map(|source| located.bases.resolve(source).ok()) {
        let inside = path.canonicalize().is_ok_and(|real| located.bases.owns(&real));
        if !inside {
            say(format!("take a file from outside its folder: {}", path.display()));
        }
    }
    match &resolved.image {
        Some(ImageSource::Dockerfile(path)) => say(format!("build an image, running what is in {}", path.display())),
        Some(ImageSource::Reference(reference)) => say(format!("build an image on {reference}")),
        None => {}
    }
    for profile in contents.profiles.iter().chain(chosen) {
        for host in profile.hosts() {
            say(format!("reach from inside: {host}"));
        }
    }
    if let (Some(policy), Some(path)) = (&contents.policy, &agent.policy) {
        let hosts = tree(policy).map(|root| hosts_in(&root.to_json())).unwrap_or_default();
        if hosts.is_empty() {
            say(format!("reach from inside what {path} says"));
        }
        for host in hosts {
            say(format!("reach from inside: {host} ({path})"));
        }
    }
    if resolved.target != Target::Local {
        for setting in &agent.settings {
            say(format!("change a setting of the gateway: {} = {}", setting.key, setting.value));
        }
    }
    for bind in &resolved.binds {
        let how = if bind.writable { "read and change" } else { "read" };
        say(format!("{how} a folder of this machine: {}", bind.source));
    }
    acts
}
