//! Helpers for the rules' own tests.

/// Kind and text of each value that a scan finds.
pub(crate) fn found(text: &str) -> Vec<(&'static str, &str)> {
    crate::scan(text).into_iter().map(|span| (span.kind.as_str(), &text[span.start..span.end])).collect()
}

/// Asserts that a scan finds nothing.
#[track_caller]
pub(crate) fn nothing(text: &str) {
    assert_eq!(found(text), [], "{text}");
}

/// Asserts that a scan finds `value` as `kind`, and nothing else.
#[track_caller]
pub(crate) fn only(text: &str, kind: &str, value: &str) {
    let found = found(text);
    assert_eq!(found.len(), 1, "{text}: {found:?}");
    assert_eq!((found[0].0, found[0].1), (kind, value), "{text}");
}
