//! How a sweep tells a terminal what it is at.

use bastion_trust::Stage;

/// Told of every step of a run. Called from many threads; must not block.
pub trait Progress: Send + Sync {
    /// A stage begins. `total` is the number of items to do, where that is known.
    fn begin(&self, stage: Stage, total: Option<u64>);
    /// One item is done: its name, and nothing of its text.
    fn item(&self, name: &str);
    /// The stage is over.
    fn end(&self);
}
