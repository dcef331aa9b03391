//! bastion-cage
