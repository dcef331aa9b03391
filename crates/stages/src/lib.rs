//! bastion-stages
