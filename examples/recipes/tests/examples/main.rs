//! Promise: every example runs in memory and on a Redis server, and does what its first lines say.
#![allow(clippy::unwrap_used, reason = "these are tests")]

/// For the tests in it, which the guide shows.
#[allow(dead_code, reason = "the rest runs as a program")]
#[path = "../../axum_orders.rs"]
mod axum_orders;
mod metrics;
mod orders;
mod printed;
mod program;
mod service;
