//! bastion
fn main() {}
