//! Which provider instances does this launch have? Those of its harness, changed by `--provider`.

use crate::agent::{Agent, Provider};
use crate::error::LaunchError;
use crate::options::LaunchOptions;
use crate::parse::is_component;

/// The providers of this launch.
pub(super) fn providers(options: &LaunchOptions, agent: &Agent, harness: &str) -> Result<Vec<Provider>, LaunchError> {
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
