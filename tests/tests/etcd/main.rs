//! Promise: locks on etcd outlive what happens to its members and connections, and nobody holds one beside another.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

mod access;
mod faults;
mod load;
mod neighbours;
mod watches;

/// The shortest lease of etcd.
const TTL: Duration = Duration::from_secs(2);
