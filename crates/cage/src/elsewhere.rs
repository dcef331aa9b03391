//! The cage where there is none: every platform but Linux. It refuses at once.

use std::convert::Infallible;

use crate::{CageError, Caged, Profile};

/// A cage that can't be made here.
#[derive(Debug)]
pub struct Prepared(Infallible);

/// A cage that can't be made here.
#[derive(Debug)]
pub struct Restricted(Infallible);

/// Refuses: [`CageError::Unsupported`].
pub fn prepare(_profile: &Profile) -> Result<Prepared, CageError> {
    Err(CageError::Unsupported)
}

impl Prepared {
    /// Never reached.
    pub fn enforce(self) -> Result<Caged, CageError> {
        match self.0 {}
    }

    /// Never reached.
    pub fn restrict(self) -> Result<Restricted, CageError> {
        match self.0 {}
    }
}

impl Restricted {
    /// Never reached.
    pub fn seal(self) -> Result<Caged, CageError> {
        match self.0 {}
    }
}
