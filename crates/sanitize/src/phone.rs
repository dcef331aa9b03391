//! stub
use crate::{rules::RuleInfo, scanner::{Hit, Spot}};
pub(crate) const RULES: &[RuleInfo] = &[];
pub(crate) fn find(_spot: &Spot, _hits: &mut Vec<Hit>) {}
