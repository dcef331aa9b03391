//! docs/sweep.md holds every field of every record with its type, and this holds the records to it.

use std::collections::{BTreeMap, BTreeSet};

use bastion_host::clock::UtcMillis;
use bastion_host::lock::{LockRecord, ReclaimedBecause};
use bastion_host::process::ProcessIdentity;
use bastion_sweep::{
    Counts, GateRecord, LockReclaimed, RefusalRecord, RunRecord, RunState, StageRecord, StageReport, StageStatus,
};
use bastion_trust::manifest::Stage;
use jiff::Timestamp;
use serde_json::{Value, json};

const DOC: &str = include_str!("../../../../docs/sweep.md");

/// The tables below the headings of the third rank: record → field → type.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut records: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut heading = String::new();
    for line in DOC.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            heading = title.trim_matches('`').to_owned();
        } else if let Some(row) = line.strip_prefix("| `") {
            let mut cells = row.split(" | ");
            let field = cells.next().unwrap().trim_end_matches('`').to_owned();
            let kind = cells.next().unwrap().to_owned();
            assert!(records.entry(heading.clone()).or_default().insert(field, kind).is_none(), "{heading}: {row}");
        }
    }
    records
}

/// Holds `examples` to the table `record`: every field is documented with its type, every field that must be there is,
/// and every documented field occurs in some example.
fn holds(record: &str, examples: &[Value]) {
    let documented = documented();
    let fields = documented.get(record).unwrap_or_else(|| panic!("docs/sweep.md has no table for {record}"));
    let mut seen = BTreeSet::new();
    for example in examples {
        for (name, value) in example.as_object().unwrap() {
            let kind = fields.get(name).unwrap_or_else(|| panic!("{record}: `{name}` is not documented"));
            assert!(is(kind, value), "{record}: `{name}` is documented as {kind} and written as {value}");
            seen.insert(name.clone());
        }
        for (name, kind) in fields {
            assert!(kind.ends_with("absent") || example.get(name).is_some(), "{record}: `{name}` is absent");
        }
    }
    assert_eq!(seen, fields.keys().cloned().collect(), "{record}: fields that no example has");
}

fn is(kind: &str, value: &Value) -> bool {
    kind.split(" or ").any(|kind| match kind {
        "absent" => false,
        "null" => value.is_null(),
        "string" => value.is_string(),
        "time" => value.as_str().is_some_and(|text| {
            text.len() == 24 && text.ends_with('Z') && text.as_bytes()[19] == b'.' && text.parse::<Timestamp>().is_ok()
        }),
        "integer" => value.is_u64(),
        "number" => value.is_f64(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "map of integer" => value.as_object().is_some_and(|map| map.values().all(Value::is_u64)),
        "array of object" => value.as_array().is_some_and(|all| all.iter().all(Value::is_object)),
        "array of string" => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
        other => panic!("docs/sweep.md has a type that nothing is: {other}"),
    })
}

fn time() -> UtcMillis {
    UtcMillis("2026-01-02T03:04:05.678Z".parse().unwrap())
}

fn json<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap()
}

fn there_and_back<T>(value: &T)
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    assert_eq!(&serde_json::from_str::<T>(&serde_json::to_string(value).unwrap()).unwrap(), value);
}

fn gates() -> [GateRecord; 3] {
    [
        GateRecord::Signed { cn: "owner.example".into(), cert: "owner.pem".into(), chained: true },
        GateRecord::Bypassed { bypassed: "--allow-unsigned".into() },
        GateRecord::Refused { refused: RefusalRecord { code: "expired".into(), detail: "it ended".into() } },
    ]
}

fn full_stage() -> StageReport {
    let by_reason = BTreeMap::from([("too_large".to_owned(), 2)]);
    let counts =
        Counts { seen: 9, new: 1, changed: 2, unchanged: 3, removed: 1, skipped: by_reason.clone(), failed: by_reason };
    let mut report =
        StageReport::new(Stage::Sanitize, StageStatus::Stopped, 1.0).with_counts(counts).with_error("late");
    report.hosts = vec!["pii.example".into()];
    report.details.insert("hidden".into(), json!({"EMAIL": 3}));
    report
}

fn reclaimed() -> [LockReclaimed; 2] {
    [
        LockReclaimed { pid: Some(7), taken: Some(time()), because: ReclaimedBecause::Gone },
        LockReclaimed { pid: None, taken: None, because: ReclaimedBecause::Age },
    ]
}

fn bare_run(gate: GateRecord) -> RunRecord {
    RunRecord {
        v: 1,
        started: time(),
        finished: time(),
        seconds: 2.0,
        manifest: "/docs/.agent/manifest.yaml".into(),
        out: "/docs/.agent".into(),
        manifest_id: None,
        manifest_digest: None,
        gate,
        stages: Vec::new(),
        ok: true,
        error: None,
        allow_unsigned: false,
        lock_reclaimed: None,
    }
}

#[test]
fn a_run_is_as_documented() {
    let mut full = bare_run(gates()[0].clone());
    full.manifest_id = Some("notes".into());
    full.manifest_digest = Some("00".into());
    full.stages = vec![StageRecord::from(&full_stage())];
    full.error = Some("walk failed".into());
    full.lock_reclaimed = Some(reclaimed()[0].clone());
    let runs = [full, bare_run(gates()[1].clone()), bare_run(gates()[2].clone())];
    holds("run.jsonl", &runs.each_ref().map(json));
    runs.iter().for_each(there_and_back);
}

#[test]
fn a_gate_is_as_documented() {
    let [signed, bypassed, refused] = gates();
    holds("gate, signed", &[json(&signed)]);
    holds("gate, bypassed", &[json(&bypassed)]);
    holds("gate, refused", &[json(&refused)]);
    holds("refused", &[json(&refused)["refused"].clone()]);
}

#[test]
fn a_stage_is_as_documented() {
    let bare = StageReport::new(Stage::Walk, StageStatus::Failed, 0.0);
    let stages = [StageRecord::from(&full_stage()), StageRecord::from(&bare)];
    holds("stages[]", &stages.each_ref().map(json));
    stages.iter().for_each(there_and_back);
    for status in [StageStatus::Ok, StageStatus::Failed, StageStatus::Stopped, StageStatus::Skipped] {
        assert_eq!(json(&status), json!(status.as_str()));
        assert!(DOC.contains(&format!("`{}`", status.as_str())));
    }
}

#[test]
fn a_reclaimed_lock_is_as_documented() {
    holds("lock_reclaimed", &reclaimed().each_ref().map(json));
}

#[test]
fn the_state_is_as_documented() {
    let state = RunState {
        last_started: time(),
        last_finished: time(),
        last_ok: false,
        last_error: Some("walk failed".into()),
        consecutive_failures: 1,
        sweep: "hourly".into(),
        next_due: Some(time()),
        pid: 7,
        runs_this_process: 2,
    };
    let quiet = RunState { last_error: None, next_due: None, ..state.clone() };
    holds("run.state.json", &[json(&state), json(&quiet)]);
    assert!(json(&quiet)["last_error"].is_null() && json(&quiet)["next_due"].is_null());
    there_and_back(&state);
    there_and_back(&quiet);
}

#[test]
fn the_lock_is_as_documented() {
    let named = ProcessIdentity {
        pid: 7,
        start_ticks: Some(8),
        boot_id: Some("b".into()),
        machine_id: Some("m".into()),
        pid_namespace: Some("pid:[1]".into()),
    };
    let unnamed = ProcessIdentity { pid: 7, start_ticks: None, boot_id: None, machine_id: None, pid_namespace: None };
    let locks = [LockRecord { process: named, taken: time() }, LockRecord { process: unnamed, taken: time() }];
    holds("sweep.lock", &locks.each_ref().map(json));
    locks.iter().for_each(there_and_back);
}
