//! Profiles on the gateway: imported, or brought up to date where they are there. Never silently kept.

use std::path::{Path, PathBuf};

use bastion_host::files::{PRIVATE_FILE, create_private_dir, write_new};

use super::OpenShell;
use super::probe::Abilities;
use crate::driver::{Launch, Session};
use crate::error::LaunchError;
use crate::profiles::Profile;

/// Writes each profile, as it was hashed, where the program can read it.
pub(super) fn lay_out(launch: &Launch<'_, '_>) -> Result<Vec<PathBuf>, LaunchError> {
    let dir = launch.temp.path().join("profiles");
    create_private_dir(&dir).map_err(LaunchError::file(&dir))?;
    let mut files = Vec::new();
    for (i, profile) in launch.profiles.iter().enumerate() {
        let file = dir.join(format!("{i}-import.yaml"));
        write_new(&file, &profile.bytes, PRIVATE_FILE).map_err(LaunchError::file(&file))?;
        files.push(file);
    }
    Ok(files)
}

/// Makes the gateway's profile this one.
pub(super) fn bring_in(
    driver: &OpenShell,
    gateway: &str,
    abilities: Abilities,
    profile: &Profile,
    file: &Path,
    session: &mut Session<'_>,
) -> Result<(), LaunchError> {
    let call = |words: &[&str]| driver.call(gateway, &[abilities.profile(), words].concat());
    let id = &profile.id;
    let import = call(&["import", "--file", &file.display().to_string()]);
    let answer = import.run(session)?;
    if answer.status == 0 {
        session.done(format!("the profile {id} is imported"));
        return Ok(());
    }
    if !answer.says("already exists") {
        return Err(session.failed(&import.shown(), answer.message(session.masker)));
    }
    let export = call(&["export", "--output", "json", id]);
    let active = export.ok(session)?;
    let active: serde_json::Value = serde_json::from_slice(&active.stdout).unwrap_or_default();
    let version = active["resource_version"].as_u64().filter(|version| *version > 0).ok_or_else(|| {
        session.failed(&export.shown(), "the answer has no `resource_version`, without which it can't be updated")
    })?;
    let mut next = profile.json.clone();
    next["resource_version"] = version.into();
    // JSON is YAML, and has one way to be read
    let file = file.with_file_name(format!("{}-update.yaml", file.file_stem().unwrap_or_default().to_string_lossy()));
    let update = call(&["update", id, "--file", &file.display().to_string()]);
    write_new(&file, format!("{next:#}\n").as_bytes(), PRIVATE_FILE)
        .map_err(|error| session.failed(&update.shown(), format!("its file can't be written: {error}")))?;
    update.ok(session)?;
    session.done(format!("the profile {id} is updated"));
    Ok(())
}
