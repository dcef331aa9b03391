//! bastion-extract
