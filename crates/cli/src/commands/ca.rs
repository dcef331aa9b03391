//! `bastion ca`: a small certificate authority for those who have none.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use bastion_host::clock::{Clock, SystemClock};
use bastion_host::files;
use bastion_trust::ca::{self as authority, Ca, Purpose};

use crate::args;
use crate::settings;
use crate::terminal::print_line;

/// `bastion ca …`.
pub(crate) fn ca(args: args::Ca) -> Result<ExitCode> {
    let (state, now) = (settings::state_dir()?, SystemClock.now());
    match args {
        args::Ca::Init => {
            files::create_private_dir(&state).with_context(|| format!("{}", state.display()))?;
            let ca = Ca::init(&state, now)?;
            print_line(&format!(
                "{} is this machine's root, until {:.0}; give it to the hosts that should trust it",
                ca.root_path().display(),
                ca.not_after()
            ));
        }
        args::Ca::Issue { host, csr, owner, to } => {
            let csr = csr
                .map(|path| files::read_capped(&path, 64 << 10).with_context(|| format!("{}", path.display())))
                .transpose()?;
            let purpose = if owner { Purpose::Owner } else { Purpose::Client };
            let ca = Ca::open(&state, now)?;
            let issued = ca.issue(&host, csr.as_deref(), purpose, now)?;
            if let Some(key) = &issued.key_pem {
                write(&to, &format!("{host}.key"), key, true)?;
            }
            write(&to, &format!("{host}.pem"), &issued.cert_pem, false)?;
            print_line(&format!(
                "until {:.0}; the host also needs the root: {}",
                issued.record.not_after,
                ca.root_path().display()
            ));
        }
        args::Ca::Request { host, to } => {
            let request = authority::request(&host)?;
            write(&to, &format!("{host}.key"), &request.key_pem, true)?;
            write(&to, &format!("{host}.csr"), &request.csr_pem, false)?;
            print_line(&format!(
                "the key stays here; send {host}.csr, and get {host}.pem back: bastion ca issue {host} --csr {host}.csr"
            ));
        }
        args::Ca::List(args) => {
            for record in Ca::open(&state, now)?.list()? {
                let state = match record.revoked {
                    Some(at) => format!("revoked {at:.0}"),
                    None if record.not_after < now => "expired".to_owned(),
                    None => "valid".to_owned(),
                };
                if args.json {
                    print_line(&serde_json::to_string(&record)?);
                } else {
                    let purpose = format!("{:?}", record.purpose).to_lowercase();
                    print_line(&format!(
                        "{}  {:<30} {purpose:<7} until {:.0}  {state}",
                        record.serial, record.host, record.not_after
                    ));
                }
            }
        }
        args::Ca::Renew { which, to } => {
            let issued = Ca::open(&state, now)?.renew(&which, now)?;
            write(&to, &format!("{}.pem", issued.record.host), &issued.cert_pem, false)?;
            print_line(&format!("until {:.0}", issued.record.not_after));
        }
        args::Ca::Revoke { which } => {
            for record in Ca::open(&state, now)?.revoke(&which, now)? {
                print_line(&format!("{}  {} is revoked", record.serial, record.host));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes one PEM file. A key that is there is never written over.
fn write(dir: &Path, name: &str, pem: &str, secret: bool) -> Result<()> {
    let path = dir.join(name);
    let written = if secret {
        files::write_new(&path, pem.as_bytes(), files::PRIVATE_FILE)
    } else {
        files::replace(&path, pem.as_bytes(), 0o644)
    };
    written.with_context(|| format!("{}", path.display()))?;
    print_line(&format!("{}", path.display()));
    Ok(())
}
