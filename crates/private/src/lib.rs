//! bastion-private
