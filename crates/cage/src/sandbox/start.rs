//! From a plan to a sandbox that runs.

use std::io::{self, Read};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags};

use super::bubblewrap::{self, Idle};
use super::group::Group;
use super::options::{self, Built};
use super::running::{Keeper, Processes};
use super::wire::{self, Job, Orders, Received, Report};
use super::{Enforced, Identity, Layer, LimitedBy, Mount, PROXY, Plan, Running, SandboxError, kernel};

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A sandbox whose every layer is there.
#[derive(Debug)]
#[must_use = "nothing runs yet"]
pub struct Prepared {
    plan: Plan,
    bubblewrap: PathBuf,
    built: Built,
    group: Group,
    notes: Vec<String>,
}

impl Plan {
    /// Asks for every layer, and refuses where one is missing: bubblewrap is there and can be trusted, the kernel has
    /// seccomp, and with `hard_requirement` it has Landlock and someone counts memory. Every path and text is judged.
    /// Whether bubblewrap may make namespaces here is seen by [`Prepared::start`], which refuses as well: one on trial
    /// would cost half as much again, and leave a process where its launcher is killed just then.
    pub fn prepare(self) -> Result<Prepared, SandboxError> {
        let bubblewrap = bubblewrap::find()?;
        self.prepare_with(bubblewrap)
    }

    /// The same with a bubblewrap at another place than the system's.
    pub fn prepare_with(self, bubblewrap: PathBuf) -> Result<Prepared, SandboxError> {
        self.identity.judge()?;
        bubblewrap::judge(&bubblewrap)?;
        let built = options::build(&self, &bubblewrap, Identity::own().uid == 0)?;
        if !bubblewrap::kernel_says("/proc/sys/kernel/seccomp/actions_avail", "kill_process") {
            return Err(SandboxError::Step {
                layer: Layer::Seccomp,
                step: "asking the kernel".to_owned(),
                why: "it has no system call filter".to_owned(),
            });
        }
        let idle = Idle::start().map_err(|source| SandboxError::Launcher { step: "a process to try with", source })?;
        let group = Group::find(&self.limits, idle.pid());
        drop(idle);
        let notes = self.notes(&group)?;
        Ok(Prepared { plan: self, bubblewrap, built, group, notes })
    }

    /// What is weaker than it could be; an error where the agent insists.
    fn notes(&self, group: &Group) -> Result<Vec<String>, SandboxError> {
        let mut notes = Vec::new();
        let mut note = |layer, why: String, note: String| {
            notes.push(note);
            if self.hard_requirement { Err(SandboxError::Incomplete { layer, why }) } else { Ok(()) }
        };
        if kernel::landlock().is_none() {
            let why = "this kernel has no Landlock".to_owned();
            note(Layer::Landlock, why.clone(), format!("{why}: files are fenced by mounts alone"))?;
        }
        if let Some(why) = &group.missing {
            let pids = if may_limit_pids() { "" } else { "their number and " };
            let text = format!("{why}: memory is limited for each process, {pids}processor time not at all");
            note(Layer::Limits, why.clone(), text)?;
        }
        Ok(notes)
    }
}

impl Prepared {
    /// Builds the sandbox. Returns when init has handed over the listener, everything is in force and the command has
    /// been started; at most 10 s.
    pub fn start(self) -> Result<Running, SandboxError> {
        let deadline = Instant::now() + PATIENCE;
        let launcher = |step| move |source| SandboxError::Launcher { step, source };
        let (ours, theirs) = channel().map_err(launcher("a channel"))?;
        let command = self.command(theirs);
        let orders = self.orders()?;
        let job = Job {
            bubblewrap: options::text(&self.bubblewrap)?,
            options: self.built.words,
            parent: i32::try_from(std::process::id()).unwrap_or(0),
            cgroups: self.group.doors(),
            identity: self.built.staging,
        };
        let (lifeline, held) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
            .map_err(|errno| SandboxError::Launcher { step: "a pipe", source: errno.into() })?;
        let (mut child, keeper) = spawn(command, held).map_err(launcher("starting the stage"))?;
        let pipes = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
        let mut running = Running::new(child, keeper, self.group, pipes, self.notes);
        // Whatever fails from here on drops `running`, which ends what has been started.
        let messages = Messages { job, lifeline, orders, files: self.built.files };
        match meet(ours.as_fd(), &messages, deadline) {
            Ok(met) => {
                running.met(met.listener, met.processes, met.pid, met.landlock);
                Ok(running)
            }
            Err(Ended::Judged(error)) => Err(error),
            Err(Ended::WithoutAWord) => {
                let said = SandboxError::Bubblewrap { said: bubblewrap::one_line(&running.last_words()) };
                // one that is too old knows no option of ours
                Err(bubblewrap::version_of(&self.bubblewrap).err().unwrap_or(said))
            }
        }
    }

    fn command(&self, channel: OwnedFd) -> Command {
        let mut command = self.group.command(&self.plan.program, &self.plan.limits);
        // A group of its own, which the kernel can kill as a whole.
        command.arg(super::STAGE).current_dir("/").process_group(0);
        command.stdin(channel).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn orders(&self) -> Result<Orders, SandboxError> {
        let (mut readable, mut writable) = (Vec::new(), Vec::new());
        for mount in &self.plan.mounts {
            match mount {
                Mount::ReadOnly { destination, .. } => readable.push(options::text(destination)?),
                Mount::Writable { destination, .. } | Mount::Tmpfs { destination, .. } => {
                    writable.push(options::text(destination)?);
                }
            }
        }
        for (path, _) in &self.plan.files {
            readable.push(options::text(path)?);
        }
        let plan = &self.plan;
        Ok(Orders {
            command: plan.command.clone(),
            cwd: options::text(&plan.cwd)?,
            env: plan.env.clone(),
            open_files: plan.limits.open_files,
            pids: may_limit_pids().then_some(plan.limits.pids),
            data: plan.limits.memory.filter(|_| self.group.limited_by() == LimitedBy::RlimitsOnly),
            readable,
            writable,
            landlock_required: plan.hard_requirement,
        })
    }
}

/// Whether `RLIMIT_NPROC` counts this sandbox alone: where its user on the host is nobody else's, and since Linux 5.14,
/// which counts the processes of each user namespace. Before, the owner's other processes would count too.
fn may_limit_pids() -> bool {
    if Identity::own().uid == 0 {
        return true;
    }
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 14)
}

fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_passcred(&ours, true)?;
    Ok((ours, theirs))
}

/// Starts a process from a thread that lives as long as the run: the kernel's signal for a parent's death comes when
/// the *thread* ends that started the child (`PR_SET_PDEATHSIG` in prctl(2)).
fn spawn(mut command: Command, lifeline: OwnedFd) -> io::Result<(Child, Keeper)> {
    let (started, child) = mpsc::sync_channel(1);
    let (keeper, released) = mpsc::channel::<()>();
    std::thread::Builder::new().name("sandbox".to_owned()).stack_size(128 << 10).spawn(move || {
        let child = command.spawn();
        drop(command); // and our copy of the child's end of the channel
        let _ = started.send(child);
        let _ = released.recv(); // an error: the keeper was dropped
    })?;
    let child = child.recv().map_err(io::Error::other)??;
    Ok((child, Keeper::new(keeper, lifeline)))
}

struct Messages {
    job: Job,
    lifeline: OwnedFd,
    orders: Orders,
    files: Vec<Vec<u8>>,
}

struct Met {
    listener: TcpListener,
    processes: Processes,
    pid: u32,
    landlock: Option<u8>,
}

enum Ended {
    Judged(SandboxError),
    /// The channel closed: bubblewrap failed, and what it said is on its stderr.
    WithoutAWord,
}

impl From<SandboxError> for Ended {
    fn from(error: SandboxError) -> Self {
        Self::Judged(error)
    }
}

impl From<io::Error> for Ended {
    fn from(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::TimedOut => Self::Judged(SandboxError::TimedOut),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Self::WithoutAWord,
            io::ErrorKind::InvalidData => Self::Judged(SandboxError::Handover { why: "a message of another form" }),
            _ => Self::Judged(SandboxError::Launcher { step: "talking to the sandbox", source }),
        }
    }
}

/// Both messages, the listener, our consent, the last report, the end of the channel.
fn meet(channel: BorrowedFd<'_>, messages: &Messages, deadline: Instant) -> Result<Met, Ended> {
    let mut files = vec![wire::as_file("job", &messages.job)?];
    let lifeline = messages.lifeline.as_fd();
    for bytes in &messages.files {
        files.push(wire::in_memory("file", bytes)?);
    }
    let mut descriptors = wire::lent(&files);
    descriptors.insert(1, lifeline);
    wire::tell(channel, &"job", &descriptors)?;
    wire::tell(channel, &"orders", &[wire::as_file("orders", &messages.orders)?.as_fd()])?;

    let mut received = expect(channel, 1, deadline)?;
    let Report::Listening = report(&received)? else {
        return Err(SandboxError::Handover { why: "a report before the socket" }.into());
    };
    let (processes, pid) = sender(&received)?;
    let descriptor = received.descriptors.pop().ok_or(SandboxError::Handover { why: "no descriptor" })?;
    let listener = judge(descriptor, pid)?;
    wire::tell(channel, &"go", &[])?;

    // From here on no descriptor is taken any more.
    let Report::Enforced { landlock } = report(&expect(channel, 0, deadline)?)? else {
        return Err(SandboxError::Handover { why: "a second socket" }.into());
    };
    match wire::receive(channel, 0, Some(deadline))? {
        None => Ok(Met { listener, processes, pid, landlock }),
        Some(received) => {
            report(&received)?; // the command could not be started
            Err(SandboxError::Handover { why: "a message after the last" }.into())
        }
    }
}

fn expect(channel: BorrowedFd<'_>, descriptors: usize, deadline: Instant) -> Result<Received, Ended> {
    wire::receive(channel, descriptors, Some(deadline))?.ok_or(Ended::WithoutAWord)
}

fn report(received: &Received) -> Result<Report, Ended> {
    match serde_json::from_slice(&received.bytes) {
        Ok(Report::Failed(failure)) => Err(SandboxError::Step {
            layer: failure.layer,
            step: bubblewrap::one_line(&failure.step),
            why: bubblewrap::one_line(&failure.why),
        }
        .into()),
        Ok(report) => Ok(report),
        Err(_) => Err(SandboxError::Handover { why: "a message that is no report" }.into()),
    }
}

/// The process that sent the listener, by the kernel's word, and its parent, the sandbox's first. It waits for our
/// consent, so both numbers are still their own.
fn sender(received: &Received) -> Result<(Processes, u32), Ended> {
    let sender = received.sender.ok_or(SandboxError::Handover { why: "no sender" })?;
    let pid = Pid::from_raw(sender.pid.as_raw_nonzero().get()).ok_or(SandboxError::Handover { why: "no process" })?;
    let number = pid.as_raw_nonzero().get().cast_unsigned();
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat"))?;
    // After the name in brackets, which may hold anything: the state, then the parent.
    let parent = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(1)?.parse().ok());
    let parent = parent.and_then(Pid::from_raw).ok_or(SandboxError::Handover { why: "no parent" })?;
    if parent == rustix::process::getpid() {
        return Err(SandboxError::Handover { why: "a process without a namespace of its own" }.into());
    }
    let open = |pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from);
    Ok((Processes { first: open(parent)?, supervisor: open(pid)? }, number))
}

/// Only a TCP socket that listens at the proxy's address in a network namespace that is not ours.
fn judge(descriptor: OwnedFd, pid: u32) -> Result<TcpListener, Ended> {
    let wrong = |why| Err(SandboxError::Handover { why }.into());
    let socket = descriptor.as_fd();
    let is_tcp = sockopt::socket_domain(socket) == Ok(AddressFamily::INET)
        && sockopt::socket_type(socket) == Ok(SocketType::STREAM)
        && sockopt::socket_protocol(socket) == Ok(Some(ipproto::TCP));
    if !is_tcp {
        return wrong("no TCP socket");
    }
    if sockopt::socket_acceptconn(socket) != Ok(true) {
        return wrong("a socket that does not listen");
    }
    if is_of_our_network(socket, pid)? {
        return wrong("a socket of this network namespace");
    }
    let listener = TcpListener::from(descriptor);
    if listener.local_addr()? != PROXY.into() {
        return wrong("a socket at another address");
    }
    Ok(listener)
}

fn is_of_our_network(socket: BorrowedFd<'_>, pid: u32) -> io::Result<bool> {
    match kernel::network_of(socket) {
        Ok(cookie) => {
            let own = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
            Ok(cookie == kernel::network_of(own.as_fd())?)
        }
        // Before Linux 5.14 the process that made it has to do.
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
            let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net"));
            Ok(of(&pid.to_string())? == of("self")?)
        }
        Err(error) => Err(error),
    }
}

/// What is in a pipe, at most 4 KiB; nothing is waited for.
pub(super) fn read_some(pipe: OwnedFd) -> String {
    let mut bytes = Vec::new();
    if rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK).is_err() {
        return String::new();
    }
    let _ = std::fs::File::from(pipe).take(4096).read_to_end(&mut bytes); // what came so far will do
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Enforced {
    pub(super) fn new(group: &Group, notes: Vec<String>) -> Self {
        Self { landlock: None, limited_by: group.limited_by(), notes }
    }
}
