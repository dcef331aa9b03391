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
            let unit = unit(&manifest, Platform::here())?;
            service::uninstall(&unit, &mut manager)?;
            print_line(&format!("{} is removed", unit.name));
        }
        Service::Status { manifest } => {
            let answer = service::service_status(&unit(&manifest, Platform::here())?, &mut manager)?;
            print_line(answer.text.trim_end());
            if !answer.success {
                return Err(Exit::Silent(1).into());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn unit(manifest: &Path, platform: Platform) -> Result<Unit> {
    let admitted = settings::gate(None)?.judge(manifest, false).map_err(|refused| Exit::from(&refused))?;
    let home = std::env::home_dir().context("HOME is not set")?;
    let account = Account { home, uid: rustix::process::getuid().as_raw() };
    let agent = Agent::of(&admitted, std::env::current_exe()?, &account);
    Ok(service::unit(platform, &agent, &account)?)
}
