//! One transition, as `status.json` and `history.jsonl` hold it.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::clock::rfc3339;
use crate::settings::Settings;

/// What the supervisor is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SupervisorState {
    /// A cycle runs.
    Running,
    /// Between cycles.
    Sleeping,
    /// It has ended, or is about to.
    Terminal,
}

/// A record; the fields are those of the contract, in its order.
#[derive(Debug, Serialize)]
pub struct Record<'a> {
    schema_version: u8,
    recorded_at: String,
    agent_id: &'a str,
    harness: &'a str,
    run_mode: &'static str,
    cycle: u64,
    supervisor_state: SupervisorState,
    harness_exit_code: Option<i32>,
    result: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cycle_at: Option<String>,
}

impl<'a> Record<'a> {
    /// A record of cycle `cycle`, written at `now` (milliseconds since 1970).
    pub fn new(settings: &'a Settings, cycle: u64, state: SupervisorState, now: u64) -> Self {
        Self {
            schema_version: 1,
            recorded_at: rfc3339(now),
            agent_id: &settings.agent_id,
            harness: &settings.harness,
            run_mode: settings.mode.name(),
            cycle,
            supervisor_state: state,
            harness_exit_code: None,
            result: Map::new(),
            next_cycle_at: None,
        }
    }

    /// With what came of the cycle.
    pub fn with_result(self, exit: Option<i32>, result: Map<String, Value>) -> Self {
        Self { harness_exit_code: exit, result, ..self }
    }

    /// With the time of the next cycle, in milliseconds since 1970.
    pub fn with_next(self, at: u64) -> Self {
        Self { next_cycle_at: Some(rfc3339(at)), ..self }
    }

    /// Compact JSON, one line without its end.
    pub fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}
