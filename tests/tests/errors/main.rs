//! Promise: an error says what happened and where, once, and what it means for whoever called.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod clients;
mod retries;
mod unavailable;

use std::time::Duration;

const TIME_LIMIT: Duration = Duration::from_secs(20);
const SECOND: Duration = Duration::from_secs(1);
