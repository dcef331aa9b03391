//! A CONNECT line's target and a Host header: one spelling or a refusal.
#![no_main]

use bastion_egress::host::{Authority, Host};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(to) = Authority::connect(text) {
        assert_eq!(Authority::connect(&to.to_string()), Ok(to.clone()));
        assert_eq!(Authority::header(text, 1), Ok(to));
    }
    if let Ok(host) = Host::parse(text) {
        assert!(host.as_str().is_ascii() && !host.as_str().contains(['\0', '@', '%', '\\', ' ']));
        assert_eq!(Host::parse(host.as_str()), Ok(host));
    }
});
