//! A tunnel's first bytes: whatever they are, no panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bastion_egress::fuzzing::hello(bytes));
