//! Promise: every example runs in memory and on a Redis server, and does what its first lines say.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod metrics;
mod orders;
mod printed;
mod program;
mod service;
