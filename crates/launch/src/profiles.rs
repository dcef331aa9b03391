//! Which profile file is meant? The first folder that has the wanted `id` wins, and what it hides is warned of.

use std::path::{Path, PathBuf};

use bastion_trust::manifest::tree;

use crate::agent::Provider;
use crate::error::LaunchError;
use crate::paths::read_source;

/// A provider profile as it was read once.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its id.
    pub id: String,
    /// Its file.
    pub file: PathBuf,
    /// The file's bytes: what is hashed is what is imported.
    pub bytes: Vec<u8>,
    /// The same as a value.
    pub json: serde_json::Value,
}

impl Profile {
    /// The hosts that it opens, each once, with its ports.
    pub fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = Vec::new();
        for endpoint in self.json["endpoints"].as_array().into_iter().flatten() {
            let mut found = hosts_in(endpoint);
            if found.is_empty() {
                found.push(endpoint.to_string()); // of a form that is not known here: shown as it is
            }
            found.into_iter().for_each(|host| {
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            });
        }
        hosts
    }
}

/// The variables of the credential that refresh manages: its key, which may be the profile's own name for it.
pub(crate) fn managed(provider: &Provider, profiles: &[Profile]) -> Vec<String> {
    let Some(refresh) = &provider.refresh else { return Vec::new() };
    let key = &refresh.credential_key;
    let profile = profiles.iter().find(|profile| profile.id == provider.profile);
    let named = profile.and_then(|profile| profile.json["credentials"].as_array()).into_iter().flatten();
    let variables = named
        .filter(|credential| credential["name"] == key.as_str())
        .flat_map(|credential| credential["env_vars"].as_array().into_iter().flatten())
        .filter_map(|variable| variable.as_str().map(str::to_owned));
    variables.chain([key.clone()]).collect()
}

/// Every host that a value of a policy or profile names, with its ports, at whatever depth.
pub(crate) fn hosts_in(value: &serde_json::Value) -> Vec<String> {
    use serde_json::Value;
    let mut found = Vec::new();
    match value {
        Value::Array(items) => found.extend(items.iter().flat_map(hosts_in)),
        Value::Object(fields) => {
            let ports = fields.get("ports").or_else(|| fields.get("port"));
            let shown = |host: &str| ports.map_or_else(|| host.to_owned(), |ports| format!("{host}:{ports}"));
            for (key, field) in fields {
                match (key.as_str(), field) {
                    ("host", Value::String(host)) => found.push(shown(host)),
                    ("hosts", Value::Array(hosts)) => found.extend(hosts.iter().filter_map(Value::as_str).map(shown)),
                    _ => found.extend(hosts_in(field)),
                }
            }
        }
        _ => {}
    }
    found
}

/// Finds each wanted profile, in the order wanted.
pub(crate) fn find(
    wanted: &[&str],
    folders: &[PathBuf],
    warnings: &mut Vec<String>,
) -> Result<Vec<Profile>, LaunchError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let scanned = folders.iter().map(|folder| scan(folder)).collect::<Result<Vec<_>, _>>()?;
    let mut found: Vec<Profile> = Vec::new();
    for id in wanted {
        if found.iter().any(|profile| profile.id == *id) {
            continue;
        }
        let mut holders = scanned.iter().flatten().filter(|profile| profile.id == *id);
        let Some(first) = holders.next() else {
            let places: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
            let why = match places.as_slice() {
                [] => "is wanted, and the agent has no `profile_paths`".to_owned(),
                _ => format!("is in none of {}", places.join(", ")),
            };
            return Err(LaunchError::refused(format!("the provider profile `{id}`"), why));
        };
        for other in holders {
            let (hidden, by) = (other.file.display(), first.file.display());
            warnings.push(format!("the profile `{id}` of {hidden} is shadowed by {by}"));
        }
        found.push(first.clone());
    }
    Ok(found)
}

/// Every profile of a folder, by file name.
fn scan(folder: &Path) -> Result<Vec<Profile>, LaunchError> {
    let unreadable = |error: std::io::Error| {
        LaunchError::refused(format!("the profile folder {}", folder.display()), format!("can't be read: {error}"))
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            files.push(path);
        }
    }
    files.sort();
    let mut profiles: Vec<Profile> = Vec::new();
    for file in files {
        let profile = read(&file)?;
        if let Some(other) = profiles.iter().find(|other| other.id == profile.id) {
            return Err(LaunchError::refused(
                format!("the profile `{}`", profile.id),
                format!("is in one folder twice: {} and {}", other.file.display(), file.display()),
            ));
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

fn read(file: &Path) -> Result<Profile, LaunchError> {
    let bytes = read_source("the provider profile", file)?;
    let malformed = |source| LaunchError::Malformed { path: file.to_owned(), source };
    let root = tree(&bytes).map_err(malformed)?;
    let id = root.field("id").ok_or_else(|| malformed(root.error("a provider profile has an `id`")))?;
    let id = id.text().ok_or_else(|| malformed(id.error("`id` must be a string")))?.to_owned();
    Ok(Profile { id, file: file.to_owned(), json: root.to_json(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(files: &[(&str, &str)]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let dir = tempfile::tempdir().unwrap();
        let folders = vec![dir.path().join("one"), dir.path().join("two")];
        folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        files.iter().for_each(|(name, text)| std::fs::write(dir.path().join(name), text).unwrap());
        (dir, folders)
    }

    #[test]
    fn the_first_folder_wins_and_the_other_is_warned_of() {
        let (_dir, folders) =
            folders(&[("two/a.yaml", "id: p\nv: 2\n"), ("one/z.yml", "id: p\nv: 1\n"), ("two/b.yaml", "id: q\n")]);
        let mut warnings = Vec::new();
        let found = find(&["q", "p", "p"], &folders, &mut warnings).unwrap();
        assert_eq!(found.iter().map(|p| p.id.as_str()).collect::<Vec<_>>(), ["q", "p"]);
        assert_eq!(found[1].json["v"], 1);
        assert!(warnings.len() == 1 && warnings[0].contains("two/a.yaml is shadowed by"), "{warnings:?}");
    }

    #[test]
    fn duplicates_bad_files_and_missing_ones_fail() {
        for (files, wanted, said) in [
            (vec![("one/a.yaml", "id: p"), ("one/b.yaml", "id: p")], "p", "twice"),
            (vec![("one/a.yaml", "id: [")], "p", "not YAML"),
            (vec![("one/a.yaml", "name: p")], "p", "has an `id`"),
            (vec![("one/a.yaml", "id: 7")], "p", "must be a string"),
            (vec![("one/a.yaml", "id: p")], "q", "is in none of"),
        ] {
            let (_dir, folders) = folders(&files);
            let error = find(&[wanted], &folders, &mut Vec::new()).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(find(&["p"], &["/nowhere".into()], &mut Vec::new()).is_err());
        assert!(find(&[], &["/nowhere".into()], &mut Vec::new()).unwrap().is_empty());
    }

    #[test]
    fn hosts_are_told_with_their_ports() {
        let (_dir, folders) =
            folders(&[("one/a.yaml", "id: p\nendpoints:\n  - {host: a.example, port: 443}\n  - {host: b.example}\n")]);
        let found = find(&["p"], &folders, &mut Vec::new()).unwrap();
        assert_eq!(found[0].hosts(), ["a.example:443", "b.example"]);
    }
}
