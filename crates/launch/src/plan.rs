//! What will happen? One plain value that says all of it, for `--dry-run`, for tests and for the driver.
//!
//! It holds no secret: where a credential's value would stand it says `***`.

use std::fmt::{self, Write as _};
use std::path::PathBuf;

use serde::Serialize;

use crate::agent::{Bind, CredentialMode, Local, Provider, RunMode, Setting, Source};
use crate::payload::PlannedFile;
use crate::secret::MASK;
use crate::settings::{ImageSource, Target};
use crate::text::plain;

/// A launch before it happens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaunchPlan {
    /// Version of this value, 1.
    pub v: u32,
    /// The agent's id.
    pub agent: String,
    /// Its manifest.
    pub manifest: PathBuf,
    /// Digest of all it brings in.
    pub digest: String,
    /// Why it may act on this machine.
    pub trust: String,
    /// Where it runs.
    pub target: Target,
    /// The sandbox's name.
    pub sandbox: String,
    /// Whether the user chose it: then the gateway may have one of that name.
    #[serde(skip)]
    pub is_named: bool,
    /// The image, where the target needs one.
    pub image: Option<PlannedImage>,
    /// The harness.
    pub harness: String,
    /// What belongs to its adapter.
    pub harness_settings: serde_json::Value,
    /// Once or watch.
    pub run_mode: RunMode,
    /// Sleep between cycles.
    pub poll_interval_seconds: u64,
    /// Whether the launcher stays until the run ends.
    pub attach: bool,
    /// Whether the sandbox stays when the run has ended.
    pub keep: bool,
    /// Whether the gateway's refresh state is replaced.
    pub reset_refresh: bool,
    /// The sandbox's variables, in order.
    pub env: Vec<Variable>,
    /// The payload.
    pub payload: Vec<PlannedFile>,
    /// The policy file.
    pub policy: Option<PathBuf>,
    /// Settings of the gateway.
    pub settings: Vec<Setting>,
    /// The profiles that win.
    pub profiles: Vec<PlannedProfile>,
    /// The provider instances.
    pub providers: Vec<PlannedProvider>,
    /// What only the local driver reads.
    pub local: Local,
    /// What the local driver binds for the harness.
    pub harness_files: Vec<PlannedBind>,
    /// Folders of this machine that the sandbox sees.
    pub binds: Vec<Bind>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Something of this machine that the sandbox sees, read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedBind {
    /// Where it is on this machine.
    pub source: PathBuf,
    /// Where it is inside.
    pub destination: PathBuf,
}

/// The image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedImage {
    /// What it is built from.
    pub from: ImageSource,
    /// Its tag.
    pub tag: String,
    /// Who it runs as; none: as its base does, which is looked at once it is built.
    pub user: Option<String>,
}

/// A variable of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedProfile {
    /// Its id.
    pub id: String,
    /// Its file.
    pub file: PathBuf,
    /// The hosts that it opens.
    pub hosts: Vec<String>,
}

/// A provider instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedProvider {
    /// Its id in the manifest.
    pub id: String,
    /// Its name on the gateway.
    pub name: String,
    /// Its profile.
    pub profile: String,
    /// How it gets its credentials.
    pub mode: CredentialMode,
    /// Its credentials, without values.
    pub credentials: Vec<PlannedCredential>,
    /// How one is refreshed.
    pub refresh: Option<PlannedRefresh>,
}

/// A credential, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedCredential {
    /// The variable.
    pub env: String,
    /// Whether the gateway's program gets it.
    pub export: bool,
    /// Where it comes from.
    pub source: String,
    /// `***`.
    pub value: String,
}

/// A refresh, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedRefresh {
    /// Which credential.
    pub credential_key: String,
    /// How.
    pub strategy: String,
    /// With what: name, and the value where that may be seen.
    pub materials: Vec<Variable>,
}

impl From<&Provider> for PlannedProvider {
    fn from(provider: &Provider) -> Self {
        let credentials = provider.credentials.iter().map(|credential| PlannedCredential {
            env: credential.env.clone(),
            export: credential.export,
            source: briefly(&credential.source),
            value: MASK.to_owned(),
        });
        let refresh = provider.refresh.as_ref().map(|refresh| PlannedRefresh {
            credential_key: refresh.credential_key.clone(),
            strategy: refresh.strategy.clone(),
            materials: refresh
                .materials
                .iter()
                .map(|material| Variable {
                    name: material.name.clone(),
                    value: match &material.source {
                        Source::Value { value } if !material.hidden() => value.clone(),
                        _ => MASK.to_owned(),
                    },
                })
                .collect(),
        });
        Self {
            id: provider.id.clone(),
            name: provider.name.clone(),
            profile: provider.profile.clone(),
            mode: provider.mode,
            credentials: credentials.collect(),
            refresh,
        }
    }
}

/// A source without anything that could be a secret: of a command the program alone, its arguments may hold one. The
/// question to the user shows the whole command.
fn briefly(source: &Source) -> String {
    match source {
        Source::HostCommand { command } => {
            let program = command.split_whitespace().next().unwrap_or_default();
            let shown = if program.contains('=') { "sh" } else { program };
            format!("host command ({shown} …)")
        }
        other => other.shown(),
    }
}

impl LaunchPlan {
    /// The plan as one JSON object.
    pub fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl fmt::Display for LaunchPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes_no = |yes| if yes { "yes" } else { "no" };
        let mut rows: Vec<(&str, String)> = vec![
            ("agent", self.agent.clone()),
            ("manifest", self.manifest.display().to_string()),
            ("digest", self.digest.clone()),
            ("trust", self.trust.clone()),
            (
                "runs on",
                match &self.target {
                    Target::Local => "this machine".to_owned(),
                    Target::Gateway(name) => format!("the gateway {name}"),
                },
            ),
            ("sandbox", self.sandbox.clone()),
        ];
        if let Some(image) = &self.image {
            let from = match &image.from {
                ImageSource::Dockerfile(path) => path.display().to_string(),
                ImageSource::Reference(reference) => reference.clone(),
            };
            let user = image.user.as_deref().unwrap_or("the base image's user");
            rows.push(("image", format!("{} from {from}, as {user}", image.tag)));
        }
        rows.push(("harness", format!("{} {}", self.harness, self.harness_settings)));
        rows.push(("mode", format!("{}, every {} s", self.run_mode.as_str(), self.poll_interval_seconds)));
        rows.push(("attached", yes_no(self.attach).to_owned()));
        rows.push(("kept", yes_no(self.keep).to_owned()));
        if self.reset_refresh {
            rows.push(("refresh", "the gateway's state is replaced".to_owned()));
        }
        for variable in &self.env {
            rows.push(("variable", format!("{}={}", variable.name, variable.value)));
        }
        for file in &self.payload {
            let kind = if file.program { ", a program" } else { "" };
            rows.push(("payload", format!("{} ({} bytes{kind}; {})", file.path.display(), file.bytes, file.origin)));
        }
        rows.extend(self.policy.iter().map(|policy| ("policy", policy.display().to_string())));
        for setting in &self.settings {
            rows.push(("setting", format!("{} = {}", setting.key, setting.value)));
        }
        for profile in &self.profiles {
            rows.push(("profile", format!("{} ({})", profile.id, profile.file.display())));
            rows.extend(profile.hosts.iter().map(|host| ("host", host.clone())));
        }
        for provider in &self.providers {
            rows.push(("provider", format!("{}: {} of {}", provider.id, provider.name, provider.profile)));
            for credential in &provider.credentials {
                rows.push((
                    "credential",
                    format!("{}={} from {}", credential.env, credential.value, credential.source),
                ));
            }
            if let Some(refresh) = &provider.refresh {
                let mut text = format!("{} by {}", refresh.credential_key, refresh.strategy);
                for material in &refresh.materials {
                    write!(text, ", {}={}", material.name, material.value)?;
                }
                rows.push(("refreshed", text));
            }
        }
        for bind in &self.harness_files {
            rows.push(("program", format!("{} at {}", bind.source.display(), bind.destination.display())));
        }
        for bind in &self.binds {
            let to = bind.destination.as_deref().unwrap_or(&bind.source);
            rows.push(("folder", format!("{} at {to}{}", bind.source, if bind.writable { ", writable" } else { "" })));
        }
        rows.extend(self.warnings.iter().map(|warning| ("warning", warning.clone())));
        for (key, value) in rows {
            writeln!(f, "{key:<11} {}", plain(&value))?;
        }
        Ok(())
    }
}
