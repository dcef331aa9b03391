//! A policy and requests to it: read or refused with a place, and never TRACE, CONNECT or an address inside by a name.
#![no_main]

use bastion_egress::host::Authority;
use bastion_egress::policy::{Policy, Source};
use bastion_egress::target::Target;

libfuzzer_sys::fuzz_target!(|parts: (&str, &str, &str, &str)| {
    let (yaml, at, method, target) = parts;
    let source = Source { shown: "policy".into(), bytes: yaml.as_bytes() };
    for policy in [Policy::read(std::slice::from_ref(&source), None), Policy::read(&[], Some(&source))] {
        let (Ok(policy), Ok(to), Ok(target)) = (policy, Authority::connect(at), Target::parse(target)) else { continue };
        let verdict = policy.request(&to, method, &target, false);
        assert!(!verdict.allowed || verdict.endpoint.is_some_and(|endpoint| endpoint.covers(&to)));
        assert!(!policy.request(&to, "TRACE", &target, false).allowed);
        assert!(policy.admits_address(&to, std::net::Ipv4Addr::UNSPECIFIED.into()).is_err());
        policy.connect(&to);
        policy.plain_request(&to, method, &target, true);
    }
});
