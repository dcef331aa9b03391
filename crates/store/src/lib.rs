//! bastion-store
