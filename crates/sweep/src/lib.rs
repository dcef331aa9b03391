//! bastion-sweep
