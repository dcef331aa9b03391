//! PEM files of certificates, revocation lists and keys, and what is in them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bastion_trust::fuzzing::pem(bytes));
