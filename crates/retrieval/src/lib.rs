//! bastion-retrieval
