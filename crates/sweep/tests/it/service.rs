//! Units as their readers read them, and what is done to switch them on and off.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use bastion_sweep::service::{
    Account, Agent, Answer, Invocation, Manager, Platform, ServiceError, Unit, install, service_status, uninstall, unit,
};

use crate::world::World;

/// Everything a path may hold that some format gives a meaning.
const AWKWARD: &str = r#"a b "c" d'e %h 50% f&g <h> $HOME i\j é"#;

fn agent(dir: &Path) -> (Agent, Account) {
    let id = World::new("hourly", "walk");
    let admitted = id.gate.judge(&id.settings.manifest, true).unwrap();
    let folder = dir.join(AWKWARD);
    let agent = Agent {
        id: admitted.manifest().id.clone(),
        program: folder.join("bastion"),
        manifest: folder.join("manifest.yaml"),
        out: Some(folder.join("out")),
    };
    (agent, Account { home: dir.join("home & co"), uid: 1000 })
}

fn expected_arguments(agent: &Agent) -> Vec<String> {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    vec![text(&agent.program), "sweep".into(), text(&agent.manifest), "--out".into(), text(agent.out.as_ref().unwrap())]
}

fn with_tool(program: &str, args: &[&str]) -> Option<std::process::Output> {
    let output = Command::new(program).args(args).output().ok();
    if output.is_none() {
        println!("SKIPPED: no {program} here");
    }
    output
}

#[test]
fn the_systemd_unit_holds_what_is_promised() {
    let dir = tempfile::tempdir().unwrap();
    let (agent, account) = agent(dir.path());
    let unit = unit(Platform::Systemd, &agent, &account).unwrap();
    assert_eq!(unit.path, account.home.join(".config/systemd/user/bastion-notes.service"));
    for line in [
        "UMask=0077",
        "NoNewPrivileges=yes",
        "PrivateTmp=yes",
        "EnvironmentFile=-%h/.config/bastion-agent/env",
        "Restart=on-failure",
        "RestartSec=60",
        "KillMode=mixed",
        "WantedBy=default.target",
    ] {
        assert!(unit.text.lines().any(|there| there == line), "{line}");
    }
    let escaped = r#"/a b \"c\" d'e %%h 50%% f&g <h> $HOME i\\j é/"#;
    let folder = format!("{}{escaped}", dir.path().display());
    let command = format!(r#"ExecStart=:"{folder}bastion" "sweep" "{folder}manifest.yaml" "--out" "{folder}out""#);
    assert!(unit.text.lines().any(|line| line == command), "{}\n{command}", unit.text);
}

#[test]
fn systemd_itself_accepts_the_unit_and_finds_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let (agent, account) = agent(dir.path());
    std::fs::create_dir(agent.program.parent().unwrap()).unwrap();
    std::fs::write(&agent.program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&agent.program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let unit = unit(Platform::Systemd, &agent, &account).unwrap();
    let file = dir.path().join("bastion-notes.service");
    std::fs::write(&file, unit.bytes()).unwrap();
    let verify = |file: &Path| {
        let output = with_tool("systemd-analyze", &["verify", "--user", "--man=no", file.to_str().unwrap()])?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let ours: Vec<String> = said.lines().filter(|line| line.contains("bastion")).map(str::to_owned).collect();
        Some((output.status.success(), ours, said))
    };
    let Some((success, ours, said)) = verify(&file) else { return };
    if !success && ours.is_empty() {
        println!("SKIPPED: systemd-analyze can't work here: {said}");
        return;
    }
    assert!(ours.is_empty(), "{said}");
    // The check has teeth: without the program systemd complains.
    std::fs::remove_file(&agent.program).unwrap();
    let (_, ours, said) = verify(&file).unwrap();
    assert!(!ours.is_empty(), "{said}");
}

#[test]
fn the_launchd_agent_reads_back_as_it_was_meant() {
    let dir = tempfile::tempdir().unwrap();
    let (agent, account) = agent(dir.path());
    let unit = unit(Platform::Launchd, &agent, &account).unwrap();
    assert_eq!(unit.path, account.home.join("Library/LaunchAgents/bastion-notes.plist"));
    let file = dir.path().join("unit");
    std::fs::write(&file, unit.bytes()).unwrap();
    let script = "import plistlib,json,sys; print(json.dumps(plistlib.load(open(sys.argv[1],'rb'))))";
    let Some(output) = with_tool("python3", &["-c", script, file.to_str().unwrap()]) else { return };
    let plist: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let arguments: Vec<&str> =
        plist["ProgramArguments"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
    assert_eq!(arguments[5..], expected_arguments(&agent));
    assert_eq!(arguments[4], account.env_file().to_str().unwrap());
    assert_eq!((plist["Label"].as_str(), plist["Umask"].as_i64()), (Some("bastion-notes"), Some(0o077)));
    assert_eq!((&plist["RunAtLoad"], &plist["KeepAlive"]["SuccessfulExit"]), (&true.into(), &false.into()));
    assert_eq!(plist["ThrottleInterval"].as_i64(), Some(60));
}

#[test]
fn the_launchd_agents_shell_reads_the_settings_and_becomes_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let (mut agent, account) = agent(dir.path());
    agent.out = None;
    let folder = agent.program.parent().unwrap();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::create_dir_all(account.env_file().parent().unwrap()).unwrap();
    std::fs::write(account.env_file(), "EMBED_URL='https://a b'\n").unwrap();
    std::fs::write(&agent.program, "#!/bin/sh\nprintf '%s\\n' \"$EMBED_URL\" \"$@\"\n").unwrap();
    std::fs::set_permissions(&agent.program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let unit = unit(Platform::Launchd, &agent, &account).unwrap();
    let file = dir.path().join("unit");
    std::fs::write(&file, unit.bytes()).unwrap();
    let script = "import plistlib,subprocess,sys; a=plistlib.load(open(sys.argv[1],'rb'))['ProgramArguments']; subprocess.run(a,check=True)";
    let Some(output) = with_tool("python3", &["-c", script, file.to_str().unwrap()]) else { return };
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("https://a b\nsweep\n{}\n", agent.manifest.display()));
}

#[test]
fn the_scheduled_task_reads_back_as_it_was_meant() {
    let dir = tempfile::tempdir().unwrap();
    let (mut agent, account) = agent(dir.path());
    agent.program = PathBuf::from(r"C:\Program Files\R&D 50%\bastion.exe");
    agent.manifest = PathBuf::from(r"C:\Users\o'neil <x>\");
    agent.out = None;
    let unit = unit(Platform::TaskScheduler, &agent, &account).unwrap();
    assert_eq!(unit.bytes()[..2], [0xff, 0xfe]);
    let file = dir.path().join("unit");
    std::fs::write(&file, unit.bytes()).unwrap();
    let script = "import sys,xml.etree.ElementTree as E; n='{http://schemas.microsoft.com/windows/2004/02/mit/task}'; r=E.parse(sys.argv[1]).getroot(); [print(r.find('.//'+n+t).text) for t in ('Command','Arguments','Interval','RunLevel')]";
    let Some(output) = with_tool("python3", &["-c", script, file.to_str().unwrap()]) else { return };
    let said = String::from_utf8(output.stdout).unwrap();
    let expected =
        [r"C:\Program Files\R&D 50%\bastion.exe", r#""sweep" "C:\Users\o'neil <x>\\""#, "PT1M", "LeastPrivilege"];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);

    agent.manifest = PathBuf::from(r"C:\%PATH%\m.yaml");
    assert!(matches!(super_unit(&agent, &account), Err(ServiceError::Path { .. })));
}

fn super_unit(agent: &Agent, account: &Account) -> Result<Unit, ServiceError> {
    unit(Platform::TaskScheduler, agent, account)
}

#[test]
fn a_path_that_no_format_can_hold_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let (agent, account) = agent(dir.path());
    for bad in [&b"/a\nExecStartPre=/bin/evil"[..], b"/a\xff"] {
        let manifest = PathBuf::from(std::ffi::OsStr::from_bytes(bad));
        let agent = Agent { manifest, ..agent.clone() };
        for platform in [Platform::Systemd, Platform::Launchd, Platform::TaskScheduler] {
            assert!(matches!(unit(platform, &agent, &account), Err(ServiceError::Path { .. })));
        }
    }
}

#[test]
fn an_agent_of_one_root_keeps_its_own_folder_and_one_of_several_gets_one() {
    let world = World::new("hourly", "walk");
    let account = Account { home: "/home/o".into(), uid: 1 };
    let of = || Agent::of(&world.gate.judge(&world.settings.manifest, true).unwrap(), "/bin/bastion".into(), &account);
    assert_eq!(of().out, None);
    std::fs::create_dir_all(world.dir.path().join("docs/a")).unwrap();
    std::fs::create_dir_all(world.dir.path().join("docs/b")).unwrap();
    world.write_raw("v: 1\nid: notes\nowner:\n  host: owner.example\nroots: [../a, ../b]\n");
    assert_eq!(of().out, Some("/home/o/.local/share/bastion-agent/out/notes".into()));
    assert!(of().manifest.is_absolute());
}

#[derive(Default)]
struct Fake {
    ran: Vec<String>,
    fails: Option<&'static str>,
}

impl Manager for Fake {
    fn run(&mut self, invocation: &Invocation) -> std::io::Result<Answer> {
        self.ran.push(invocation.to_string());
        let failed = self.fails.is_some_and(|word| self.ran.last().unwrap().contains(word));
        Ok(Answer { success: !failed, text: "what it said".into() })
    }
}

fn installed(dir: &Path) -> (Unit, Account) {
    let (agent, account) = agent(dir);
    (unit(Platform::Systemd, &agent, &account).unwrap(), account)
}

#[test]
fn install_writes_the_unit_and_switches_it_on_and_uninstall_takes_it_away() {
    let dir = tempfile::tempdir().unwrap();
    let (unit, account) = installed(dir.path());
    let mut manager = Fake::default();
    assert!(matches!(uninstall(&unit, &mut manager), Err(ServiceError::NotInstalled { .. })));
    assert!(matches!(service_status(&unit, &mut manager), Err(ServiceError::NotInstalled { .. })));
    assert!(manager.ran.is_empty());

    install(&unit, &mut manager).unwrap();
    install(&unit, &mut manager).unwrap();
    assert_eq!(std::fs::read_to_string(&unit.path).unwrap(), unit.text);
    assert_eq!(
        manager.ran[..3],
        [
            "systemctl --user daemon-reload",
            "systemctl --user enable bastion-notes.service",
            "systemctl --user restart --no-block bastion-notes.service",
        ]
    );
    let env = std::fs::metadata(account.env_file()).unwrap();
    assert_eq!(env.permissions().mode() & 0o777, 0o600);

    let mut manager = Fake { fails: Some("status"), ..Fake::default() };
    let answer = service_status(&unit, &mut manager).unwrap();
    assert_eq!(answer, Answer { success: false, text: "what it said".into() });

    let mut manager = Fake::default();
    uninstall(&unit, &mut manager).unwrap();
    assert!(!unit.path.exists() && account.env_file().exists());
    assert_eq!(
        manager.ran,
        ["systemctl --user disable --now --no-block bastion-notes.service", "systemctl --user daemon-reload",]
    );
}

#[test]
fn settings_that_others_may_read_are_refused_and_ones_own_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (unit, account) = installed(dir.path());
    let env = account.env_file();
    std::fs::create_dir_all(env.parent().unwrap()).unwrap();
    std::fs::write(&env, "EMBED_API_KEY=k\n").unwrap();
    std::fs::set_permissions(&env, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut manager = Fake::default();
    let refused = install(&unit, &mut manager).unwrap_err();
    assert!(refused.to_string().contains("chmod 600"), "{refused}");
    assert!(!unit.path.exists() && manager.ran.is_empty());
    std::fs::set_permissions(&env, std::fs::Permissions::from_mode(0o600)).unwrap();
    install(&unit, &mut manager).unwrap();
    assert_eq!(std::fs::read_to_string(&env).unwrap(), "EMBED_API_KEY=k\n");
}

#[test]
fn what_the_manager_says_when_it_fails_is_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let (unit, _) = installed(dir.path());
    let mut manager = Fake { fails: Some("enable"), ..Fake::default() };
    let failed = install(&unit, &mut manager).unwrap_err().to_string();
    assert_eq!(failed, "`systemctl --user enable bastion-notes.service` failed: what it said");
}
