//! The driver: a thread that owns the backend and everything in flight, so that a body
//! that blocks its runtime does not starve the renewals, and a caller that is
//! cancelled does not interrupt the protocol.

mod adaptive_spin;
mod at_work;
mod delivery;
mod ended;
mod engine;
mod limits;
mod mailbox;
mod observers;
mod op;
mod operations;
mod polling;
#[cfg(feature = "testing")]
mod task;
mod thread;
mod wake_flag;
mod watchdog;

#[cfg(all(test, feature = "redis"))]
pub(crate) use delivery::Pile;
pub(crate) use limits::Limits;
pub(crate) use mailbox::Mailbox;
pub(crate) use op::Op;
#[cfg(all(test, feature = "redis"))]
pub(crate) use operations::Operations;
#[cfg(feature = "testing")]
pub(crate) use task::spawn;
pub(crate) use thread::start;
