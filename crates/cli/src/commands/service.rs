//! `bastion service`: the sweep as a service of the owner's account.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use bastion_sweep::service::{self, Account, Agent, Platform, SystemManager, Unit};

use crate::args::{self, Service};
use crate::settings;
use crate::terminal::print_line;
use crate::words::Exit;

/// `bastion service install|uninstall|status MANIFEST`.
pub(crate) fn service(args: Service) -> Result<ExitCode> {
    let mut manager = SystemManager;
    match args {
        Service::Install { manifest, print, platform } => {
            let platform = platform.map_or_else(Platform::here, |platform| match platform {
                args::Platform::Systemd => Platform::Systemd,
                args::Platform::Launchd => Platform::Launchd,
                args::Platform::Schtasks => Platform::TaskScheduler,
            });
            let unit = unit(&manifest, platform)?;
            if print {
                print_line(unit.text.trim_end());
                return Ok(ExitCode::SUCCESS);
            }
            service::install(&unit, &mut manager)?;
            print_line(&format!(
                "{} is installed: {}; its settings: {}",
                unit.name,
                unit.path.display(),
                unit.env_file.display()
            ));
        }
        Service::Uninstall { manifest } => {
            let unit = known_unit(&manifest)?;
            service::uninstall(&unit, &mut manager)?;
            print_line(&format!("{} is removed", unit.name));
        }
        Service::Status { manifest } => {
            let answer = service::service_status(&known_unit(&manifest)?, &mut manager)?;
            print_line(answer.text.trim_end());
            if !answer.success {
                return Err(Exit::Silent(1).into());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn unit(manifest: &Path, platform: Platform) -> Result<Unit> {
    let admitted = settings::gate(None)?
        .judge(&crate::registry::manifest_of(manifest), false)
        .map_err(|refused| Exit::from(&refused))?;
    let account = account()?;
    let agent = Agent::of(&admitted, std::env::current_exe()?, &account);
    Ok(service::unit(platform, &agent, &account)?)
}

fn account() -> Result<Account> {
    let home = std::env::home_dir().context("HOME is not set")?;
    Ok(Account { home, uid: rustix::process::getuid().as_raw() })
}

/// The unit of a manifest that need not verify any more: a service can always be looked at and removed.
fn known_unit(manifest: &Path) -> Result<Unit> {
    let path =
        crate::registry::manifest_of(manifest).canonicalize().with_context(|| format!("{}", manifest.display()))?;
    let bytes = bastion_host::files::read_capped(&path, 1 << 20).with_context(|| format!("{}", path.display()))?;
    let parsed = bastion_trust::parse(&bytes).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    let account = account()?;
    let agent =
        Agent { id: parsed.manifest().id.clone(), program: std::env::current_exe()?, manifest: path, out: None };
    Ok(service::unit(Platform::here(), &agent, &account)?)
}
