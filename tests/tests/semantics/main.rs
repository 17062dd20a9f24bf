//! Promise: locks mean the same on every store.
//!
//! Every test here runs on each store from one source.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod body;
mod exclusive;
mod leases;
mod managers;
mod waiting;
