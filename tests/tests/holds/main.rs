//! Promise: how long a lock is held at least and at most, and what becomes of a body whose lock is lost.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod late;
mod max_hold;
mod min_hold;
mod min_hold_on_redis;
mod on_lost;
mod polls;
mod unpolled;
