//! Which form of a credential may outlive a cycle?
//!
//! A gateway hands a sandbox placeholders, which its proxy swaps for the credential. A placeholder with a revision
//! (`openshell:resolve:env:v123_NAME`) is good until the next refresh; the alias without one is always current.

const SCHEME: &str = "openshell:resolve:env:";

/// The value, or the alias of the current credential where the value is a placeholder with a revision.
pub(super) fn lasting(value: &str) -> String {
    let alias = value.strip_prefix(SCHEME).and_then(|name| {
        let (revision, name) = name.strip_prefix('v')?.split_once('_')?;
        let numbered = !revision.is_empty() && revision.bytes().all(|byte| byte.is_ascii_digit());
        (numbered && !name.is_empty()).then(|| format!("{SCHEME}{name}"))
    });
    alias.unwrap_or_else(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_revision_is_taken_out() {
        for (value, expected) in [
            ("openshell:resolve:env:v123_TOKEN", "openshell:resolve:env:TOKEN"),
            ("openshell:resolve:env:v1_V2_TOKEN", "openshell:resolve:env:V2_TOKEN"),
            ("openshell:resolve:env:TOKEN", "openshell:resolve:env:TOKEN"),
            ("openshell:resolve:env:vault_TOKEN", "openshell:resolve:env:vault_TOKEN"),
            ("openshell:resolve:env:v1_", "openshell:resolve:env:v1_"),
            ("v1_TOKEN", "v1_TOKEN"),
        ] {
            assert_eq!(lasting(value), expected);
        }
    }
}
