//! The ground floor: time, tables and wakers. It knows nothing of locks.

pub(crate) mod clock;
pub(crate) mod last_waker;
pub(crate) mod numbers;
