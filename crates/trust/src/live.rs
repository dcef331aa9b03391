//! What does the manifest allow right now? For the endpoint, which asks on each request.
//!
//! The few files that the judgement rests on are looked at each time, and the manifest is read; where any of them changed everything passes the
//! gate again, and dates are judged by the clock now. There is no last good policy to fall back to.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Refused;
use crate::gate::{Admitted, Gate, read_manifest};
use crate::roots;

/// A manifest that is judged again whenever it is asked for.
pub struct LivePolicy {
    gate: Arc<Gate>,
    manifest: PathBuf,
    allow_unsigned: bool,
    last: Mutex<Option<Arc<Admitted>>>,
}

impl LivePolicy {
    /// The policy that the manifest at this path is. Nothing is read yet.
    pub fn new(gate: Arc<Gate>, manifest: PathBuf, allow_unsigned: bool) -> Self {
        let manifest = std::path::absolute(&manifest).unwrap_or(manifest);
        Self { gate, manifest, allow_unsigned, last: Mutex::new(None) }
    }

    /// The manifest as the gate judges it now.
    ///
    /// # Errors
    /// The gate's refusal, also where the same manifest passed before.
    pub fn current(&self) -> Result<Arc<Admitted>, Arc<Refused>> {
        let known = self.last().clone();
        if let Some(known) = known.filter(|known| self.still_holds(known)) {
            return Ok(known);
        }
        match self.gate.judge(&self.manifest, self.allow_unsigned) {
            Ok(admitted) => {
                let admitted = Arc::new(admitted);
                *self.last() = Some(Arc::clone(&admitted));
                Ok(admitted)
            }
            Err(refused) => {
                *self.last() = None;
                Err(Arc::new(refused))
            }
        }
    }

    /// The gate that judges.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Arc<Admitted>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether every byte that the judgement rested on is the same, and its dates still hold.
    fn still_holds(&self, known: &Admitted) -> bool {
        let now = self.gate.now();
        let evidence = &known.evidence;
        let signer_holds = evidence.signer.as_ref().is_none_or(|signer| {
            signer.window.holds_at(now)
                && signer.cert.is_still()
                && self.gate.anchors.load().is_ok_and(|anchors| Arc::ptr_eq(&anchors, &signer.anchors))
        });
        signer_holds
            && evidence.floor.allows(now)
            && self.gate.floor.is_still(&evidence.floor)
            && read_manifest(&self.manifest)
                .is_ok_and(|(path, bytes)| path == known.path() && bytes == evidence.manifest)
            && roots::resolve(known.manifest(), known.path()).is_ok_and(|roots| roots == known.roots())
    }
}
