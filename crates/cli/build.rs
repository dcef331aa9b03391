//! Builds the sandbox's main process, a static program, and says where it is, so that it can be put into `bastion`.
//!
//! It can't be a dependency: it is another program, for any Linux and not for this machine's libraries alone. One folder
//! beside the profiles' own holds it, so that it is built once for all of them.
#![allow(clippy::expect_used, clippy::panic, clippy::disallowed_methods)] // a build has nobody but its user to tell

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let workspace = here.ancestors().nth(2).expect("the crate lies in the workspace");
    for input in ["Cargo.toml", "Cargo.lock", "crates/supervisor", "crates/cage"] {
        println!("cargo::rerun-if-changed={}", workspace.join(input).display());
    }
    println!("cargo::rerun-if-env-changed=BASTION_SUPERVISOR");
    // One that was built elsewhere, for packagers.
    let program = match env::var_os("BASTION_SUPERVISOR") {
        Some(given) => PathBuf::from(given),
        None => build(workspace),
    };
    println!("cargo::rustc-env=BASTION_SUPERVISOR={}", program.display());
}

fn build(workspace: &Path) -> PathBuf {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    // <target>/[triple/]<profile>/build/<crate>/out
    let target_dir = out.ancestors().nth(4).expect("cargo's layout").join("supervisor");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    // musl gives the smaller program that starts sooner; glibc is what every toolchain for this machine has.
    let musl = format!("{arch}-unknown-linux-musl");
    let triple = if is_installed(&musl) { musl } else { format!("{arch}-unknown-linux-gnu") };
    let built = Command::new(env::var_os("CARGO").expect("cargo sets it"))
        // The flag is for the target alone and not for what runs in the build, so the target is named.
        .args(["build", "--quiet", "--package", "bastion-supervisor", "--profile", "supervisor", "--target", &triple])
        .arg("--target-dir")
        .arg(&target_dir)
        .current_dir(workspace)
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static")
        .env_remove("RUSTC_WORKSPACE_WRAPPER") // clippy's: it would check and not build
        .status();
    assert!(built.is_ok_and(|status| status.success()), "bastion-supervisor does not build");
    target_dir.join(triple).join("supervisor/bastion-supervisor")
}

/// Whether the compiler has this target's standard library.
fn is_installed(triple: &str) -> bool {
    let rustc = env::var_os("RUSTC").expect("cargo sets it");
    let asked = Command::new(rustc).args(["--print", "target-libdir", "--target", triple]).output();
    asked.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}
