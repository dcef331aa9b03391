//! What did the launcher bring into the sandbox? The read-only payload folder.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

/// The payload's folder.
#[derive(Debug, Clone)]
pub struct Payload {
    dir: PathBuf,
}

impl Payload {
    /// The payload at `dir`.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The rendered prompt.
    pub fn prompt(&self) -> PathBuf {
        self.dir.join("agent-prompt.md")
    }

    /// Whether the prompt is there to be read.
    pub fn check_prompt(&self) -> io::Result<()> {
        let prompt = File::open(self.prompt())?.metadata()?;
        if prompt.is_file() { Ok(()) } else { Err(io::ErrorKind::IsADirectory.into()) }
    }

    /// What the launcher resolved, minus every secret: an object, empty where there is no `agent.json`. `Err` where
    /// there is one that can't be read.
    pub fn agent(&self) -> io::Result<Map<String, Value>> {
        match std::fs::read(self.dir.join("agent.json")) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Map::new()),
            Err(error) => Err(error),
        }
    }

    /// What the launcher resolved for a harness: `harness.supported.<name>` of `agent.json`, empty where there is
    /// none.
    pub fn harness_settings(&self, name: &str) -> Map<String, Value> {
        let agent = self.agent().unwrap_or_default();
        match agent.get("harness").and_then(|harness| harness.get("supported")?.get(name)) {
            Some(Value::Object(settings)) => settings.clone(),
            _ => Map::new(),
        }
    }

    /// A file of an adapter that came with the payload, where it is there.
    pub fn harness_file(&self, harness: &str, file: &str) -> Option<PathBuf> {
        let path = self.dir.join("runtime/harnesses").join(component(harness)?).join(file);
        path.is_file().then_some(path)
    }

    /// The program of a built-in adapter: the one that was handed over, else the name, for `PATH` to find.
    pub fn program(&self, harness: &str) -> OsString {
        self.harness_file(harness, harness).map_or_else(|| harness.into(), PathBuf::into_os_string)
    }

    /// The definition of a subagent; `Err` lists those there are.
    pub fn subagent(&self, id: &str) -> Result<PathBuf, Vec<String>> {
        let dir = self.dir.join("subagents");
        let path = component(id).map(|id| dir.join(format!("{id}.md")));
        if let Some(path) = path.filter(|path| path.is_file()) {
            return Ok(path);
        }
        let names = std::fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut known: Vec<String> =
            names.filter_map(|name| Some(name.to_str()?.strip_suffix(".md")?.to_owned())).collect();
        known.sort();
        Err(known)
    }
}

/// `name`, where it is exactly one component of a path.
fn component(name: &str) -> Option<&str> {
    let mut parts = Path::new(name).components();
    let one = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
    (one && !name.contains('\0')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_component_names_a_file() {
        for bad in ["", ".", "..", "a/b", "/a", "a/", "./a", "a\0"] {
            assert_eq!(component(bad), None, "{bad:?}");
        }
        assert_eq!(component("a.b-c"), Some("a.b-c"));
    }
}
