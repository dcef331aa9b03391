//! The supervisor's life: cycle, act, sleep, until something ends it.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::adapters::{self, Adapter};
use crate::clock;
use crate::console::Console;
use crate::cycle;
use crate::decide::{Failures, Step, decide};
use crate::outcome::diagnostic;
use crate::output_log::OutputLog;
use crate::payload::Payload;
use crate::record::{Record, SupervisorState};
use crate::settings::{Mode, Settings};
use crate::signals::{Signals, StopSignal};
use crate::state::StateDir;

/// Runs until the end; the answer is the exit status.
pub fn supervise(
    settings: &Settings,
    console: &mut Console,
    signals: &Signals,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> u8 {
    let payload = Payload::new(&settings.payload_dir);
    let mut adapter = match adapters::find(&settings.harness, &payload) {
        Ok(adapter) => adapter,
        Err(unusable) => return refuse(console, &unusable.to_string()),
    };
    if let Err(error) = payload.check_prompt() {
        return refuse(console, &format!("cannot read prompt {}: {error}", payload.prompt().display()));
    }
    let state = StateDir::new(&settings.state_dir, settings.history_limit);
    console.log = Some(OutputLog::new(state.output()));
    let code = Life { settings, state, console, signals }.live(adapter.as_mut(), env);
    console.finish();
    code
}

fn refuse(console: &mut Console, why: &str) -> u8 {
    console.say(why);
    console.finish();
    1
}

struct Life<'a> {
    settings: &'a Settings,
    state: StateDir,
    console: &'a mut Console,
    signals: &'a Signals,
}

impl Life<'_> {
    fn live(mut self, adapter: &mut dyn Adapter, env: &dyn Fn(&str) -> Option<OsString>) -> u8 {
        let settings = self.settings;
        let as_once = Settings { mode: Mode::Once, ..settings.clone() };
        let (mode, harness) = (settings.mode.name(), &settings.harness);
        let mut failures = Failures::default();
        let mut number = 0_u64;
        loop {
            number += 1;
            self.console.say(&format!("starting {mode} cycle {number} with harness {harness}"));
            self.write(Record::new(settings, number, SupervisorState::Running, clock::wall_millis()));
            let last = settings.mode == Mode::Watch && settings.max_cycles == number;
            let once = last || settings.mode == Mode::Once;
            let cycle = cycle::run(number, settings, once, adapter, self.console, self.signals, env);
            self.console.flush_log(true);
            if let Some(stop) = self.signals.stop() {
                return self.stopped(stop, number, cycle.exit);
            }
            let decision = decide(&cycle.outcome, &mut failures, if last { &as_once } else { settings });
            let result = cycle.outcome.recorded(settings.notes_limit);
            self.console.say(&decision.message);
            match decision.step {
                Step::End(code) => {
                    if last {
                        self.console.say(&format!("ending after {number} cycles"));
                    }
                    self.end(number, cycle.exit, result);
                    return code;
                }
                Step::Sleep(seconds) => {
                    if let Some(stop) = self.sleep(seconds, &cycle.outcome.reason(), number, cycle.exit, result) {
                        return self.stopped(stop, number, cycle.exit);
                    }
                }
            }
        }
    }

    /// Sleeps with a heartbeat.
    fn sleep(
        &mut self,
        seconds: u64,
        reason: &str,
        number: u64,
        exit: Option<i32>,
        result: Map<String, Value>,
    ) -> Option<StopSignal> {
        let until = clock::since_boot() + Duration::from_secs(seconds);
        let now = clock::wall_millis();
        let record = Record::new(self.settings, number, SupervisorState::Sleeping, now).with_result(exit, result);
        self.write(record.with_next(now + seconds * 1000));
        loop {
            let nap = self.settings.heartbeat.map_or(until, |every| until.min(clock::since_boot() + every));
            if let Some(stop) = self.console.sleep(nap, self.signals) {
                return Some(stop);
            }
            let left = until.saturating_sub(clock::since_boot());
            if left.is_zero() {
                return None;
            }
            let seconds = left.as_millis().div_ceil(1000);
            self.console.say(&format!("still waiting ({reason}); next cycle in {seconds}s"));
        }
    }

    fn stopped(&mut self, stop: StopSignal, number: u64, exit: Option<i32>) -> u8 {
        let name = match stop {
            StopSignal::Interrupt => "SIGINT",
            StopSignal::Terminate => "SIGTERM",
        };
        self.console.say(&format!("stopped by {name}"));
        self.end(number, exit, diagnostic("stopped", "stopped", &format!("Stopped by {name}.")));
        stop.exit_status()
    }

    fn end(&mut self, number: u64, exit: Option<i32>, result: Map<String, Value>) {
        let record = Record::new(self.settings, number, SupervisorState::Terminal, clock::wall_millis());
        self.write(record.with_result(exit, result));
    }

    /// State that can't be written is told, and is no reason to end.
    fn write(&mut self, record: Record<'_>) {
        if let Err(error) = self.state.write(&record.json()) {
            self.console.say(&format!("cannot write state: {error}"));
        }
    }
}
