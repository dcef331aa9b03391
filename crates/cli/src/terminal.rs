//! What a person sees: progress while it runs, a summary when it is done, colours only on a terminal.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bastion_stages::Progress;
use bastion_sweep::{Event, StageReport, StageStatus};
use bastion_trust::manifest::Stage;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Output;

/// How much is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Words for a person.
    Words,
    /// One line of JSON per stage.
    Json,
    /// Errors alone.
    Quiet,
}

impl From<&Output> for Style {
    fn from(output: &Output) -> Self {
        match output {
            Output { json: true, .. } => Self::Json,
            Output { quiet: true, .. } => Self::Quiet,
            _ => Self::Words,
        }
    }
}

/// Progress bars on a terminal; nothing anywhere else.
pub(crate) struct Bars {
    bar: Mutex<Option<ProgressBar>>,
    shown: bool,
}

impl Bars {
    pub(crate) fn new(style: Style) -> Self {
        Self { bar: Mutex::new(None), shown: style == Style::Words && std::io::stderr().is_terminal() }
    }

    fn with(&self, act: impl FnOnce(&mut Option<ProgressBar>)) {
        if self.shown {
            act(&mut self.bar.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl Progress for Bars {
    fn begin(&self, stage: Stage, total: Option<u64>) {
        self.with(|bar| {
            let template = match total {
                Some(_) => "{prefix:<9} {bar:24} {human_pos}/{human_len} {per_sec:>12} {wide_msg}",
                None => "{prefix:<9} {spinner} {wide_msg}",
            };
            let new = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(12));
            if let Ok(style) = ProgressStyle::with_template(template) {
                new.set_style(style);
            }
            new.set_prefix(stage.as_str());
            new.enable_steady_tick(Duration::from_millis(120));
            *bar = Some(new);
        });
    }

    fn item(&self, name: &str) {
        self.with(|bar| {
            if let Some(bar) = bar {
                bar.set_message(printable(name));
                bar.inc(1);
            }
        });
    }

    fn end(&self) {
        self.with(|bar| {
            if let Some(bar) = bar.take() {
                bar.finish_and_clear();
            }
        });
    }
}

/// A text that can't move the cursor or change colours: names come from outside.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|char| if char.is_control() || is_bidi_control(char) { '\u{fffd}' } else { char }).collect()
}

/// As [`printable`], with line breaks and tabs kept: for text of several lines.
pub(crate) fn printable_text(text: &str) -> String {
    text.chars()
        .map(|char| {
            if matches!(char, '\n' | '\t') || !(char.is_control() || is_bidi_control(char)) { char } else { '\u{fffd}' }
        })
        .collect()
}

/// Characters that reorder what stands around them (Unicode Standard Annex 9).
fn is_bidi_control(char: char) -> bool {
    matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
}

/// `text` in an ANSI style, where standard output is a terminal and colours are wanted (<https://no-color.org>).
pub(crate) fn styled(code: &str, text: &str) -> String {
    let wanted = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Prints what a sweep tells, and keeps the last run's stages for the summary.
pub(crate) struct Teller {
    style: Style,
    /// Shown before each line where several agents share the terminal.
    name: Option<String>,
    stages: Vec<StageReport>,
}

impl Teller {
    pub(crate) fn new(style: Style, name: Option<String>) -> Self {
        Self { style, name, stages: Vec::new() }
    }

    /// Takes one event.
    pub(crate) fn tell(&mut self, event: &Event<'_>) {
        match event {
            Event::Started { .. } => self.stages.clear(),
            Event::StageDone(report) => {
                self.stages.push((*report).clone());
                if self.style == Style::Json {
                    let record = bastion_sweep::StageRecord::from(*report);
                    print_line(&serde_json::to_string(&record).unwrap_or_default());
                }
            }
            Event::Finished { record, .. } => {
                if self.style == Style::Words {
                    self.summary(record.seconds, record.error.as_deref());
                } else if let Some(error) = &record.error {
                    eprintln!("bastion: {}{error}", self.prefix());
                }
            }
            Event::NotRecorded(words) => eprintln!("bastion: {}{words}", self.prefix()),
            Event::Held(holder) => eprintln!("bastion: {}waiting for the sweep of {holder}", self.prefix()),
            Event::Sleeping { until } => {
                if self.style == Style::Words {
                    print_line(&format!("{}next sweep {until:.0}", self.prefix()));
                }
            }
        }
    }

    fn prefix(&self) -> String {
        self.name.as_ref().map_or_else(String::new, |name| format!("[{name}] "))
    }

    fn summary(&self, seconds: f64, error: Option<&str>) {
        let prefix = self.prefix();
        for report in &self.stages {
            print_line(&format!("{prefix}{}", stage_line(report)));
        }
        let hidden = merged(self.stages.iter().map(|report| report.details.get("hidden")));
        if !hidden.is_empty() {
            print_line(&format!("{prefix}hidden in new text: {}", listed(&hidden)));
        }
        match error {
            None => print_line(&format!("{prefix}{} in {seconds:.1} s", styled("32", "done"))),
            Some(error) => eprintln!("{prefix}{} after {seconds:.1} s: {}", styled("31", "failed"), printable(error)),
        }
    }
}

fn merged<'a>(maps: impl Iterator<Item = Option<&'a serde_json::Value>>) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (kind, count) in maps.flatten().filter_map(|value| value.as_object()).flatten() {
        *all.entry(kind.clone()).or_default() += count.as_u64().unwrap_or(0);
    }
    all
}

/// One stage in one line: what is new, and what was left out and why.
fn stage_line(report: &StageReport) -> String {
    let mut line = format!("{:<9}", report.stage.as_str());
    if let Some(counts) = &report.counts {
        line.push_str(&format!(" {} seen", counts.seen));
        for (count, word) in [(counts.new, "new"), (counts.changed, "changed"), (counts.removed, "removed")] {
            if count > 0 {
                line.push_str(&format!(", {count} {word}"));
            }
        }
        for (map, word) in [(&counts.skipped, "skipped"), (&counts.failed, "failed")] {
            let total: u64 = map.values().sum();
            if total > 0 {
                line.push_str(&format!(", {total} {word} ({})", listed(map)));
            }
        }
    }
    if report.status.ends_run() {
        line.push_str(&format!(" {}", styled("31", report.status.as_str())));
    }
    if report.status == StageStatus::Skipped {
        let reason = report.details.get("reason").and_then(|reason| reason.as_str()).unwrap_or("nothing to do");
        line.push_str(&format!(" skipped: {reason}"));
    }
    if !report.hosts.is_empty() {
        line.push_str(&format!("; text sent to {}", report.hosts.join(", ")));
    }
    line.push_str(&format!("  {:.1} s", report.seconds));
    line
}

fn listed(counts: &BTreeMap<String, u64>) -> String {
    counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Prints a line; a reader that has gone away is no error.
pub(crate) fn print_line(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_drive_the_terminal() {
        assert_eq!(printable("a\x1b[31m\u{202e}b\n"), "a\u{fffd}[31m\u{fffd}b\u{fffd}");
        assert_eq!(printable_text("a\n\x07b"), "a\n\u{fffd}b");
    }
}
