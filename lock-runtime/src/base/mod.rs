//! The ground floor: clock, tables and wakers. Nothing here knows of locks.

pub(crate) mod clock;
pub(crate) mod last_waker;
pub(crate) mod numbers;
