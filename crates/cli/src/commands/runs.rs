//! `bastion runs`: what was launched from this machine, and what was last heard of it.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use bastion_host::clock::{SystemClock, UtcMillis};
use bastion_host::signals::Stop;
use bastion_launch::runs::{self, Record, Run};
use bastion_launch::{Driver, LaunchError, Limits, Machine, OpenShell, Target};

use super::launch::{driver, machine};
use crate::args;
use crate::terminal::{print_line, printable, styled};

/// A list does not wait longer for a gateway.
const SOON: Duration = Duration::from_secs(10);

/// `bastion runs`.
pub(crate) fn runs(args: &args::Runs) -> Result<ExitCode> {
    let machine = machine()?;
    let stop = Stop::on_signals(|_, _| {})?; // so that the gateway's program ends with us
    match &args.command {
        None => list(&machine, args.json, &stop)?,
        Some(args::RunsCommand::Show { name, json }) => {
            let asked = driver_of(&machine, name)
                .and_then(|driver| Ok(runs::show(&machine.state_dir, name, &*driver, &SystemClock, &stop)?));
            let (run, report) = match asked {
                Ok(asked) => asked,
                Err(error) => {
                    // what was heard before is worth something while nobody answers
                    if let Ok(run) = runs::find(&machine.state_dir, name) {
                        print(&run, *json)?;
                    }
                    return Err(error);
                }
            };
            if *json {
                let history = report.as_ref().map(|report| &report.history);
                print_line(&serde_json::json!({ "run": run, "history": history }).to_string());
            } else {
                show(&run);
                for record in report.iter().flat_map(|report| &report.history) {
                    print_line(&format!("    {}", line(record)));
                }
            }
        }
        Some(args::RunsCommand::Logs { name }) => {
            let driver = driver_of(&machine, name)?;
            match runs::logs(&machine.state_dir, name, &*driver, &SystemClock, &stop)? {
                Some(text) => std::io::stdout().write_all(text.as_bytes())?,
                None => anyhow::bail!("the sandbox of {name} is gone, and its output with it"),
            }
        }
        Some(args::RunsCommand::Egress { name, denied, json }) => {
            let mut any = false;
            let kept = runs::egress(&machine.state_dir, name, &mut |line| {
                if !denied || line["decision"] == "deny" {
                    any = true;
                    print_line(&if *json { line.to_string() } else { decision(&line) });
                }
            })?;
            if !kept {
                anyhow::bail!("nothing of {name} is kept here; of a run on a gateway the gateway knows");
            }
            if !any && !json {
                print_line(if *denied { "nothing was denied" } else { "nothing went out, and nothing was denied" });
            }
        }
        Some(args::RunsCommand::Stop { name }) => {
            let driver = driver_of(&machine, name)?;
            let there = runs::stop(&machine.state_dir, name, &*driver, &SystemClock, &stop)?;
            print_line(&format!("{name} {}", if there { "is stopped" } else { "was gone already" }));
        }
        Some(args::RunsCommand::Rm { name }) => {
            match runs::find(&machine.state_dir, name) {
                Err(error @ LaunchError::File { .. }) => {
                    eprintln!("bastion: {error}: forgotten; a sandbox of that name may be left on its gateway");
                    runs::forget(&machine.state_dir, name)?;
                }
                _ => {
                    let driver = driver_of(&machine, name)?;
                    runs::rm(&machine.state_dir, name, &*driver, &SystemClock, &stop)?;
                }
            }
            print_line(&format!("{name} is removed"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn driver_of(machine: &Machine, name: &str) -> Result<Box<dyn Driver>> {
    let run = runs::find(&machine.state_dir, name)?;
    Ok(driver(&run.gateway.map_or(Target::Local, Target::Gateway), machine)?)
}

/// Lists them, each as it is now where its gateway answers soon.
fn list(machine: &Machine, json: bool, stop: &Stop) -> Result<()> {
    let (mut all, faults) = runs::list(&machine.state_dir)?;
    for fault in faults {
        eprintln!("bastion: {}", printable(&fault.to_string()));
    }
    let mut silent: Vec<String> = Vec::new();
    for run in &mut all {
        if !run.may_live() {
            continue;
        }
        let Some(gateway) = run.gateway.clone() else {
            let asked = driver(&Target::Local, machine)
                .and_then(|driver| runs::show(&machine.state_dir, &run.name, &*driver, &SystemClock, stop));
            match asked {
                Ok((now, _)) => *run = now,
                Err(error) => eprintln!("bastion: {}: {}", run.name, printable(&error.to_string())),
            }
            continue;
        };
        if silent.contains(&gateway) {
            continue;
        }
        let limits = Limits { call: SOON, ..Limits::default() };
        let asked = OpenShell::new(machine)
            .map(|driver| driver.with_limits(limits))
            .and_then(|driver| runs::show(&machine.state_dir, &run.name, &driver, &SystemClock, stop));
        match asked {
            Ok((now, _)) => *run = now,
            Err(error) => {
                eprintln!("bastion: the gateway {gateway} is not asked: {}", printable(&error.to_string()));
                silent.push(gateway);
            }
        }
    }
    if all.is_empty() && !json {
        print_line("no runs yet; launch one with: bastion launch --agent NAME \"…\"");
    }
    all.iter().try_for_each(|run| print(run, json))
}

fn print(run: &Run, json: bool) -> Result<()> {
    if json {
        print_line(&serde_json::to_string(run)?);
    } else {
        show(run);
    }
    Ok(())
}

fn show(run: &Run) {
    print_line(&styled("1", &printable(&run.name)));
    let say = |key: &str, value: &str| print_line(&format!("  {key:<10} {}", printable(value)));
    say("agent", &format!("{}, {} ({})", run.agent, run.harness, run.run_mode));
    say(
        "runs on",
        &run.gateway.clone().map_or_else(|| "this machine".to_owned(), |name| format!("the gateway {name}")),
    );
    say("started", &shown(&run.started));
    say("state", &run.state());
    if let Some(why) = &run.why {
        say("why", why);
    }
    if let Some(heard) = &run.last {
        say("heard", &format!("{}{}", shown(&heard.at), if heard.gone { "; the sandbox is gone" } else { "" }));
        if let Some(record) = &heard.record {
            say("last", &line(record));
            for (key, value) in [("next", &record.next_cycle_at), ("note", &record.notes)] {
                if let Some(value) = value {
                    say(key, value);
                }
            }
        }
    }
}

/// A line of an egress log in words. What is in it was chosen inside the sandbox.
fn decision(line: &serde_json::Value) -> String {
    let text = |key: &str| match &line[key] {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => String::new(),
        other => other.to_string(),
    };
    let place = format!("{}:{}{}", text("host"), text("port"), text("path"));
    let words = [
        text("ts"),
        text("decision"),
        text("method"),
        place,
        text("status"),
        text("reason"),
        text("fault"),
        text("rule"),
    ];
    printable(&words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("  "))
}

fn shown(time: &UtcMillis) -> String {
    format!("{:.0}", time.0)
}

fn line(record: &Record) -> String {
    let mut words = Vec::new();
    words.extend(record.recorded_at.clone());
    words.extend(record.cycle.map(|cycle| format!("cycle {cycle}")));
    words.extend(record.state.clone());
    words.extend(record.status.clone());
    words.extend(record.reason.as_ref().map(|reason| format!("({reason})")));
    words.join(" ")
}
