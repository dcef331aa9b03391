//! The deeds, and the program that tries them.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::OnceLock;

use bastion_cage::{Profile, ProgramProfile, prepare, prepare_program};
use rustix::process::Pid;

const MEMORY: u64 = 512 << 20;

/// A deed does something in `folder` and says whether it worked.
type Deed = fn(&Path) -> bool;

/// Each works outside and must fail inside.
const FORBIDDEN: &[(&str, Deed)] = &[
    ("open_a_file", |folder| std::fs::File::open(folder.join("there")).is_ok()),
    ("open_a_device", |_| std::fs::File::open("/dev/null").is_ok()),
    ("list_a_folder", |folder| std::fs::read_dir(folder).is_ok()),
    ("look_at_a_file", |folder| std::fs::metadata(folder.join("there")).is_ok()),
    ("make_a_file", |folder| std::fs::File::create(folder.join("new")).is_ok()),
    ("make_a_folder", |folder| std::fs::create_dir(folder.join("new folder")).is_ok()),
    ("rename_a_file", |folder| std::fs::rename(folder.join("there"), folder.join("elsewhere")).is_ok()),
    ("remove_a_file", |folder| std::fs::remove_file(folder.join("doomed")).is_ok()),
    ("make_a_tcp_socket", |_| std::net::TcpListener::bind("127.0.0.1:0").is_ok()),
    ("make_a_udp_socket", |_| std::net::UdpSocket::bind("127.0.0.1:0").is_ok()),
    ("make_a_socket_pair", |_| std::os::unix::net::UnixStream::pair().is_ok()),
    ("make_a_pipe", |_| std::io::pipe().is_ok()),
    ("start_a_program", |_| Command::new("/bin/true").status().is_ok()),
    ("start_a_thread", |_| std::thread::Builder::new().spawn(|| ()).is_ok()),
    ("signal_the_parent", |_| rustix::process::test_kill_process(parent()).is_ok()),
    ("make_executable_memory", |_| memmap2::MmapMut::map_anon(4096).is_ok_and(|map| map.make_exec().is_ok())),
    ("take_more_memory", |_| Vec::<u8>::new().try_reserve_exact(1 << 30).is_ok()),
    ("change_a_limit", |_| {
        let limit = rustix::process::Rlimit { current: Some(4), maximum: Some(4) };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).is_ok()
    }),
    ("leave_the_folder", |_| std::env::set_current_dir("/").is_ok()),
    ("read_the_environment_of_the_parent", |_| {
        std::fs::read(format!("/proc/{}/environ", parent().as_raw_nonzero())).is_ok()
    }),
];

/// Each must work inside too.
const ALLOWED: &[(&str, Deed)] = &[
    ("use_memory", |_| vec![1u8; 64 << 20].iter().all(|byte| *byte == 1)),
    ("know_the_time", |_| std::time::Instant::now().elapsed().as_secs() < 60),
    ("hash", |_| std::collections::HashMap::from([(1, 2)]).contains_key(&1)),
    ("survive_a_panic", |_| {
        std::panic::set_hook(Box::new(|_| {}));
        std::panic::catch_unwind(|| panic!("on purpose")).is_err()
    }),
    ("sleep", |_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        true
    }),
];

/// The parent, asked for before the cage is closed.
static PARENT: OnceLock<Pid> = OnceLock::new();

fn parent() -> Pid {
    *PARENT.get().unwrap()
}

/// Of the forbidden deeds, those that the program's cage forbids too; its one folder is another than the deed's.
const FORBIDDEN_TO_PROGRAMS: &[&str] = &[
    "open_a_file",
    "list_a_folder",
    "make_a_file",
    "make_a_folder",
    "rename_a_file",
    "remove_a_file",
    "make_a_tcp_socket",
    "make_a_udp_socket",
    "make_a_socket_pair",
    "signal_the_parent",
    "take_more_memory",
    "read_the_environment_of_the_parent",
];

/// What a program must be able to do in its own folder.
const ALLOWED_TO_PROGRAMS: &[&str] = &[
    "open_a_file",
    "list_a_folder",
    "make_a_file",
    "make_a_folder",
    "rename_a_file",
    "remove_a_file",
    "start_a_program",
];

pub(crate) fn main() -> ExitCode {
    PARENT.set(rustix::process::getppid().unwrap()).unwrap();
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["free", deed, folder] => exit(find(deed)(Path::new(folder))),
        ["caged", deed, folder] => {
            // From here on nothing can be opened, not even to say why.
            cage();
            exit(find(deed)(Path::new(folder)))
        }
        ["program", own_folder, deed, folder] => {
            let profile = ProgramProfile {
                memory: MEMORY,
                processor_seconds: 10,
                file_size: 1 << 20,
                readable: Vec::new(),
                writable: Some(own_folder.into()),
            };
            prepare_program(&profile).unwrap().enforce().unwrap();
            exit(find(deed)(Path::new(folder)))
        }
        ["caged-abort"] => {
            cage();
            std::process::abort()
        }
        ["caged-linger"] => {
            cage();
            std::thread::sleep(std::time::Duration::from_secs(600));
            ExitCode::SUCCESS
        }
        // Starts a caged child that holds our output pipe, and goes.
        ["parent"] => {
            #[expect(clippy::zombie_processes, reason = "that it is left behind is the point")]
            let _child = Command::new(std::env::current_exe().unwrap()).arg("caged-linger").spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(300));
            ExitCode::SUCCESS
        }
        _ => run(args.iter().find(|arg| !arg.starts_with('-'))),
    }
}

fn cage() {
    let caged = prepare(&Profile { memory: MEMORY, open_files: 8 }).unwrap().enforce().unwrap();
    assert!(caged.landlock().is_none_or(|version| version > 0));
}

fn exit(worked: bool) -> ExitCode {
    if worked { ExitCode::SUCCESS } else { ExitCode::from(3) }
}

fn find(name: &str) -> Deed {
    FORBIDDEN.iter().chain(ALLOWED).find(|(deed, _)| *deed == name).expect("a known deed").1
}

fn run(filter: Option<&String>) -> ExitCode {
    let mut failed = 0;
    let mut check = |name: &str, test: &dyn Fn() -> Result<(), String>| {
        if filter.is_some_and(|filter| !name.contains(filter.as_str())) {
            return;
        }
        match test() {
            Ok(()) => println!("test {name} ... ok"),
            Err(why) => {
                println!("test {name} ... FAILED: {why}");
                failed += 1;
            }
        }
    };
    for (deed, _) in FORBIDDEN {
        check(&format!("caged_cannot_{deed}"), &|| {
            expect(tried(&["free"], deed), true, "outside")?;
            expect(tried(&["caged"], deed), false, "inside")
        });
    }
    for (deed, _) in ALLOWED {
        check(&format!("caged_can_{deed}"), &|| expect(tried(&["caged"], deed), true, "inside"));
    }
    for deed in FORBIDDEN_TO_PROGRAMS {
        check(&format!("program_cannot_{deed}"), &|| {
            let own = tempfile::tempdir().unwrap();
            expect(tried(&["program", own.path().to_str().unwrap()], deed), false, "inside")
        });
    }
    for deed in ALLOWED_TO_PROGRAMS {
        check(&format!("program_can_{deed}"), &|| {
            let own = furnished();
            let path = own.path().to_str().unwrap();
            let status = itself().args(["program", path, deed, path]).stdout(Stdio::null()).status().unwrap();
            expect(status, true, "inside")
        });
    }
    check("caged_can_abort", &|| {
        let status = itself().arg("caged-abort").status().unwrap();
        if status.signal() == Some(6) { Ok(()) } else { Err(format!("{status}")) }
    });
    check("caged_dies_with_its_parent", &dies_with_its_parent);
    if !crate::sandbox::run(filter) {
        failed += 1;
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn expect(status: ExitStatus, worked: bool, place: &str) -> Result<(), String> {
    match (status.code(), worked) {
        (Some(0), true) | (Some(3), false) => Ok(()),
        _ => Err(format!("{place}: {status}, expected it to {}", if worked { "work" } else { "fail" })),
    }
}

fn itself() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn tried(how: &[&str], deed: &str) -> ExitStatus {
    let folder = furnished();
    itself().args(how).arg(deed).arg(folder.path()).stdout(Stdio::null()).status().unwrap()
}

fn furnished() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("there"), "x").unwrap();
    std::fs::write(folder.path().join("doomed"), "x").unwrap();
    folder
}

/// The child of a process that has gone holds the pipe open, unless it is dead too.
fn dies_with_its_parent() -> Result<(), String> {
    let mut parent = itself().arg("parent").stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = parent.stdout.take().unwrap();
    parent.wait().unwrap();
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = pipe.read_to_end(&mut Vec::new());
        let _ = done.send(());
    });
    ended.recv_timeout(std::time::Duration::from_secs(20)).map_err(|_| "it lives on".to_owned())
}
