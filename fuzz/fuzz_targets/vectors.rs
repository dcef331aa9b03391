//! A file of vectors whose checksum is right.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bastion_retrieval::fuzzing::vectors(bytes));
