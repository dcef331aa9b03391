//! Credentials that the gateway refreshes by itself. Its material is kept unless the token server refuses it.

use super::OpenShell;
use super::call::Call;
use crate::agent::{Provider, Refresh};
use crate::credentials::ProviderSecrets;
use crate::driver::{Notice, Session};
use crate::error::LaunchError;

/// Configures the refresh where the gateway has none, and rotates.
pub(super) fn run(
    driver: &OpenShell,
    gateway: &str,
    provider: &Provider,
    secrets: &ProviderSecrets,
    reset: bool,
    session: &mut Session<'_>,
) -> Result<(), LaunchError> {
    let Some(refresh) = &provider.refresh else { return Ok(()) };
    let about = format!("{} of the provider {}", refresh.credential_key, provider.name);
    let call = |verb: &str| {
        let words = ["provider", "refresh", verb, &provider.name, "--credential-key", &refresh.credential_key];
        driver.call(gateway, &words)
    };
    let mut configure = call("configure");
    hand_over(&mut configure, refresh, secrets);
    if reset {
        call("delete").ok(session)?;
        session.done(format!("the refresh state of {about} is deleted"));
    }
    let fresh = call("status").ok(session)?.says("no refresh configuration found");
    if fresh {
        configure.ok(session)?;
        session.done(format!("the refresh of {about} is configured"));
    }
    let rotate = call("rotate");
    let answer = rotate.run(session)?; // a time-out of ours fails the launch here, and nothing is replaced
    if answer.status == 0 {
        session.done(format!("{about} is rotated"));
        return Ok(());
    }
    let said = answer.message(session.masker);
    if fresh || unanswered(&answer.text()) {
        return Err(session.failed(&rotate.shown(), said));
    }
    session.tell(Notice::Warning(&format!(
        "the gateway's material for {about} was refused ({said}); it is replaced by this machine's"
    )));
    configure.ok(session)?;
    session.done(format!("the refresh material of {about} is replaced"));
    rotate.ok(session)?;
    session.done(format!("{about} is rotated"));
    Ok(())
}

/// The strategy and its material: what may be seen on the command line, the rest in the environment.
fn hand_over(call: &mut Call<'_>, refresh: &Refresh, secrets: &ProviderSecrets) {
    call.words.extend(["--strategy".to_owned(), refresh.strategy.clone()]);
    for (i, (material, (name, value))) in refresh.materials.iter().zip(&secrets.materials).enumerate() {
        if material.hidden() {
            let variable = format!("BASTION_REFRESH_MATERIAL_{i}");
            call.words.extend(["--secret-material-env".to_owned(), format!("{name}={variable}")]);
            call.env.push((variable, value.clone()));
        } else {
            call.words.extend(["--material".to_owned(), format!("{name}={}", value.reveal())]);
        }
    }
}

/// Whether the token server may not have judged the material at all: a time-out, a network error, or an answer that
/// says the same of a server behind it. A single-use token may then have been used, and must not be replaced.
fn unanswered(text: &str) -> bool {
    const SIGNS: &[&str] = &[
        "request failed",
        "error sending request",
        "timed out",
        "timeout",
        "time-out",
        "deadline",
        "connection",
        "connect error",
        "dns",
        "network",
        "unreachable",
        "unavailable",
        "http 408",
        "http 429",
        "http 502",
        "http 503",
        "http 504",
    ];
    let text = text.to_lowercase();
    SIGNS.iter().any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_judged_failure_replaces_material() {
        for text in [
            "request failed: error sending request for url (https://x/)",
            "operation timed out",
            "transport error: Connection refused",
            "token endpoint returned HTTP 503 Service Unavailable",
        ] {
            assert!(unanswered(text), "{text}");
        }
        for text in ["token endpoint returned HTTP 400 Bad Request", "provider refresh state not found"] {
            assert!(!unanswered(text), "{text}");
        }
    }
}
