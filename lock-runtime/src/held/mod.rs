//! The state of a holder: the lease, the guard, and the body that runs only during the lease.

pub(crate) mod asked;
pub(crate) mod body;
pub(crate) mod confirmation;
pub(crate) mod current;
mod downgrading;
pub(crate) mod guard;
pub(crate) mod hold;
pub(crate) mod home;
mod issuing;
pub(crate) mod lease;
pub(crate) mod running;
