//! `bastion-supervisor report`: status, history and the end of the output as one JSON object.
//!
//! Everything read lies in the agent's reach, so all of it is capped, and a record that does not parse is left out.

use std::path::Path;

use serde_json::{Value, json};

use crate::files;
use crate::output_log::KEPT;
use crate::state::{HISTORY, LARGEST_HISTORY, OUTPUT, STATUS};

/// Bytes of output that a report shows without `--log`.
pub const SHORT: u64 = 16 << 10;
/// A status that is larger was not written by us.
const LARGEST_STATUS: u64 = 1 << 20;

/// The report on the state in `dir`; `log` asks for all the output that is kept.
pub fn report(dir: &Path, log: bool) -> Value {
    let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok().filter(Value::is_object);
    let status = files::read_whole(&dir.join(STATUS), LARGEST_STATUS).ok().and_then(|bytes| parse(&bytes));
    let history = files::read_whole(&dir.join(HISTORY), LARGEST_HISTORY).unwrap_or_default();
    let history: Vec<Value> = history.split(|byte| *byte == b'\n').filter_map(parse).collect();
    let shown = if log { KEPT } else { SHORT };
    let (output, kept) = files::read_end(&dir.join(OUTPUT), shown).unwrap_or_default();
    json!({
        "schema_version": 1,
        "status": status,
        "history": history,
        "output": String::from_utf8_lossy(&output),
        "output_bytes": kept,
    })
}
