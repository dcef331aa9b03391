//! Provider instances on the gateway: created, or their credentials replaced.

use super::OpenShell;
use super::call::Call;
use crate::agent::{CredentialMode, Provider};
use crate::credentials::ProviderSecrets;
use crate::driver::Session;
use crate::error::LaunchError;
use crate::profiles::{Profile, managed};
use crate::secret::Secret;

/// Makes the gateway's provider have these credentials.
pub(super) fn bring_in(
    driver: &OpenShell,
    gateway: &str,
    provider: &Provider,
    secrets: &ProviderSecrets,
    profiles: &[Profile],
    session: &mut Session<'_>,
) -> Result<(), LaunchError> {
    let name = &provider.name;
    let exported: Vec<&(String, Secret)> = provider
        .credentials
        .iter()
        .zip(&secrets.credentials)
        .filter(|(credential, _)| credential.export)
        .map(|(_, secret)| secret)
        .collect();
    let look = driver.call(gateway, &["provider", "get", name]);
    let found = look.run(session)?;
    if found.status != 0 && !found.misses("provider") {
        return Err(session.failed(&look.shown(), found.message(session.masker)));
    }
    if found.status != 0 {
        let words = ["provider", "create", "--name", name, "--type", &provider.profile];
        let mut create = driver.call(gateway, &words);
        give(&mut create, provider.mode, &exported);
        create.ok(session)?;
        session.done(format!("the provider {name} is created"));
        return Ok(());
    }
    let managed = managed(provider, profiles);
    let own: Vec<_> = exported.into_iter().filter(|(env, _)| !managed.contains(env)).collect();
    let finds_itself = managed.is_empty() && provider.mode == CredentialMode::FromExisting;
    if own.is_empty() && !finds_itself {
        return Ok(()); // all that it has is the gateway's to refresh
    }
    // what finds credentials by itself would find the managed ones too, and the gateway refuses those
    let mode = if managed.is_empty() { provider.mode } else { CredentialMode::Explicit };
    let mut update = driver.call(gateway, &["provider", "update", name]);
    give(&mut update, mode, &own);
    update.ok(session)?;
    session.done(format!("the credentials of the provider {name} are replaced"));
    Ok(())
}

/// Hands credentials over: their names on the command line, their values in the environment.
fn give(call: &mut Call<'_>, mode: CredentialMode, credentials: &[&(String, Secret)]) {
    match mode {
        CredentialMode::FromExisting => call.words.push("--from-existing".to_owned()),
        CredentialMode::Explicit => {
            for (env, _) in credentials {
                call.words.extend(["--credential".to_owned(), env.clone()]);
            }
        }
    }
    call.env.extend(credentials.iter().map(|(env, secret)| (env.clone(), secret.clone())));
}
