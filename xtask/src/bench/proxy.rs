//! What the egress proxy costs: time, throughput, and memory, against the same host without it.

use std::process::Command;

use anyhow::{Result, ensure};

use super::tools::release;

/// The example measures in processes of its own: a client, the proxy, and a host.
pub(crate) fn proxy(megabytes: u64) -> Result<()> {
    let load = release("examples", "proxy_load")?;
    let output = Command::new(&load).arg(megabytes.to_string()).output()?;
    ensure!(output.status.success(), "proxy_load: {}", String::from_utf8_lossy(&output.stderr));
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        println!("proxy: {line}");
    }
    Ok(())
}
