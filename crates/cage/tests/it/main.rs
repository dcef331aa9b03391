//! The promises of the cage, each tried from the inside and, as a control, from the outside.
//!
//! A process that has caged itself can't be used for anything else, so this program runs itself again for each deed:
//! once free, where the deed has to work, and once caged, where it has to fail. For the sandbox it is everything: the
//! launcher, the stage, the first program inside and the one that tries to get out.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(target_os = "linux")]
mod deeds;
#[cfg(target_os = "linux")]
mod probes;
#[cfg(target_os = "linux")]
mod sandbox;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use bastion_cage::sandbox::{INIT_ARGUMENT, STAGE, init, stage};
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [STAGE, ..] => stage(),
        [INIT_ARGUMENT] => init(),
        ["probe", name, args @ ..] => probes::main(name, args),
        ["launcher", folder] => sandbox::launcher(folder),
        ["sandbox", filter @ ..] => sandbox::main(filter),
        _ => deeds::main(),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    assert!(bastion_cage::prepare(&bastion_cage::Profile { memory: 1 << 30, open_files: 8 }).is_err());
    println!("SKIPPED: there is no cage on this platform");
}
