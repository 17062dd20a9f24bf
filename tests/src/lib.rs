//! What the tests stand on: real servers, a faulty network, child processes and a witness of overlaps.
//!
//! Everything here panics with a clear message when it cannot do its work, since that fails the test that asked.
#![allow(
    clippy::missing_panics_doc,
    reason = "a panic is how test support reports"
)]

mod body;
mod fixtures;
mod line;
mod monitor;
mod net;
mod process;
mod proxy;
mod register;
mod server;
pub mod torture;
mod worker;

pub use body::{Polls, Pulse, begin, boottime};
pub use fixtures::{eventually, unique, within};
pub use monitor::Monitor;
pub use proxy::{Direction, Proxy};
pub use register::{Register, Section};
pub use server::{RedisServer, RedisServerBuilder};
pub use worker::Worker;
