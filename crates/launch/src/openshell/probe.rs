//! Which program is this, and what can it do? Asked once, by `--version` and `--help`.

use std::path::Path;
use std::time::Duration;

use bastion_host::signals::Stop;

use super::call::{Answer, Call};
use crate::driver::Session;
use crate::error::LaunchError;
use crate::secret::Masker;
use crate::text::{plain, tail};

/// What differs between the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abilities {
    /// `profile import` and not `provider profile import`.
    pub(super) profile_command: bool,
    /// `sandbox create --detach`.
    pub(super) detach: bool,
}

impl Abilities {
    /// The words before `import`, `export` and `update`.
    pub(super) fn profile(self) -> &'static [&'static str] {
        if self.profile_command { &["profile"] } else { &["provider", "profile"] }
    }
}

/// Asks the program.
pub(super) fn ask(program: &Path, limit: Duration, stop: &Stop) -> Result<Abilities, LaunchError> {
    let masker = Masker::default();
    let mut quiet = |_: crate::driver::Notice<'_>| {};
    let mut session = Session::new(stop, &masker, &mut quiet);
    let mut say = |word: &str| -> Result<Answer, LaunchError> {
        let mut call = Call::new(program, limit);
        call.words.push(word.to_owned());
        call.ok(&mut session)
    };
    let version = String::from_utf8_lossy(&say("--version")?.stdout).into_owned();
    let help = String::from_utf8_lossy(&say("--help")?.stdout).into_owned();
    let number = number(&version).ok_or_else(|| {
        let said = tail(&plain(version.trim()), 80);
        LaunchError::refused(
            program.display().to_string(),
            format!("does not tell its version (`{said}`); is it the OpenShell program?"),
        )
    })?;
    Ok(abilities(number, &help))
}

fn abilities(version: (u32, u32), help: &str) -> Abilities {
    let listed = |name: &str| help.lines().any(|line| line.split_whitespace().next() == Some(name));
    // where the help lists commands it is believed, else the version is
    let newer = version >= (0, 1);
    let profile_command = if listed("sandbox") { listed("profile") } else { newer };
    Abilities { profile_command, detach: newer || help.contains("--detach") }
}

/// The first `N.N` of a line such as `openshell 0.0.110`.
fn number(text: &str) -> Option<(u32, u32)> {
    text.split_whitespace().find_map(|word| {
        let mut parts = word.trim_start_matches('v').split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.split(['-', '+']).next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_out_of_what_is_printed() {
        assert_eq!(number("openshell 0.0.110\n"), Some((0, 0)));
        assert_eq!(number("openshell-cli v0.1.0-rc.2 (abc)"), Some((0, 1)));
        assert_eq!(number("1.2"), Some((1, 2)));
        assert_eq!(number("hello there"), None);
    }

    #[test]
    fn the_help_decides_and_else_the_version() {
        let old = "Commands:\n  provider  Manage\n  sandbox  Manage\n";
        let new = "Commands:\n  profile  Manage\n  sandbox  Manage\n";
        assert_eq!(abilities((0, 0), old), Abilities { profile_command: false, detach: false });
        assert_eq!(abilities((0, 1), new), Abilities { profile_command: true, detach: true });
        assert_eq!(abilities((0, 0), new), Abilities { profile_command: true, detach: false });
        assert_eq!(abilities((0, 2), "?"), Abilities { profile_command: true, detach: true });
    }
}
