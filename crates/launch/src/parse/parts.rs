//! The parts of `agent.yaml` that hold no credentials.

use bastion_trust::fields::{Fields, Read, list, number, string};
use bastion_trust::yaml::{Node, Value};

use super::{component, flag, once, path_of, plain, text};
use crate::agent::{Asset, Bind, Harness, Local, RunMode, Runtime, Sandbox, Setting};
use crate::prompt;

/// Keys of `sandbox` that older agents carry. They are read by nothing.
const OLDER: &[&str] = &["background_log_dir"];

pub(super) fn sandbox(node: &Node, warnings: &mut Vec<String>) -> Read<Sandbox> {
    let known: Vec<&str> = ["name_prefix", "gateway", "from", "local"].iter().chain(OLDER).copied().collect();
    let fields = Fields::of(node, "`sandbox`", &known)?;
    for key in OLDER {
        if let Some(node) = fields.get(key) {
            let place = node.place;
            warnings.push(format!("line {}: `sandbox.{key}` is of older agents and does nothing", place.line));
        }
    }
    Ok(Sandbox {
        name_prefix: text(&fields, "name_prefix")?,
        gateway: text(&fields, "gateway")?,
        from: fields.get("from").map(|node| path_of(node, "from")).transpose()?,
        local: fields.get("local").map_or_else(|| Ok(Local::default()), local)?,
    })
}

fn local(node: &Node) -> Read<Local> {
    let known = ["memory", "pids", "cpu", "tmp_size", "binds", "hard_requirement"];
    let fields = Fields::of(node, "`sandbox.local`", &known)?;
    let amount = |key: &str| fields.get(key).map(|node| plain(node, key)).transpose();
    let mut binds = Vec::new();
    if let Some(node) = fields.get("binds") {
        for node in list(node, "binds")? {
            binds.push(bind(node)?);
        }
    }
    Ok(Local {
        memory: amount("memory")?,
        pids: fields.get("pids").map(|node| number(node, "pids", 1)).transpose()?,
        cpu: amount("cpu")?,
        tmp_size: amount("tmp_size")?,
        binds,
        hard_requirement: flag(&fields, "hard_requirement", false)?,
    })
}

fn bind(node: &Node) -> Read<Bind> {
    let fields = Fields::of(node, "a bind", &["source", "destination", "mode"])?;
    let writable = match fields.get("mode") {
        None => false,
        Some(node) => match string(node, "mode")? {
            "ro" => false,
            "rw" => true,
            _ => return Err(node.error("`mode` must be ro or rw")),
        },
    };
    Ok(Bind {
        source: path_of(fields.required("source")?, "source")?,
        destination: fields.get("destination").map(|node| path_of(node, "destination")).transpose()?,
        writable,
    })
}

pub(super) fn harness(node: &Node) -> Read<Harness> {
    let fields = Fields::of(node, "`harness`", &["default", "supported"])?;
    let mut supported = Vec::new();
    let map = fields.required("supported")?;
    let Value::Map(entries) = &map.value else {
        return Err(map.error(format!("`supported` must be a mapping, this is {}", map.kind())));
    };
    for (key, node) in entries {
        if !super::is_component(&key.name) {
            return Err(key.place.error("a harness's name must be letters, digits, `.`, `_`, `-`"));
        }
        let settings = match &node.value {
            Value::Map(_) => node.to_json(),
            Value::Null => serde_json::json!({}),
            _ => return Err(node.error(format!("a harness's settings must be a mapping, this is {}", node.kind()))),
        };
        if key.name == "command" {
            argv(node)?;
        }
        supported.push((key.name.clone(), settings));
    }
    if supported.is_empty() {
        return Err(map.error("`supported` names no harness"));
    }
    let default = fields.get("default").map(|node| component(node, "default")).transpose()?;
    if let (Some(node), Some(name)) = (fields.get("default"), &default)
        && !supported.iter().any(|(other, _)| other == name)
    {
        return Err(node.error(format!("the default harness `{name}` is not in `supported`")));
    }
    Ok(Harness { default, supported })
}

/// The `command` harness is nothing without its command, so its form is judged here.
fn argv(node: &Node) -> Read<()> {
    let argv = node.field("argv").ok_or_else(|| node.error("the `command` harness needs `argv`, its command"))?;
    let words = list(argv, "argv")?;
    if words.is_empty() {
        return Err(argv.error("`argv` is empty"));
    }
    words.iter().try_for_each(|word| string(word, "argv").map(|_| ()))
}

pub(super) fn runtime(node: &Node) -> Read<Runtime> {
    const KEYS: &[&str] = &[
        "mode",
        "poll_interval_seconds",
        "max_transient_failures",
        "cycle_timeout_seconds",
        "silence_timeout_seconds",
        "max_cycles",
    ];
    let fields = Fields::of(node, "`runtime`", KEYS)?;
    let default = Runtime::default();
    let amount = |key: &str, least, default| fields.get(key).map_or(Ok(default), |node| number(node, key, least));
    let mode = match fields.get("mode") {
        None => default.mode,
        Some(node) => {
            RunMode::named(string(node, "mode")?).ok_or_else(|| node.error("`mode` must be once or watch"))?
        }
    };
    Ok(Runtime {
        mode,
        poll_interval_seconds: amount("poll_interval_seconds", 1, default.poll_interval_seconds)?,
        max_transient_failures: amount("max_transient_failures", 0, default.max_transient_failures)?,
        cycle_timeout_seconds: amount("cycle_timeout_seconds", 0, default.cycle_timeout_seconds)?,
        silence_timeout_seconds: amount("silence_timeout_seconds", 0, default.silence_timeout_seconds)?,
        max_cycles: amount("max_cycles", 0, default.max_cycles)?,
    })
}

pub(super) fn paths(node: Option<&Node>, what: &str) -> Read<Vec<String>> {
    let Some(node) = node else { return Ok(Vec::new()) };
    list(node, what)?.iter().map(|node| path_of(node, what)).collect()
}

pub(super) fn settings(node: Option<&Node>) -> Read<Vec<Setting>> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let mut settings: Vec<Setting> = Vec::new();
    for node in list(node, "settings")? {
        let fields = Fields::of(node, "a setting", &["key", "value"])?;
        let key_node = fields.required("key")?;
        let key = component(key_node, "key")?;
        once(key_node, "the setting", &key, &settings, |other| &other.key)?;
        settings.push(Setting { key, value: plain(fields.required("value")?, "value")? });
    }
    Ok(settings)
}

/// `skills`, `subagents`, `resources`. A subagent has a place of its own: `subagents/ID.md`.
pub(super) fn assets(node: Option<&Node>, what: &'static str, own_folder: Option<&str>) -> Read<Vec<Asset>> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let known: &[&str] = match own_folder {
        Some(_) => &["id", "source", "destination", "expose_as"],
        None => &["id", "source", "destination"],
    };
    let mut assets: Vec<Asset> = Vec::new();
    for node in list(node, what)? {
        let fields = Fields::of(node, "an entry", known)?;
        let id_node = fields.required("id")?;
        let id = component(id_node, "id")?;
        once(id_node, what, &id, &assets, |other| &other.id)?;
        let destination = match (fields.get("destination"), own_folder) {
            (Some(node), _) => path_of(node, "destination")?,
            (None, Some(folder)) => format!("{folder}{id}.md"),
            (None, None) => path_of(fields.required("destination")?, "destination")?,
        };
        let expose_as = match fields.get("expose_as") {
            None => None,
            Some(node) => {
                let name = string(node, "expose_as")?;
                if !prompt::is_exposable(name) {
                    return Err(node.error("`expose_as` must be A to Z, 0 to 9 and `_`, starting with a letter"));
                }
                if prompt::BUILT_IN.contains(&name) {
                    return Err(node.error(format!("`{name}` is a variable that every prompt has")));
                }
                if assets.iter().any(|other| other.expose_as.as_deref() == Some(name)) {
                    return Err(node.error(format!("`{name}` is exposed twice")));
                }
                Some(name.to_owned())
            }
        };
        let source = path_of(fields.required("source")?, "source")?;
        assets.push(Asset { id, source, destination, expose_as });
    }
    Ok(assets)
}
