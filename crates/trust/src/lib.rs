//! bastion-trust
