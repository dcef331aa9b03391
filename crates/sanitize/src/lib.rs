//! bastion-sanitize
