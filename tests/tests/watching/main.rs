//! Promise: what happens to a lock can be watched from outside.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod events;
mod health;
mod logins;
mod meter;
mod metrics;
mod recorder;
mod spans;
