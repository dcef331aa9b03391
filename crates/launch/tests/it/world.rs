//! A machine to launch on: a home, a repository with a full agent, a state folder, and a fake `openshell` and `docker`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bastion_host::clock::{Clock, ManualClock};
use bastion_host::signals::Stop;
use bastion_launch::{
    Answer, LaunchError, LaunchOptions, Launched, Limits, Machine, Notice, OpenShell, Prepared, Supervisor, prepare,
};
use bastion_trust::{Gate, GateSettings};

pub(crate) const NOW: &str = "2026-01-02T03:04:05Z";
/// Every value that must be seen nowhere.
pub(crate) const PLANTED: &[&str] = &[
    "planted-from-command",
    "planted-literal",
    "planted-unused",
    "planted-access",
    "planted-account",
    "planted-refresh",
];
const AUTH: &str = r#"{"tokens":{"access_token":"planted-access","refresh_token":"planted-refresh"},"accounts":[{"id":"planted-account"}]}"#;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Generation {
    Old,
    New,
}

pub(crate) struct World {
    _dir: tempfile::TempDir,
    pub(crate) options: LaunchOptions,
    pub(crate) machine: Machine,
    pub(crate) clock: Arc<ManualClock>,
}

/// One call of the fake programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The words, the program first, `--gateway greenhouse` taken out.
    pub(crate) line: String,
    pub(crate) env: BTreeMap<String, String>,
}

/// What a launch said on its way.
#[derive(Debug, Default)]
pub(crate) struct Said(pub(crate) Vec<String>);

impl World {
    pub(crate) fn new() -> Self {
        Self::of(Generation::New)
    }

    pub(crate) fn of(generation: Generation) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
        copy_tree(&fixtures.join("gardener"), &root.join("repo/agents/gardener"));
        copy_tree(&fixtures.join("shared"), &root.join("repo/shared"));
        fs::create_dir_all(root.join("repo/.git")).unwrap();
        for folder in ["home/.codex", "config/agents", "state", "tmp", "fake"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("home/.codex/auth.json"), AUTH).unwrap();
        let fake = root.join("fake");
        for name in ["openshell", "docker", "podman"] {
            let program = fake.join(name);
            fs::copy(fixtures.join("fake.sh"), &program).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let (version, help) = match generation {
            Generation::New => (
                "openshell 0.1.3\n",
                "Commands:\n  gateway  Manage\n  profile  Manage\n  provider  Manage\n  sandbox  Manage\n",
            ),
            Generation::Old => {
                ("openshell 0.0.110\n", "Commands:\n  gateway  Manage\n  provider  Manage\n  sandbox  Manage\n")
            }
        };
        fs::write(fake.join("version"), version).unwrap();
        fs::write(fake.join("help"), help).unwrap();
        let clock = Arc::new(ManualClock::at(NOW.parse().unwrap()));
        let shared: Arc<dyn Clock> = clock.clone();
        let gate = GateSettings { ca_root: None, crl: None, state_dir: root.join("state") };
        let machine = Machine {
            env: BTreeMap::from([("PATH".to_owned(), fake.display().to_string())]),
            home: Some(root.join("home")),
            cwd: root.join("repo"),
            config_dir: root.join("config"),
            state_dir: root.join("state"),
            temp_dir: root.join("tmp"),
            supervisor: Supervisor::Bytes(b"the supervisor"),
            gate: Arc::new(Gate::new(gate, shared.clone())),
            clock: shared,
        };
        let options = LaunchOptions {
            agent: Some("gardener".into()),
            prompt: "Tend it; {{HARNESS}} stays.".into(),
            ..LaunchOptions::default()
        };
        Self { _dir: dir, options, machine, clock }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.machine.cwd.parent().unwrap().join(path)
    }

    pub(crate) fn agent(&self) -> PathBuf {
        self.path("repo/agents/gardener")
    }

    pub(crate) fn env(&mut self, name: &str, value: &str) -> &mut Self {
        self.machine.env.insert(name.into(), value.into());
        self
    }

    /// Replaces a part of the agent's manifest.
    pub(crate) fn edit(&self, from: &str, to: &str) -> &Self {
        let file = self.agent().join("agent.yaml");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(file, text.replacen(from, to, 1)).unwrap();
        self
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> &Self {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    /// Shell lines that speak before the fake's own answers; `$call` is the call without its gateway.
    pub(crate) fn behave(&self, lines: &str) -> &Self {
        self.write("fake/behave", lines)
    }

    pub(crate) fn prepare(&self) -> Result<Prepared, LaunchError> {
        prepare(&self.options, &self.machine)
    }

    pub(crate) fn driver(&self) -> OpenShell {
        let limits =
            Limits { call: Duration::from_secs(8), build: Duration::from_secs(20), create: Duration::from_secs(8) };
        OpenShell::new(&self.machine).unwrap().with_limits(limits)
    }

    pub(crate) fn launch(&self) -> (Result<Launched, LaunchError>, Said) {
        self.launch_until(&Stop::new())
    }

    pub(crate) fn launch_until(&self, stop: &Stop) -> (Result<Launched, LaunchError>, Said) {
        let mut said = Vec::new();
        let mut tell = |notice: Notice<'_>| {
            said.push(match notice {
                Notice::Step(text) => format!("step {text}"),
                Notice::Warning(text) => format!("warning {text}"),
                Notice::Output(_, text) => format!("output {text}"),
            });
        };
        let cleared = self.prepare().and_then(|prepared| prepared.clear(&mut |_| Answer::Yes));
        let launched = cleared.and_then(|cleared| cleared.launch(&self.driver(), stop, &mut tell));
        (launched, Said(said))
    }

    /// The calls so far, the two that ask what the program can do left out.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.all_calls().into_iter().filter(|call| !call.line.starts_with("openshell --")).collect()
    }

    pub(crate) fn all_calls(&self) -> Vec<Call> {
        let text = fs::read_to_string(self.path("fake/calls")).unwrap_or_default();
        let call = |line: &str| {
            let (pid, words) = line.split_once('\u{1f}').unwrap();
            let env = fs::read_to_string(self.path(&format!("fake/env.{pid}"))).unwrap();
            let env = env.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned()));
            let line = words.replace('\u{1f}', " ").replace("--gateway greenhouse ", "");
            Call { line, env: env.collect() }
        };
        text.lines().map(call).collect()
    }

    /// The calls' command lines, machine paths shortened.
    pub(crate) fn lines(&self) -> Vec<String> {
        let tmp = self.machine.temp_dir.display().to_string();
        let short = |line: String| {
            let words = line.split(' ').map(|word| match word.strip_prefix(&tmp) {
                Some(rest) => format!("TMP/{}", rest.trim_start_matches('/').split_once('/').unwrap_or_default().1),
                None => word.to_owned(),
            });
            words.collect::<Vec<_>>().join(" ")
        };
        self.calls().into_iter().map(|call| short(call.line)).collect()
    }

    /// Nothing of a launch is left in the temporary folder.
    pub(crate) fn assert_clean(&self) {
        let left: Vec<_> = fs::read_dir(&self.machine.temp_dir).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// No planted value stands in this text.
pub(crate) fn assert_unplanted(text: &str) {
    for planted in PLANTED {
        assert!(!text.contains(planted), "{planted} in {text}");
    }
}

pub(crate) fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
