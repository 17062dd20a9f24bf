//! The history that a manager keeps, with the lease on which notes of grants last, and the note of one claim's grant.

use std::time::Duration;

use crate::backend::etcd::protocol::notes::Note;
use crate::base::clock::Moment;

/// How long notes are written on one lease.
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How many grants are remembered, and the lease of the notes.
#[derive(Debug)]
pub(super) struct History {
    pub(super) most: usize,
    pub(super) lease: Lease,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Lease {
    /// Nobody needs one.
    None,
    Due(Moment),
    Asked,
    Granted {
        id: i64,
        until: Moment,
    },
}

impl History {
    pub(super) fn new(most: usize) -> Self {
        let lease = Lease::None;
        Self { most, lease }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.most > 0
    }

    /// The present lease of notes; if there is none, one is needed from now on.
    pub(super) fn lease(&mut self, now: Moment) -> Option<i64> {
        match self.lease {
            Lease::Granted { id, until } if now < until => return Some(id),
            Lease::None | Lease::Granted { .. } => self.lease = Lease::Due(now),
            Lease::Due(_) | Lease::Asked => {}
        }
        None
    }

    pub(super) fn next_wakeup(&self) -> Option<Moment> {
        match self.lease {
            Lease::Due(at) => Some(at),
            _ => None,
        }
    }

    /// Notes cannot be written on the lease any more.
    pub(super) fn forget_lease(&mut self) {
        if let Lease::Granted { .. } = self.lease {
            self.lease = Lease::None;
        }
    }
}

/// The note of a claim's grant.
#[derive(Debug)]
pub(super) struct Noted {
    pub(super) note: Note,
    /// Whether the store has it.
    pub(super) is_written: bool,
    /// Whether the store has the end of the grant too.
    pub(super) is_ended: bool,
    /// Older notes, which are deleted with the end of the grant.
    pub(super) surplus: Vec<Vec<u8>>,
}
