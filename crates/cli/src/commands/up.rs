//! `bastion up`: everything for a person who has nothing yet.
//!
//! It makes what is missing (CA, identities, manifest) and never touches a manifest that is there. Folders are swept
//! one at a time; endpoints answer from the state of the last whole sweep meanwhile.

mod machine;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use bastion_host::clock::{Clock, SystemClock};
use bastion_host::files;
use bastion_host::process::ProcessIdentity;
use bastion_host::signals::{Stop, WakingClock};
use bastion_serve::{BindAddr, Endpoint, NoticeSink, Running, ServeConfig};
use bastion_stages::Pipeline;
use bastion_sweep::{Ended, Event, Job, Report, Runner, Sweep, SweepSettings, exit_status};
use bastion_trust::{Gate, LivePolicy, sign};

pub(crate) use machine::Machine;

use super::sweep::{stop_on_signals, warn};
use crate::args;
use crate::registry::{self, Agent};
use crate::settings;
use crate::terminal::{Bars, Style, Teller, print_line, styled};
use crate::words::Exit;

/// The owner's certificate beside the manifest.
pub(crate) const OWNER_CERT: &str = "owner.pem";

/// One folder of `up`.
struct Site {
    folder: PathBuf,
    agent: Agent,
    /// Whether this run of `up` wrote the manifest.
    new: bool,
}

/// `bastion up FOLDER…`.
pub(crate) fn up(args: &args::Up) -> Result<ExitCode> {
    let style = Style::from(&args.output);
    let bind: BindAddr = args.bind.parse().map_err(|error| Exit::Usage(format!("--bind: {error}")))?;
    let mut runner = settings::stages(args.accept_empty, args.uncaged)?;
    runner.vaults.make_in_home = true;
    // From here on a signal lets what was begun be finished: no manifest is left without its signature.
    let stop = stop_on_signals()?;
    let machine = Machine::ensure(&SystemClock)?;
    let gate = Arc::new(settings::gate(None)?);
    let mut folders = args.folders.clone();
    let mut seen = HashSet::new();
    folders.retain(|folder| seen.insert(folder.canonicalize().unwrap_or_else(|_| folder.clone())));
    let sites = folders.iter().map(|folder| prepare(folder, &machine, &gate)).collect::<Result<Vec<_>>>()?;
    if !args.once {
        sites.iter().try_for_each(refuse_second)?;
    }
    if style == Style::Words {
        sites.iter().filter(|site| site.new).for_each(introduce);
    }
    let endpoints = if args.once { Vec::new() } else { serve(&sites, &machine, &gate, &bind)? };
    let turn = Mutex::new(());
    let ended: Vec<Result<u8>> = std::thread::scope(|threads| {
        let loops: Vec<_> = sites
            .iter()
            .enumerate()
            .map(|(at, site)| {
                let loop_ = Loop {
                    site,
                    gate: &gate,
                    stop: &stop,
                    turn: &turn,
                    once: args.once,
                    style,
                    several: sites.len() > 1,
                    endpoint: endpoints.get(at).map(Running::reachable_address),
                };
                let runner = runner.clone();
                threads.spawn(move || loop_.run(runner))
            })
            .collect();
        if !args.once {
            keep(&sites, &stop);
        }
        loops.into_iter().map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    endpoints.into_iter().for_each(Running::stop);
    let mut worst = stop.requested().map_or(0, |signal| signal.exit_status());
    for status in ended {
        let status = status?;
        if worst == 0 {
            worst = status;
        }
    }
    if worst == 0 { Ok(ExitCode::SUCCESS) } else { Err(Exit::Silent(worst).into()) }
}

/// Stays until a signal comes, and renews meanwhile: the keys stay, so every signature holds under the new certificates.
fn keep(sites: &[Site], stop: &Stop) {
    while !stop.wait(Duration::from_secs(3600)) {
        let renew = || {
            let machine = Machine::ensure(&SystemClock)?;
            sites
                .iter()
                .try_for_each(|site| machine.refresh_certificate(&site.agent.manifest.with_file_name(OWNER_CERT)))
        };
        if let Err(error) = renew() {
            eprintln!("bastion: the certificates can't be renewed: {error:#}");
        }
    }
}

/// Makes the manifest where there is none, passes the gate, and notes the agent in the registry.
fn prepare(folder: &Path, machine: &Machine, gate: &Gate) -> Result<Site> {
    let folder = folder.canonicalize().with_context(|| format!("{}", folder.display()))?;
    if !folder.is_dir() {
        return Err(Exit::Usage(format!("{} is no folder", folder.display())).into());
    }
    let manifest = folder.join(".agent/manifest.yaml");
    let new = std::fs::symlink_metadata(&manifest).is_err();
    if new {
        super::manifest::create(&folder, machine.host())?;
        machine.write_certificate(&manifest.with_file_name(OWNER_CERT))?;
        sign::sign(gate, &manifest, Path::new(OWNER_CERT), machine.signer_key())?;
    } else {
        machine.refresh_certificate(&manifest.with_file_name(OWNER_CERT))?;
    }
    let admitted = gate.judge(&manifest, false).map_err(|refused| Exit::from(&refused))?;
    warn(&admitted);
    let known = registry::known(admitted.path())?;
    let agent = Agent {
        id: admitted.manifest().id.to_string(),
        owner: admitted.manifest().owner_host.clone(),
        manifest: admitted.path().to_owned(),
        out: admitted.default_out(),
        // Another `up` may serve this folder right now.
        address: known.as_ref().and_then(|agent| agent.address),
        process: known.and_then(|agent| agent.process),
    };
    agent.save()?;
    Ok(Site { folder, agent, new })
}

/// A folder has one endpoint of `up`: a second one would take the first one's place in the registry.
fn refuse_second(site: &Site) -> Result<()> {
    match site.agent.endpoint() {
        Some(at) if site.agent.process.as_ref() != Some(&ProcessIdentity::current()) => {
            let pid = site.agent.process.as_ref().map_or(0, |process| process.pid);
            Err(Exit::Held(format!("{} is served already at {at} by process {pid}", site.folder.display())).into())
        }
        _ => Ok(()),
    }
}

fn introduce(site: &Site) {
    print_line(&format!(
        "{} is now the agent `{}`: {}\n  What is prepared lies in {}. A program that syncs this folder would receive it: plain text of\n  \
         every file among it. If that is not wanted, exclude .agent there, or use `bastion sweep` and `bastion serve` with\n  --out in the place of `up`. Serve a folder from one machine only.",
        site.folder.display(),
        site.agent.id,
        site.agent.manifest.display(),
        site.agent.out.display(),
    ));
}

fn serve(sites: &[Site], machine: &Machine, gate: &Arc<Gate>, bind: &BindAddr) -> Result<Vec<Running>> {
    let start = |site: &Site| {
        files::create_private_dir(&site.agent.out).with_context(|| format!("{}", site.agent.out.display()))?;
        let config = ServeConfig {
            out: site.agent.out.clone(),
            bind: bind.clone(),
            port_file: Some(site.agent.port_file()?),
            tls: machine.tls()?,
            notices: NoticeSink::stderr(),
        };
        let policy = LivePolicy::new(Arc::clone(gate), site.agent.manifest.clone(), false);
        let running =
            Endpoint::start(config, policy, settings::search_embedder(&site.agent.out)?, Arc::new(SystemClock))?;
        let address = Some(running.reachable_address().ip());
        Agent { address, process: Some(ProcessIdentity::current()), ..site.agent.clone() }.save()?;
        Ok(running)
    };
    sites.iter().map(start).collect()
}

/// The sweep of one folder.
struct Loop<'a> {
    site: &'a Site,
    gate: &'a Gate,
    stop: &'a Stop,
    turn: &'a Mutex<()>,
    once: bool,
    style: Style,
    several: bool,
    endpoint: Option<std::net::SocketAddr>,
}

impl Loop<'_> {
    fn run(&self, runner: bastion_stages::Settings) -> Result<u8> {
        let wanted = SweepSettings {
            manifest: self.site.agent.manifest.clone(),
            out: None,
            once: self.once,
            allow_unsigned: false,
        };
        let clock = WakingClock::new(self.stop);
        let sweep = Sweep { gate: self.gate, clock: &clock, stop: self.stop, settings: &wanted };
        let pipeline = Pipeline::new(runner, Arc::new(Bars::new(self.style)), Arc::new(SystemClock) as Arc<dyn Clock>);
        let mut turns = InTurn { pipeline, turn: self.turn };
        let mut teller = Teller::new(self.style, self.several.then(|| self.site.agent.id.clone()));
        let mut told = false;
        let ended = sweep.run(&mut turns, &mut |event: &Event<'_>| {
            teller.tell(event);
            if matches!(event, Event::Finished { .. }) && !std::mem::replace(&mut told, true) {
                self.explain();
            }
        });
        match &ended {
            Ok(Ended::Refused { code, detail }) => {
                eprintln!("bastion: {}", Exit::refused(&self.site.agent.manifest, *code, detail));
            }
            Err(error) => eprintln!("bastion: {}: {error}", self.site.agent.id),
            Ok(_) => {}
        }
        Ok(exit_status(&ended))
    }

    /// The exact commands, once the first sweep is over.
    fn explain(&self) {
        let (Some(endpoint), Style::Words, None) = (self.endpoint, self.style, self.stop.requested()) else { return };
        let folder = shell_word(&self.site.folder.display().to_string());
        let until =
            jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().saturating_add(jiff::Span::new().days(30));
        let at = if self.several { format!(" --endpoint {endpoint}") } else { String::new() };
        let lines = [
            format!("serving at {endpoint} as {} until Ctrl-C; from a second terminal:", self.site.agent.owner),
            format!("  {}", styled("1", &format!("bastion search \"words to find\"{at}"))),
            format!("  bastion cards{at}"),
            "let another host search (its certificate: bastion ca issue HOST), and take that back:".to_owned(),
            format!("  bastion grant {folder} HOST --ops search --until {until}"),
            format!("  bastion revoke {folder} HOST"),
            "what stays visible: names of people, places and organisations in the text; file names but for values in them".to_owned(),
        ];
        lines.iter().for_each(|line| print_line(line));
    }
}

/// `text` as one word of a POSIX shell.
fn shell_word(text: &str) -> String {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+,:@%=".contains(&byte));
    if plain && !text.is_empty() { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Several folders share two cores and one terminal: one run at a time.
struct InTurn<'a> {
    pipeline: Pipeline,
    turn: &'a Mutex<()>,
}

impl Runner for InTurn<'_> {
    fn run(&mut self, job: &Job<'_>, report: &mut Report<'_>) -> std::ops::ControlFlow<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.pipeline.run(job, report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_command_can_be_pasted() {
        assert_eq!(shell_word("/home/a/Documents"), "/home/a/Documents");
        assert_eq!(shell_word("/home/a b/it's"), r"'/home/a b/it'\''s'");
    }
}
