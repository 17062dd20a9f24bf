//! What is measured on every database, beside bare statements on the same server: free keys, and a hot key.

pub(crate) mod cycles;
pub(crate) mod database;
pub(crate) mod hot;
mod processor;
mod rounds;
