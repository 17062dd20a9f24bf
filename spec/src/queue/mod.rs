//! The queue of locks on one Redis server, as docs/protocol.md describes it: the server, its clients, and what may go
//! wrong between them. `#…` in a comment names the section of that page which has the rule.
//!
//! Time passes in ticks of about a second, and only when nothing is on its way: a message that takes longer, or a
//! process that stops for longer, is a fault. How long a body runs, when an acquisition begins, when a client connects
//! again and when the server notices a broken connection is open.
//!
//! The model has exclusive locks on one server. It leaves out shared kinds, calls that go together, revocations,
//! replicas, other layouts, histories and clients of other kinds. Positions of one tick are within the window of 1 ms.

#[cfg(feature = "search")]
mod canonical;
#[cfg(feature = "search")]
pub mod client;
pub mod history;
#[cfg(feature = "search")]
pub mod properties;
pub mod rules;
#[cfg(feature = "search")]
mod scenario;
pub mod server;
pub mod setting;
#[cfg(feature = "search")]
pub mod world;

#[cfg(feature = "search")]
pub use scenario::{Fault, Plan, Scenario};
