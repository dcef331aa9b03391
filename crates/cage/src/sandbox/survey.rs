//! Which layers does this machine have? For `bastion doctor`: nothing is started but a sandbox on trial.

use super::bubblewrap::{self, Trial};
use super::group::Group;
use super::{Finding, Identity, Layer, LimitedBy, Limits, SandboxError, State, kernel};

/// Looks at every layer of this machine.
pub fn survey() -> Vec<Finding> {
    let (namespaces, limits) = namespaces_and_limits();
    vec![namespaces, identity(), landlock(), seccomp(), limits]
}

fn namespaces_and_limits() -> (Finding, Finding) {
    let tried = || -> Result<(String, Group), SandboxError> {
        let path = bubblewrap::find()?;
        bubblewrap::judge(&path)?;
        let version = bubblewrap::version_of(&path)?;
        let trial = Trial::start(&path)?;
        let group = Group::find(&Limits::default(), trial.pid());
        trial.finish()?;
        Ok((format!("{version}, {}", path.display()), group))
    };
    match tried() {
        Ok((detail, group)) => {
            (Finding { layer: Layer::Namespaces, state: State::Enforced, detail, mend: None }, limits(&group))
        }
        Err(error) => {
            let detail = "not tried without namespaces".to_owned();
            (missing(&error), Finding { layer: Layer::Limits, state: State::Partial, detail, mend: None })
        }
    }
}

fn limits(group: &Group) -> Finding {
    let layer = Layer::Limits;
    match group.limited_by() {
        LimitedBy::Cgroup => {
            Finding { layer, state: State::Enforced, detail: "a cgroup for each run".to_owned(), mend: None }
        }
        LimitedBy::SystemdScope => {
            Finding { layer, state: State::Enforced, detail: "a systemd scope for each run".to_owned(), mend: None }
        }
        LimitedBy::RlimitsOnly => Finding {
            layer,
            state: State::Partial,
            detail: format!("rlimits alone; {}", group.missing.as_deref().unwrap_or("no cgroup")),
            mend: Some(SandboxError::Incomplete { layer, why: String::new() }.mend()),
        },
    }
}

fn identity() -> Finding {
    match Identity::choose() {
        Ok(Identity { uid, .. }) => {
            let detail = format!("uid {uid} on the host, 1000 inside");
            Finding { layer: Layer::Identity, state: State::Enforced, detail, mend: None }
        }
        Err(error) => missing(&error),
    }
}

fn landlock() -> Finding {
    let layer = Layer::Landlock;
    match kernel::landlock() {
        Some(version @ 6..) => Finding { layer, state: State::Enforced, detail: format!("ABI {version}"), mend: None },
        Some(version) => {
            let detail = format!("ABI {version}: files alone; signals and abstract sockets are left to namespaces");
            Finding { layer, state: State::Enforced, detail, mend: None }
        }
        None => Finding {
            layer,
            state: State::Partial,
            detail: "this kernel has none; files are fenced by mounts alone".to_owned(),
            mend: Some(SandboxError::Incomplete { layer, why: String::new() }.mend()),
        },
    }
}

fn seccomp() -> Finding {
    let layer = Layer::Seccomp;
    if bubblewrap::kernel_says("/proc/sys/kernel/seccomp/actions_avail", "kill_process") {
        Finding { layer, state: State::Enforced, detail: "filters".to_owned(), mend: None }
    } else {
        let mend = SandboxError::Step { layer, step: String::new(), why: String::new() }.mend();
        Finding { layer, state: State::Missing, detail: "this kernel has no filters".to_owned(), mend: Some(mend) }
    }
}

fn missing(error: &SandboxError) -> Finding {
    Finding { layer: error.layer(), state: State::Missing, detail: error.to_string(), mend: Some(error.mend()) }
}
