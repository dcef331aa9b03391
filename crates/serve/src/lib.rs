//! bastion-serve
