//! Promise: locks are shared with the clients that services have locked with before, while they are moved one by one.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod beside;
mod names;
mod plain;
mod postgres;
mod setnx;
mod setnx_values;
