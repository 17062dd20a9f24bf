//! Promise: locks mean the same in memory and on Redis.
//!
//! Every test here runs in both worlds from one source.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod body;
mod exclusive;
mod leases;
mod managers;
mod waiting;
