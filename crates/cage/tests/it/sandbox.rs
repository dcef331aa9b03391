//! One test for each thing that must be impossible from inside a sandbox, as root and as an ordinary user.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bastion_cage::sandbox::{Identity, LimitedBy, Limits, Mount, Plan, Running, SandboxError, State, survey};

use crate::probes::CALLS;

/// Somebody who needs no entry in `/etc/passwd`.
const ORDINARY: &str = "1234";

/// Where this program is found inside.
const PROBE: &str = "/opt/probe";

const PAYLOAD: &str = "/etc/openshell/agent-payload";

/// A value that must not come in.
const MARK: &str = "the-launchers-own-secret";

type Outcome = Result<(), String>;

/// The sandbox's folders on the host. As root they stand where nobody else may look.
struct Host {
    home: PathBuf,
    _own: Option<tempfile::TempDir>,
}

impl Host {
    fn new() -> Self {
        let own = tempfile::tempdir().unwrap(); // 0700
        let home = own.path().to_owned();
        for folder in ["run", "payload"] {
            fs::DirBuilder::new().mode(0o700).create(home.join(folder)).unwrap();
        }
        fs::write(home.join("payload/file"), "payload").unwrap();
        fs::write(home.join("secret"), "secret").unwrap();
        Self { home, _own: Some(own) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    fn plan(&self, command: &[&str]) -> Plan {
        let program = std::env::current_exe().unwrap();
        let read_only =
            |source: PathBuf, destination: &str| Mount::ReadOnly { source, destination: destination.into() };
        Plan {
            program: program.clone(),
            mounts: vec![
                Mount::Writable { source: self.path("run"), destination: "/sandbox".into() },
                read_only(self.path("payload"), PAYLOAD),
                read_only(program, PROBE),
                Mount::Tmpfs { destination: "/var/tmp".into(), size: 1 << 20, mode: 0o1777 },
            ],
            files: vec![("/etc/openshell/note".into(), b"note".to_vec())],
            ca_bundle: b"a bundle".to_vec(),
            env: vec![("HOME".into(), "/sandbox".into()), ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            cwd: "/sandbox".into(),
            hostname: "box".into(),
            limits: Limits::default(),
            hard_requirement: false,
            identity: Identity::choose().unwrap(),
        }
    }

    /// Runs a command inside to its end.
    fn run(&self, command: &[&str]) -> Result<Ended, String> {
        finish(start(self.plan(command))?)
    }

    /// Runs a probe inside.
    fn probe(&self, words: &[&str]) -> Result<Ended, String> {
        self.run(&[&[PROBE, "probe"], words].concat())
    }

    fn stopped(&self, words: &[&str]) -> Outcome {
        expect(&self.probe(words)?, false, "inside")
    }

    fn works(&self, words: &[&str]) -> Outcome {
        expect(&self.probe(words)?, true, "inside")
    }
}

struct Ended {
    status: ExitStatus,
    output: String,
}

fn start(plan: Plan) -> Result<Running, String> {
    plan.prepare().and_then(|prepared| prepared.start()).map_err(|error| format!("{error}; {}", error.mend()))
}

fn finish(mut running: Running) -> Result<Ended, String> {
    let (stdout, stderr) = (running.stdout().unwrap(), running.stderr().unwrap());
    let reader = std::thread::spawn(move || read(stderr));
    let output = read(stdout);
    let status = running.wait().map_err(|error| error.to_string())?;
    Ok(Ended { status, output: output + &reader.join().unwrap() })
}

fn read(pipe: OwnedFd) -> String {
    let mut bytes = Vec::new();
    File::from(pipe).read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn expect(ended: &Ended, worked: bool, place: &str) -> Outcome {
    match (ended.status.code(), worked) {
        (Some(0), true) | (Some(3), false) => Ok(()),
        _ => Err(format!(
            "{place}: {} ({}), should {}",
            ended.status,
            ended.output,
            if worked { "work" } else { "fail" }
        )),
    }
}

/// The same probe outside, where it has to work.
fn control(words: &[&str]) -> Outcome {
    let output = itself().arg("probe").args(words).output().unwrap();
    let output = Ended { status: output.status, output: String::from_utf8_lossy(&output.stdout).into_owned() };
    expect(&output, true, "outside")
}

fn itself() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.stdin(Stdio::null());
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn check(sound: bool, why: impl ToString) -> Outcome {
    if sound { Ok(()) } else { Err(why.to_string()) }
}

// The tests. Each has a control: the same probe where it has to work.

fn says_who_it_is(host: &Host) -> Outcome {
    let ended = host.run(&["/bin/sh", "-c", "id; ls /; hostname; cat /etc/openshell/note; pwd"])?;
    check(ended.status.success(), &ended.output)?;
    for part in ["uid=1000(sandbox) gid=1000(sandbox)", "\nbox\n", "sandbox\n", "note/sandbox\n"] {
        check(ended.output.contains(part), format!("no {part:?} in {}", ended.output))?;
    }
    for part in ["home", "root", "sys", "boot", "mnt"] {
        check(!ended.output.lines().any(|line| line == part), format!("/{part} is there"))?;
    }
    host.works(&["is_limited"])
}

fn forbidden_calls(host: &Host) -> Outcome {
    // One sandbox for all, so that this does not take a second per call.
    let mut script = String::new();
    for call in CALLS {
        script +=
            &format!("echo {}; {PROBE} probe call {} {} >/dev/null; echo $?\n", call.name, call.name, call.inside);
        if !call.root || is_root() {
            control(&["call", call.name, &call.inside.to_string()]).map_err(|why| format!("{}: {why}", call.name))?;
        }
    }
    let ended = host.run(&["/bin/sh", "-c", &script])?;
    let mut lines = ended.output.lines();
    for call in CALLS {
        check(lines.next() == Some(call.name), &ended.output)?;
        check(lines.next() == Some("3"), format!("{} got past the filter", call.name))?;
    }
    Ok(())
}

fn foreign_conventions(host: &Host) -> Outcome {
    for convention in ["x32", "i386"].iter().filter(|_| cfg!(target_arch = "x86_64")) {
        control(&["foreign", convention])?;
        let ended = host.probe(&["foreign", convention])?;
        check(ended.status.code() == Some(128 + libc::SIGSYS), format!("{convention}: {}", ended.status))?;
    }
    Ok(())
}

fn read_only_places(host: &Host) -> Outcome {
    host.works(&["create", "/sandbox"])?;
    host.works(&["create", "/tmp"])?;
    host.works(&["create", "/dev/shm"])?;
    host.works(&["create", "/var/tmp"])?;
    for place in ["/usr", "/usr/bin", "/", "/etc", "/dev", "/run", "/run/bastion", "/opt", PAYLOAD, "/proc"] {
        host.stopped(&["create", place])?;
    }
    control(&["create", host.path("payload").to_str().unwrap()])?;
    host.works(&["open_to_write", "/dev/null"])?;
    for file in ["/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory", "/proc/self/oom_score_adj"] {
        if is_root() {
            control(&["open_to_write", file])?;
        }
        host.stopped(&["open_to_write", file])?;
    }
    host.stopped(&["open_to_write", "/run/bastion/supervisor"])?;
    host.stopped(&["open_to_write", "/etc/passwd"])
}

fn files_of_the_host(host: &Host) -> Outcome {
    for place in ["/root", "/home", "/sys", "/mnt", "/var/log", "/boot"] {
        host.stopped(&["list", place])?;
    }
    host.works(&["read", "/etc/passwd"])?;
    host.stopped(&["read", "/etc/shadow"])?;
    let secret = host.path("secret");
    control(&["read", secret.to_str().unwrap()])?;
    host.stopped(&["read", secret.to_str().unwrap()])?;
    for (name, target) in [("shadow", "/etc/shadow"), ("link", secret.to_str().unwrap()), ("up", "../secret")] {
        let link = host.path("run").join(name);
        std::os::unix::fs::symlink(target, &link).unwrap();
        if name != "shadow" || is_root() {
            let seen = if name == "up" { host.path("run/up") } else { link };
            control(&["read", seen.to_str().unwrap()])?;
        }
        host.stopped(&["read", &format!("/sandbox/{name}")])?;
    }
    for way in ["/proc/1/root", "/proc/self/root"] {
        host.stopped(&["list", &format!("{way}/home")])?;
    }
    Ok(())
}

fn network(host: &Host) -> Outcome {
    host.works(&["connect", "127.0.0.1:3128"])?;
    for address in ["192.0.2.1:80", "198.51.100.7:443", "[2001:db8::1]:443"] {
        host.stopped(&["connect", address])?;
    }
    host.works(&["netlink_route"])
}

fn sockets_of_the_host(host: &Host) -> Outcome {
    let path = host.path("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    control(&["unix", path.to_str().unwrap()])?;
    host.stopped(&["unix", path.to_str().unwrap()])?;
    let name = format!("bastion-test-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    control(&["abstract", &name])?;
    host.stopped(&["abstract", &name])
}

fn nothing_of_the_launcher(host: &Host) -> Outcome {
    let marked = itself().args(["probe", "finds_in_proc", MARK]).env("A_SECRET", MARK).status().unwrap();
    check(marked.success(), "outside it is not found")?;
    // This process has it in its environment: see `main`.
    check(std::env::var("A_SECRET").is_ok_and(|value| value == MARK), "no mark")?;
    host.stopped(&["finds_in_proc", MARK])?;
    let ended = host.run(&["/bin/sh", "-c", "cat /proc/1/environ | wc -c; tr '\\0' ' ' </proc/1/cmdline; env"])?;
    let lines: Vec<_> = ended.output.lines().collect();
    let [environ, rest, ..] = lines.as_slice() else { return Err(ended.output) };
    let arguments = rest.strip_prefix("/usr/bin/bwrap --args ").unwrap_or("?");
    let arguments = arguments.trim_start_matches(|c: char| c.is_ascii_digit());
    check(*environ == "0", format!("the first process has an environment of {environ} bytes"))?;
    check(arguments.starts_with(" -- /run/bastion/supervisor init"), rest)?;
    check(!ended.output.contains(host.home.to_str().unwrap()), &ended.output)?;
    // Memory of the first process, and of itself as a control.
    host.works(&["open", "/proc/self/mem"])?;
    host.stopped(&["open", "/proc/1/mem"])
}

fn descriptors(host: &Host) -> Outcome {
    // One that a careless library left open for every child.
    let leaked = File::open("/etc/hostname").or_else(|_| File::open("/etc/passwd")).unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    control(&["has_descriptors"])?;
    host.stopped(&["has_descriptors"])?;
    let ended = host.run(&["/bin/sh", "-c", "readlink /proc/1/fd/* /proc/$$/fd/*"])?;
    let foreign =
        |line: &&str| !(line.starts_with("pipe:") || line.starts_with("/dev/null") || line.contains("eventfd"));
    match ended.output.lines().find(foreign) {
        Some(line) => Err(format!("{line} is open inside")),
        None => Ok(()),
    }
}

fn set_id_bits(host: &Host) -> Outcome {
    let folder = host.path("run");
    for (how, mode) in [("chmod", "4755"), ("chmod", "2755"), ("open", "4755")] {
        control(&["set_id", how, mode, folder.to_str().unwrap()])?;
        host.stopped(&["set_id", how, mode, "/sandbox"])?;
    }
    let ended = host.run(&["/bin/sh", "-c", "touch a && chmod 755 a && mkdir -m 700 b && chmod +t b"])?;
    check(ended.status.success(), ended.output)
}

fn fork_bomb(host: &Host) -> Outcome {
    let with = |pids| {
        let mut plan = host.plan(&[PROBE, "probe", "fork", "100"]);
        plan.limits.pids = pids;
        finish(start(plan)?)
    };
    expect(&with(400)?, true, "with 400")?;
    expect(&with(64)?, false, "with 64")
}

fn memory_hog(host: &Host) -> Outcome {
    let with = |memory| {
        let mut plan = host.plan(&[PROBE, "probe", "memory", "300"]);
        plan.limits.memory = Some(memory);
        finish(start(plan)?)
    };
    expect(&with(1 << 30)?, true, "with 1 GiB")?;
    let ended = with(150 << 20)?;
    check(matches!(ended.status.code(), Some(3 | 137 | 134)), format!("with 150 MiB: {}", ended.status))
}

fn tmp_is_bounded(host: &Host) -> Outcome {
    let fill = |folder: &str, count: u32| -> Result<Ended, String> {
        let script = format!("dd if=/dev/zero of={folder}/fill bs=1M count={count} 2>/dev/null");
        let mut plan = host.plan(&["/bin/sh", "-c", &script]);
        plan.limits.tmp_size = 8 << 20;
        finish(start(plan)?)
    };
    check(fill("/tmp", 4)?.status.success(), "4 MiB do not fit into /tmp")?;
    check(!fill("/tmp", 16)?.status.success(), "16 MiB fit into /tmp")?;
    check(!fill("/dev/shm", 100)?.status.success(), "100 MiB fit into /dev/shm")?;
    check(!fill("/var/tmp", 4)?.status.success(), "4 MiB fit into /var/tmp")
}

fn grandchild(host: &Host) -> Outcome {
    let beats = host.path("run/beats");
    let size = || fs::metadata(&beats).map_or(0, |file| file.len());
    let mut launcher = itself().arg("launcher").arg(&host.home).stdout(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while size() < 5 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let before = size();
    std::thread::sleep(Duration::from_millis(300));
    let alive = size() > before; // the control: it lives while the launcher does
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let after = size();
    std::thread::sleep(Duration::from_millis(300));
    check(alive, "it does not live with its launcher")?;
    check(size() == after, "it lives on without its launcher")
}

/// Launchers that are killed while they start a sandbox leave nobody behind.
fn killed_while_starting(host: &Host) -> Outcome {
    for delay in (0..48).step_by(4) {
        let mut launcher = itself().arg("launcher").arg(&host.home).stdout(Stdio::piped()).spawn().unwrap();
        let mut uid = String::new();
        BufReader::new(launcher.stdout.take().unwrap()).read_line(&mut uid).unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        launcher.kill().unwrap();
        launcher.wait().unwrap();
        let uid = uid.trim().parse().unwrap();
        let deadline = Instant::now() + Duration::from_secs(1);
        while !sandboxes_of(uid).is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let left = sandboxes_of(uid);
        check(left.is_empty(), format!("after {delay} ms: {left:?} live on"))?;
    }
    Ok(())
}

/// Processes of a user that are, or are to become, a sandbox.
fn sandboxes_of(uid: u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let owned = fs::metadata(entry.path()).is_ok_and(|process| process.uid() == uid);
        let command = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        if owned && ["bwrap", "supervisor", "stage"].iter().any(|part| command.contains(part)) {
            found.push(format!("{} {}", entry.file_name().to_string_lossy(), command.replace('\0', " ")));
        }
    }
    found
}

/// The other side of the tests above: a launcher that is killed.
pub(crate) fn launcher(folder: &str) -> ExitCode {
    let host = Host { home: folder.into(), _own: None };
    let plan = host.plan(&["/bin/sh", "-c", "/opt/probe probe beat /sandbox/beats; exec sleep 600"]);
    println!("{}", plan.identity.uid);
    let _running = start(plan).unwrap();
    std::thread::sleep(Duration::from_secs(60));
    ExitCode::SUCCESS
}

fn ends(host: &Host) -> Outcome {
    for code in [0, 1, 42] {
        let ended = host.probe(&["exit", &code.to_string()])?;
        check(ended.status.code() == Some(code), ended.status)?;
    }
    let mut running = start(host.plan(&["/bin/sh", "-c", "trap 'exit 7' TERM; while :; do sleep 0.05; done"]))?;
    check(running.try_wait().unwrap().is_none(), "it has ended already")?;
    std::thread::sleep(Duration::from_millis(200)); // the shell's trap
    check(Path::new(&format!("/proc/{}", running.supervisor_pid())).exists(), "no such process")?;
    running.terminate().unwrap();
    let status = running.wait().unwrap();
    check(status.code() == Some(7), format!("after TERM: {status}"))?;
    running.terminate().unwrap(); // of nobody

    let mut running = start(host.plan(&[PROBE, "probe", "sleep"]))?;
    let pid = running.supervisor_pid();
    running.kill();
    check(running.wait().unwrap().signal() == Some(libc::SIGKILL), "it was not killed")?;
    check(is_gone(pid), "the supervisor lives on")?;

    for _ in 0..10 {
        let running = start(host.plan(&[PROBE, "probe", "sleep"]))?;
        let pid = running.supervisor_pid();
        drop(running);
        check(is_gone(pid), "the supervisor outlives its handle")?;
    }
    Ok(())
}

/// Whether a process ends within a second. Its parent collects it when all of the sandbox has ended.
fn is_gone(pid: u32) -> bool {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let deadline = Instant::now() + Duration::from_secs(1);
    while process.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    !process.exists()
}

/// The launcher can accept what connects inside, and what it writes arrives there.
fn listener(host: &Host) -> Outcome {
    use std::io::Write;
    let mut running = start(host.plan(&["/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/3128; cat <&3"]))?;
    let listener = running.listener().unwrap();
    check(running.listener().is_none(), "a second listener")?;
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(b"hello from the launcher").unwrap();
    drop(stream);
    let ended = finish(running)?;
    check(ended.output == "hello from the launcher", ended.output)
}

/// What is written inside belongs to the owner of the folder outside, and nobody else's files can be had.
fn owners(host: &Host) -> Outcome {
    let ended = host.run(&[
        "/bin/sh",
        "-c",
        "umask; stat -c %u /sandbox; echo x > /sandbox/made; cat /etc/openshell/agent-payload/file",
    ])?;
    check(ended.output == "0022\n1000\npayload", &ended.output)?;
    let made = fs::metadata(host.path("run/made")).unwrap();
    check(made.uid() == rustix::process::geteuid().as_raw(), "it belongs to somebody else")
}

fn tools(host: &Host) -> Outcome {
    let tools = [
        (
            "git",
            "cd /tmp && git init -q r && cd r && git config user.email a@b.invalid && git config user.name a && echo x >f && git add f && git commit -qm x && git log --oneline",
        ),
        (
            "python3",
            "/usr/bin/python3 -c 'import asyncio,subprocess,threading,tempfile,pty; pty.openpty(); print(subprocess.check_output([\"true\"]))'",
        ),
        (
            "node",
            "node -e 'require(\"child_process\").execSync(\"true\"); new (require(\"worker_threads\").Worker)(\"1\", {eval:true}); fetch(\"http://192.0.2.1\").catch(() => console.log(\"no way out\"))'",
        ),
        ("gcc", "cd /tmp && echo 'int main(void){return 0;}' >a.c && gcc a.c -o a && ./a"),
        ("curl", "curl -s --max-time 2 http://127.0.0.1:1/; test $? = 7"),
        ("perl", "perl -e 'print 1'"),
    ];
    for (tool, script) in tools {
        if !["/usr/bin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join(tool).exists()) {
            println!("SKIPPED: {tool} inside: it is not installed");
            continue;
        }
        let ended = host.run(&["/bin/bash", "-c", script])?;
        check(ended.status.success(), format!("{tool}: {} {}", ended.status, ended.output))?;
    }
    Ok(())
}

fn refusals(host: &Host) -> Outcome {
    let sleep = || host.plan(&[PROBE, "probe", "sleep"]);
    let refused = |result: Result<Running, SandboxError>, what: &str| match result {
        Ok(_) => Err(format!("{what}: it was started")),
        Err(error) => check(!error.mend().is_empty(), format!("{what}: no mend for {error}")).map(|()| error),
    };
    let with = |bubblewrap: PathBuf| sleep().prepare_with(bubblewrap).and_then(|prepared| prepared.start());
    let error = refused(with("/nowhere/bwrap".into()), "no bubblewrap")?;
    check(matches!(error, SandboxError::BadBubblewrap { .. }), &error)?;

    let stand_in = |name: &str, body: &str| {
        let path = host.path(name);
        fs::write(&path, format!("#!/bin/sh\ncase $1 in --version) echo bubblewrap 0.8.0; exit;; esac\n{body}\n"))
            .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    fs::set_permissions(&host.home, fs::Permissions::from_mode(0o755)).unwrap();
    let error = refused(with(stand_in("fails", "echo No permissions >&2; exit 1")), "one that fails")?;
    check(matches!(&error, SandboxError::Bubblewrap { said } if said == "No permissions"), &error)?;
    // It says yes to everything and isolates nothing.
    let program = std::env::current_exe().unwrap();
    let liar = format!("case $1 in --args) exec {} init;; esac\nexec cat", program.display());
    let error = refused(with(stand_in("lies", &liar)), "one that isolates nothing")?;
    check(
        matches!(error, SandboxError::Handover { .. } | SandboxError::Step { .. } | SandboxError::Bubblewrap { .. }),
        &error,
    )?;
    let path = stand_in("open", "exec cat");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    refused(with(path), "one that others can change")?;

    let change = |change: &dyn Fn(&mut Plan)| {
        let mut plan = sleep();
        change(&mut plan);
        plan.prepare().and_then(|prepared| prepared.start())
    };
    let writable =
        |source: &str, destination: &str| Mount::Writable { source: source.into(), destination: destination.into() };
    for (source, destination) in [
        ("/", "/host"),
        ("/proc", "/p"),
        ("/usr", "/proc/x"),
        ("/usr", "/a/../b"),
        ("/nowhere", "/x"),
        ("usr", "/x"),
        ("/usr", "/run/bastion"),
    ] {
        refused(change(&|plan| plan.mounts.push(writable(source, destination))), source)?;
    }
    refused(change(&|plan| plan.command.clear()), "no command")?;
    refused(change(&|plan| plan.hostname = "a b".into()), "a host name")?;
    refused(change(&|plan| plan.env.push(("A=B".into(), String::new()))), "a variable")?;
    refused(change(&|plan| plan.command = vec!["/nowhere/program".into()]), "a command that is not there")?;
    refused(change(&|plan| plan.identity = Identity { uid: if is_root() { 0 } else { 5 }, gid: 5 }), "an identity")?;
    Ok(())
}

fn hard_requirement(host: &Host) -> Outcome {
    let mut plan = host.plan(&[PROBE, "probe", "exit", "0"]);
    let weak = !start(plan.clone())?.enforced().notes.is_empty();
    plan.hard_requirement = true;
    match plan.prepare().and_then(|prepared| prepared.start()) {
        Ok(_) if !weak => Ok(()),
        Err(SandboxError::Incomplete { .. }) if weak => Ok(()),
        Ok(_) => Err("it was started".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn reports(host: &Host) -> Outcome {
    let running = start(host.plan(&[PROBE, "probe", "sleep"]))?;
    let enforced = running.enforced().clone();
    check(enforced.landlock.is_none_or(|version| version > 0), "a version")?;
    check(
        (enforced.limited_by == LimitedBy::RlimitsOnly) == enforced.notes.iter().any(|note| note.contains("memory")),
        "notes",
    )?;
    drop(running);
    // Mounts and filter say nothing about signals; process 1 is of the same user, and outside of Landlock's fence.
    let script = "kill -0 $$ && ! kill -0 1 2>/dev/null";
    let fenced = host.run(&["/bin/bash", "-c", script])?.status.success();
    check(fenced == enforced.landlock.is_some_and(|version| version >= 6), "Landlock's fence around signals")?;
    let findings = survey();
    check(findings.len() == 5, "a layer is missing")?;
    for finding in findings {
        println!("     {}: {:?}, {}", finding.layer, finding.state, finding.detail);
        check(finding.state == State::Enforced || finding.mend.is_some(), "no mend")?;
    }
    Ok(())
}

const TESTS: &[(&str, fn(&Host) -> Outcome)] = &[
    ("says_who_it_is", says_who_it_is),
    ("forbids_calls", forbidden_calls),
    ("kills_foreign_conventions", foreign_conventions),
    ("keeps_places_read_only", read_only_places),
    ("hides_files_of_the_host", files_of_the_host),
    ("has_no_network", network),
    ("hides_sockets_of_the_host", sockets_of_the_host),
    ("knows_nothing_of_the_launcher", nothing_of_the_launcher),
    ("inherits_no_descriptors", descriptors),
    ("makes_no_set_id_files", set_id_bits),
    ("bounds_a_fork_bomb", fork_bomb),
    ("bounds_a_memory_hog", memory_hog),
    ("bounds_files_in_memory", tmp_is_bounded),
    ("takes_grandchildren_with_it", grandchild),
    ("leaves_nobody_when_killed_while_starting", killed_while_starting),
    ("ends_as_it_is_told", ends),
    ("hands_over_its_listener", listener),
    ("keeps_owners", owners),
    ("runs_tools", tools),
    ("refuses_to_start", refusals),
    ("obeys_hard_requirement", hard_requirement),
    ("reports_what_holds", reports),
];

/// All of them as who we are.
pub(crate) fn main(filter: &[&str]) -> ExitCode {
    let who = if is_root() { "root" } else { "user" };
    let mut failed = 0;
    for (name, test) in TESTS {
        let name = format!("sandbox_of_{who}_{name}");
        if filter.first().is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        match test(&Host::new()) {
            Ok(()) => println!("test {name} ... ok"),
            Err(why) => {
                println!("test {name} ... FAILED: {why}");
                failed += 1;
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// As who we are, and for root as an ordinary user too. Whether none failed.
pub(crate) fn run(filter: Option<&String>) -> bool {
    let findings = survey();
    if let Some(finding) = findings.iter().find(|finding| finding.state == State::Missing) {
        println!("SKIPPED: all tests of sandboxes: {}: {}", finding.layer, finding.detail);
        return true;
    }
    let own = itself().arg("sandbox").args(filter).env("A_SECRET", MARK).status().unwrap().success();
    let user = !is_root() || as_user(filter);
    own && user
}

fn as_user(filter: Option<&String>) -> bool {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("it");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", ORDINARY, "--regid", ORDINARY, "--clear-groups"]).arg(program).arg("sandbox");
    command.args(filter).current_dir("/").env("A_SECRET", MARK).env_remove("TMPDIR").stdin(Stdio::null());
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            println!("SKIPPED: all tests of an ordinary user's sandbox: setpriv: {error}");
            true
        }
    }
}
