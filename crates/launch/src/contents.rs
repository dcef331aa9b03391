//! What is this version of an agent? One digest over its manifest and every file that it brings in.
//!
//! The same bytes are what an owner signs (launch.md §7). They don't depend on options: every provider's profile and
//! the manifest's own image context count, whichever harness or image a launch chooses.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bastion_trust::Claim;

use crate::agent::Agent;
use crate::copy;
use crate::error::LaunchError;
use crate::image::Context;
use crate::locate::{Located, MANIFEST};
use crate::paths::read_source;
use crate::profiles::{self, Profile};
use crate::settings;

/// The files of an agent, each read once.
pub(crate) struct Contents {
    pub(crate) prompt: String,
    /// By what it is and its id: `skill triage`.
    pub(crate) assets: Vec<(String, Vec<u8>)>,
    pub(crate) policy: Option<Vec<u8>>,
    pub(crate) profiles: Vec<Profile>,
    /// Of the manifest's own image source, or why there is none.
    pub(crate) context: Result<Context, LaunchError>,
    pub(crate) warnings: Vec<String>,
    payload: Vec<u8>,
}

impl Contents {
    /// Reads and hashes everything.
    pub(crate) fn read(located: &Located) -> Result<Self, LaunchError> {
        let agent = &located.parsed.agent;
        let bases = &located.bases;
        let mut digests = BTreeMap::new();
        let mut note = |name: String, bytes: &[u8]| digests.insert(name, copy::sha256(bytes));
        let prompt = read_source("the prompt", &bases.resolve(&agent.prompt_template)?)?;
        note("prompt".to_owned(), &prompt);
        let prompt = String::from_utf8(prompt)
            .map_err(|_| LaunchError::refused(format!("the prompt {}", agent.prompt_template), "is not UTF-8"))?;
        let mut assets = Vec::new();
        for (kind, asset) in agent.assets() {
            let name = format!("{kind} {}", asset.id);
            let bytes = read_source(&format!("the {name}"), &bases.resolve(&asset.source)?)?;
            note(name.clone(), &bytes);
            assets.push((name, bytes));
        }
        let policy = match &agent.policy {
            None => None,
            Some(path) => Some(read_source("the policy", &bases.resolve(path)?)?),
        };
        if let Some(policy) = &policy {
            note("policy".to_owned(), policy);
        }
        let mut warnings = Vec::new();
        let wanted: Vec<&str> = agent.providers.iter().map(|provider| provider.profile.as_str()).collect();
        let profiles = profiles::find(&wanted, &folders(located)?, &mut warnings)?;
        for profile in &profiles {
            note(format!("profile {}", profile.id), &profile.bytes);
        }
        let own = agent.sandbox.from.as_deref().unwrap_or("agent://.");
        let context =
            settings::image_at(own, &bases.agent, bases).and_then(|from| Context::read(&from, policy.is_some()));
        if let Ok(context) = &context {
            // the manifest itself is there as a value: in a context it would hold the signature
            let own_manifest =
                context.place_of(&bases.agent.join(MANIFEST)).map(|place| format!("image/{}", place.display()));
            digests.extend(context.digests().filter(|(name, _)| Some(name) != own_manifest.as_ref()));
        }
        let value = serde_json::json!({ "v": 1, "agent": located.parsed.json, "files": digests });
        let payload = serde_json_canonicalizer::to_vec(&value)
            .map_err(|error| LaunchError::refused("the agent", format!("has no canonical form: {error}")))?;
        Ok(Self { prompt, assets, policy, profiles, context, warnings, payload })
    }

    /// Lower-case hex SHA-256 of it all.
    pub(crate) fn digest(&self) -> String {
        copy::sha256(&self.payload)
    }

    /// What a signature is over.
    pub(crate) fn claim(&self, agent: &Agent) -> Claim {
        Claim {
            id: agent.id.to_string(),
            owner_host: agent.owner_host.clone().unwrap_or_default(),
            serial: agent.serial,
            signature: agent.signature.clone(),
            payload: self.payload.clone(),
        }
    }

    /// The canonical payload with another parsed manifest in the place of this one: what signing needs, which raises
    /// the serial.
    pub(crate) fn payload_with(&self, json: &serde_json::Value) -> Vec<u8> {
        let mut value: serde_json::Value = serde_json::from_slice(&self.payload).unwrap_or_default();
        value["agent"] = json.clone();
        serde_json_canonicalizer::to_vec(&value).unwrap_or_default()
    }
}

/// The folders of profiles, in order.
pub(crate) fn folders(located: &Located) -> Result<Vec<PathBuf>, LaunchError> {
    located.parsed.agent.profile_paths.iter().map(|path| located.bases.resolve(path)).collect()
}
