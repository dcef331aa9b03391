//! A document of any format, without the cage around its reader: what crashes here costs a file there.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bastion_extract::fuzzing::read("file", bytes));
