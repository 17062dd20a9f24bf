//! The ground floor: clock, tables, wakers and turns. Nothing here knows of locks.

pub(crate) mod agenda;
#[cfg(feature = "redis")]
pub(crate) mod bell;
pub(crate) mod block_on;
pub(crate) mod clock;
pub(crate) mod give_way;
pub(crate) mod last_waker;
pub(crate) mod numbers;
pub(crate) mod sync;
#[cfg(test)]
pub(crate) mod wakes;
