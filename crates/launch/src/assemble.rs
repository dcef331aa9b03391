//! What goes into the payload? The runtime, a handed-over harness, the agent's files, the prompt (launch.md §3, 5 to 8).

use std::path::{Path, PathBuf};

use bastion_host::files::read_capped;

use crate::contents::Contents;
use crate::error::LaunchError;
use crate::local::harness;
use crate::locate::Located;
use crate::options::{LaunchOptions, Machine, Supervisor};
use crate::payload::Payload;
use crate::settings::{Resolved, Target};
use crate::{paths, prompt};

/// The two scripts that start the supervisor beside them, as its tests run them.
const ENTRYPOINT: &[u8] = include_bytes!("../../supervisor/runtime/entrypoint.sh");
const SUBAGENT: &[u8] = include_bytes!("../../supervisor/runtime/subagent.sh");
/// Harnesses whose adapters the supervisor has.
const BUILT_IN: &[&str] = &["codex", "claude", "opencode", "command"];
/// The supervisor may be this large, in bytes.
const MAX_SUPERVISOR: u64 = 64 << 20;

/// The payload of a launch, in memory.
///
/// # Errors
/// Where a part can't be read, or has no place of its own.
pub(crate) fn payload(
    options: &LaunchOptions,
    machine: &Machine,
    located: &Located,
    contents: &Contents,
    resolved: &Resolved,
    harness: &harness::Found,
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
    for (name, script) in [("entrypoint.sh", ENTRYPOINT), ("subagent.sh", SUBAGENT)] {
        payload.put(&runtime(name), script.to_vec(), true, "the runtime")?;
    }
    harness_files(options, machine, resolved, harness, &mut payload)?;
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
    resolved: &Resolved,
    found: &harness::Found,
    payload: &mut Payload,
) -> Result<(), LaunchError> {
    let harness = resolved.harness.as_str();
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
    if resolved.target == Target::Local {
        // a program of this machine is bound and not copied; what starts it is a part of the payload
        if let Some(script) = &found.script {
            payload.put(&place.join(harness), script.clone().into_bytes(), true, "the harness of this machine")?;
        }
    } else if let Some(program) = &options.harness_bin {
        // the user's own path: a link, as package managers make them, means what it leads to
        let program = machine.cwd.join(program);
        let program = program.canonicalize().unwrap_or(program);
        payload.put_file(&place.join(harness), &program, true, "--harness-bin")?;
    }
    Ok(())
}
