//! `bastion-supervisor`, the main process of an agent's sandbox.
#![allow(clippy::disallowed_methods)] // this is where settings are read and the process ends

#[cfg(target_os = "linux")]
mod program;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    program::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("bastion-supervisor runs inside sandboxes, which are Linux");
    std::process::ExitCode::FAILURE
}
