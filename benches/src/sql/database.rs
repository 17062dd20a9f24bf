//! A server, whose commits wait for the disk or do not.

use std::time::Duration;

use super::processor;

pub(crate) struct Database {
    pub(crate) case: &'static str,
    /// Whether commits wait for the disk.
    pub(crate) disk: bool,
    pub(crate) url: String,
    pub(crate) pid: u32,
}

impl Database {
    /// The processor time of all its processes so far.
    pub(crate) fn processor(&self) -> Duration {
        processor::of_all(self.pid)
    }
}
