//! A manifest: read, or refused with a place in it. What is read keeps its digest when it is read again.
#![no_main]

use bastion_trust::manifest::parse;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(parsed) = parse(bytes) {
        let again = parse(bytes).map(|again| again.digest());
        assert_eq!(again.ok(), Some(parsed.digest()));
    }
});
