//! Building the image, with the engine that the gateway uses.

use std::path::Path;

use bastion_host::files::{PRIVATE_FILE, write_new};

use super::OpenShell;
use super::call::Call;
use crate::copy;
use crate::driver::{Launch, Notice};
use crate::error::LaunchError;
use crate::image::{PAYLOAD, POLICY, is_root};
use crate::paths::which;

/// Writes the build context.
pub(super) fn lay_out(launch: &Launch<'_, '_>, to: &Path) -> Result<(), LaunchError> {
    let Some(context) = launch.context else {
        return Err(LaunchError::refused("this launch", "has no image to build"));
    };
    context.write(to)?;
    launch.payload.write(&to.join(PAYLOAD))?;
    if let Some(policy) = launch.policy {
        let file = to.join(POLICY);
        write_new(&file, policy, PRIVATE_FILE).map_err(LaunchError::file(&file))?;
        copy::set_mode(&file, 0o444)?;
    }
    Ok(())
}

/// Asks the gateway for its engine and builds; gives the image's tag.
pub(super) fn build(
    driver: &OpenShell,
    gateway: &str,
    launch: &mut Launch<'_, '_>,
    context: &Path,
) -> Result<String, LaunchError> {
    let asked = driver.call(gateway, &["gateway", "info", "--output", "json"]);
    let answer = asked.ok(launch.session)?;
    let engine = engine(&answer.stdout).map_err(|what| launch.session.failed(&asked.shown(), what))?;
    let program = which(engine, &driver.path).ok_or_else(|| {
        let what = format!("the gateway runs its sandboxes with {engine}, and {engine} is not on this machine's PATH");
        launch.session.failed(&asked.shown(), what)
    })?;
    let (Some(image), Some(source)) = (&launch.plan.image, launch.context) else {
        return Err(LaunchError::refused("this launch", "has no image to build"));
    };
    let mut build = Call::new(&program, driver.limits.build);
    let dockerfile = context.join(&source.dockerfile);
    let words = ["build", "--tag", &image.tag, "--file"].map(str::to_owned);
    build.words.extend(words);
    build.words.extend([dockerfile.display().to_string(), context.display().to_string()]);
    build.ok(launch.session)?;
    launch.session.done(format!("the image {} is built with {engine}", image.tag));
    if source.user.is_unsure() {
        let mut look = Call::new(&program, driver.limits.call);
        look.words.extend(["image", "inspect", "--format", "{{json .Config.User}}", &image.tag].map(str::to_owned));
        let answer = look.ok(launch.session)?;
        let user = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        if user.is_empty() {
            let text = format!("{engine} does not say who the image runs as; as root its sandbox would fail");
            launch.session.tell(Notice::Warning(&text));
        }
        if user == "\"\"" || user == "null" || is_root(user.trim_matches('"')) {
            let what = "the image runs as root, which a sandbox does not; give the Dockerfile a last USER that is not";
            return Err(launch.session.failed(&look.shown(), what));
        }
    }
    Ok(image.tag.clone())
}

/// The one engine that the gateway reports.
fn engine(info: &[u8]) -> Result<&'static str, String> {
    let value: serde_json::Value = serde_json::from_slice(info).map_err(|_| "the answer is no JSON".to_owned())?;
    let drivers = value["compute_drivers"].as_array().ok_or("the answer has no `compute_drivers`")?;
    let [only] = drivers.as_slice() else {
        return Err(format!("the gateway reports {} compute drivers; exactly one is needed", drivers.len()));
    };
    let name = only["name"].as_str().unwrap_or_default();
    ["docker", "podman"].into_iter().find(|known| name.eq_ignore_ascii_case(known)).ok_or_else(|| {
        format!(
            "the gateway's compute driver is `{}`; images are built for docker and podman",
            crate::text::plain(name)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_known_engine_is_taken() {
        assert_eq!(engine(br#"{"compute_drivers":[{"name":"podman","x":1}]}"#), Ok("podman"));
        assert_eq!(engine(br#"{"compute_drivers":[{"name":"Docker"}]}"#), Ok("docker"));
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"compute_drivers":[]}"#,
            r#"{"compute_drivers":[{"name":"k8s"}]}"#,
            r#"{"compute_drivers":[{"name":"docker"},{"name":"podman"}]}"#,
            r#"{"compute_drivers":["docker"]}"#,
        ] {
            assert!(engine(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
