//! Landlock: no file system and no network, the kernel's own second opinion beside the system call filter.
//!
//! Source: `Documentation/userspace-api/landlock.rst` of the Linux kernel.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr, RulesetCreated,
    RulesetError, RulesetStatus, Scope,
};

use crate::CageError;

/// The newest interface that these rules were checked against. A kernel that knows less enforces what it knows.
pub(crate) const NEWEST: ABI = ABI::V6;

/// Rules that allow nothing.
pub(crate) fn rules() -> Result<RulesetCreated, CageError> {
    let build = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()
    };
    build().map_err(refused)
}

/// Puts the calling thread, and every thread it starts, under `rules`. Returns the kernel's version of the interface,
/// `None` where the kernel has no Landlock at all. A kernel that has it and enforces nothing is an error.
pub(crate) fn enforce(rules: RulesetCreated) -> Result<Option<u8>, CageError> {
    let status = rules.restrict_self().map_err(refused)?;
    match status.landlock {
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => Ok(None),
        LandlockStatus::Available { effective_abi, .. } if status.ruleset != RulesetStatus::NotEnforced => {
            Ok(u8::try_from(effective_abi as i32).ok())
        }
        LandlockStatus::Available { .. } => {
            Err(CageError::Landlock { source: "it is available and enforced nothing".into() })
        }
    }
}

fn refused(source: RulesetError) -> CageError {
    CageError::Landlock { source: Box::new(source) }
}
