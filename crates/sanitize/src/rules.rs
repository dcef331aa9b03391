//! Which rules are there, and by which name does a store know that they have changed?

use crate::{Kind, card, crypto, email, iban, national, net, personal, phone, secret, vat};

/// Names the version of the rules. It changes whenever the output for some text can change; a test holds it to a sample.
pub const FINGERPRINT: &str = "rules-1";

/// A rule, for documentation and `doctor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleInfo {
    /// The name that spans carry.
    pub name: &'static str,
    /// What the rule finds.
    pub kind: Kind,
    /// The standard or public description that the shape and check are from.
    pub source: &'static str,
}

impl RuleInfo {
    pub(crate) const fn new(name: &'static str, kind: Kind, source: &'static str) -> Self {
        Self { name, kind, source }
    }
}

/// All rules, grouped by family.
pub fn rules() -> &'static [RuleInfo] {
    static RULES: std::sync::LazyLock<Vec<RuleInfo>> = std::sync::LazyLock::new(|| {
        let families = [
            email::RULES,
            phone::RULES,
            iban::RULES,
            card::RULES,
            net::RULES,
            secret::RULES,
            crypto::RULES,
            vat::RULES,
            personal::RULES,
        ];
        let ids = national::ids().iter().map(|id| RuleInfo::new(id.rule, Kind::NationalId, id.source));
        families.into_iter().flatten().copied().chain(ids).collect()
    });
    &RULES
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_sourced() {
        let names: BTreeSet<_> = rules().iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), rules().len());
        assert!(rules().iter().all(|rule| !rule.source.is_empty()));
        for kind in Kind::ALL {
            assert!(rules().iter().any(|rule| rule.kind == kind), "{kind}");
        }
    }
}
