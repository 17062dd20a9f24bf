//! A running poll of a body: the lock is not released beside it.

use crate::held::lease::Lease;

/// A poll under a lease and the leases under it, until this is dropped.
///
/// Begins before the clock is read. The driver ends a lease before it checks for polls, so either
/// the poll sees the end of the lease, or the driver sees the poll.
pub(crate) struct Running<'l>(&'l Lease);

impl<'l> Running<'l> {
    pub(crate) fn begin(lease: &'l Lease) -> Self {
        lease.all().for_each(Lease::poll_begins);
        Self(lease)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.all().for_each(Lease::poll_returns);
    }
}
