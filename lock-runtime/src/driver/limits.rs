//! How long the driver waits.

use std::time::Duration;

use crate::types::terms::Wait;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long locks are held at most after a shutdown.
    pub(crate) shutdown_grace: Duration,
    /// How long acquisitions go on while the store cannot be asked.
    pub(crate) unavailable_wait: Wait,
}
