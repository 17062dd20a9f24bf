//! Promise: an error says what happened and where, once, and what it means for whoever called.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod unavailable;
