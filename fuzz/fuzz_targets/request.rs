//! A request's head and its query: one reading or a refusal, and never one that ends behind the buffer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bastion_serve::fuzzing::request(bytes));
