//! What a run finds around it: the plan that the cage makes a sandbox of.

use std::path::PathBuf;

use bastion_cage::sandbox::{self, Identity, Mount, Plan, SandboxError};
use bastion_egress::Ca;

use super::environment;
use super::job::Job;
use super::layout::{Layout, SANDBOX};
use super::outside;
use crate::error::LaunchError;
use crate::payload::{MOUNT, SUPERVISOR};

/// The plan of a run.
pub(crate) fn plan(job: &Job, layout: &Layout, ca: &Ca, loopback: bool) -> Plan {
    let mut mounts = vec![
        Mount::ReadOnly { source: layout.payload(), destination: MOUNT.into() },
        Mount::Writable { source: layout.sandbox(), destination: SANDBOX.into() },
    ];
    mounts.extend(job.mounts.iter().map(|bound| {
        let (source, destination) = (bound.source.clone(), bound.destination.clone());
        if bound.writable { Mount::Writable { source, destination } } else { Mount::ReadOnly { source, destination } }
    }));
    let own = sandbox::Limits::default();
    let limits = sandbox::Limits {
        memory: job.limits.memory.or(own.memory),
        pids: job.limits.pids.unwrap_or(own.pids),
        cpu_millis: job.limits.cpu_millis.or(own.cpu_millis),
        tmp_size: job.limits.tmp_size.unwrap_or(own.tmp_size),
        ..own
    };
    Plan {
        program: layout.payload().join("runtime/bastion-supervisor"),
        mounts,
        files: Vec::new(),
        ca_bundle: outside::bundle(ca, job.more_roots.as_deref()),
        env: environment::of(&job.env, loopback),
        command: vec![SUPERVISOR.to_owned()],
        cwd: PathBuf::from(SANDBOX),
        hostname: job.name.clone(),
        limits,
        hard_requirement: job.hard_requirement,
        identity: Identity { uid: job.identity.0, gid: job.identity.1 },
    }
}

/// A sandbox that can't be made as it has to be is a refusal; the cage says what would mend it.
pub(crate) fn refused(error: SandboxError) -> LaunchError {
    LaunchError::refused("a sandbox on this machine", format!("can't be made: {error}; {}", error.mend()))
}
