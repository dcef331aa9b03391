//! Prints the median time, in milliseconds, from a plan to the end of `true` in a sandbox: `sandbox_start SUPERVISOR RUNS`.
#![allow(clippy::disallowed_methods)] // a measurement has no settings to come in by

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use bastion_cage::sandbox::{Identity, Limits, Mount, Plan};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let program = PathBuf::from(words.next().ok_or("which supervisor?")?);
    let runs: usize = words.next().ok_or("how many runs?")?.parse()?;
    let dir = std::env::temp_dir().join(format!("sandbox-start-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    let identity = Identity::choose()?;
    std::os::unix::fs::chown(&dir, Some(identity.uid), Some(identity.gid))?;
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let plan = Plan {
            program: program.clone(),
            mounts: vec![Mount::Writable { source: dir.clone(), destination: "/sandbox".into() }],
            files: Vec::new(),
            ca_bundle: Vec::new(),
            env: vec![("PATH".into(), "/usr/bin".into())],
            command: vec!["/usr/bin/true".into()],
            cwd: "/sandbox".into(),
            hostname: "bench".into(),
            limits: Limits::default(),
            hard_requirement: false,
            identity,
        };
        let start = Instant::now();
        let status = plan.prepare()?.start()?.wait()?;
        times.push(start.elapsed());
        if !status.success() {
            return Err(format!("true ended with {status}").into());
        }
    }
    std::fs::remove_dir(&dir)?;
    times.sort();
    println!("{:.2}", times[times.len() / 2].as_secs_f64() * 1e3);
    Ok(())
}
