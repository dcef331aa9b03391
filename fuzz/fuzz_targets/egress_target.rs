//! A request target: canonical text parsed again is itself, and no dot segment is ever in it.
#![no_main]

use bastion_egress::target::Target;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(target) = Target::parse(text) else { return };
    let again = Target::parse(target.wire());
    assert!(again.is_ok_and(|again| again == target));
    assert!(target.wire().bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(target.path().split('/').all(|segment| segment != "." && segment != ".."));
    assert!(!target.path().contains("//") && !target.path().contains('\\'));
});
