//! A claim: one acquisition and its stage.

use std::sync::Arc;
use std::time::Duration;

use super::noted::Noted;
use crate::backend::etcd::protocol::entry;
use crate::backend::etcd::protocol::keys::Span;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::holder::Holder;
use crate::types::terms::Terms;
use crate::types::ticket_id::TicketId;

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Claim {
    pub(super) terms: Arc<Terms>,
    pub(super) token: Token,
    pub(super) stage: Stage,
    /// That of its entry, once it is made.
    pub(super) key: Vec<u8>,
    pub(super) slot: Option<u64>,
    /// The lease that its entry is made on, and the revision of that lease's marker which the call compares.
    pub(super) lease: i64,
    pub(super) epoch: i64,
    /// Whether its queue has keys of others, which a limited read might count.
    pub(super) reads_all: bool,
    /// The revision that created its entry, once that is known.
    pub(super) created: i64,
    /// The revision that wrote its entry last, as far as is known.
    pub(super) modified: i64,
    /// The last revision at which its entry was seen.
    pub(super) seen: i64,
    /// The revision of its knowledge about the entries ahead; once there are none, its fence.
    pub(super) known: i64,
    /// The revision of the last event that its watch has shown.
    pub(super) notified: i64,
    /// When it looks again although its watch shows nothing.
    pub(super) look_at: Moment,
    /// Whether only the watched entry is ahead.
    pub(super) follows_one: bool,
    /// Whether the member that is asked did not know its entry, so that a majority is asked.
    pub(super) by_majority: bool,
    /// The keys that it watches, and the number of that watch.
    pub(super) watch: Option<(u64, Span)>,
    /// Whether the answer to a call is awaited.
    pub(super) awaits: bool,
    /// Once nobody wants it any more: until when the driver waits for its end.
    pub(super) leaving: Option<Moment>,
    /// Whether it has been granted.
    pub(super) granted: bool,
    /// Whether its value is to be written again, since it has waited, and that was not
    /// answered yet.
    pub(super) announces: bool,
    /// Whether nobody has watched it for a time, so that the entry may be gone.
    pub(super) unwatched: bool,
    /// Whether a call without an answer, or one that has used up the space, may have made its entry.
    pub(super) may_be_made: bool,
    /// Whether the lease of its session is kept alive for it.
    pub(super) uses_lease: bool,
    /// The lease on which it has adopted its ticket, or may have.
    pub(super) adopted_on: Option<i64>,
    /// Whether such a call may have deleted its entry.
    pub(super) may_be_deleted: bool,
    /// Whether a call without an answer may make or delete its entry later.
    pub(super) may_come_late: bool,
    /// Whether its ticket was written perhaps, and reached nobody.
    pub(super) takes_back: bool,
    /// The note of its grant, once one is written or about to be.
    pub(super) noted: Option<Noted>,
    /// How far its entry says that it is a reader that was a writer, if it is.
    pub(super) downgrade: Option<Downgrade>,
    /// The holder when it last looked.
    pub(super) holder: Option<Box<Holder>>,
}

/// How far the entry of a reader that was a writer says so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Downgrade {
    /// It may not say it yet.
    Asked,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stage {
    /// Behind other calls about its lock, or until there are a connection and a lease.
    Unsent,
    /// Its entry is being made.
    Entering,
    /// The entry may have been made; until no late call can make it any more.
    Unsure,
    /// Behind others, and watches one of them. May be reading the queue.
    Waiting,
    /// Has to read the queue, since it has changed.
    Looking,
    /// The lock is its own if the lease lives.
    Confirming,
    /// The same, once the note of its grant is written.
    Noting,
    Held {
        granted: Moment,
    },
    /// Released, until its entry has a lease of its own.
    Moving {
        cools_until: Moment,
        lease: Option<i64>,
    },
    CoolingDown {
        until: Moment,
    },
    /// Its entry is to be kept by a ticket, on a lease of this time.
    Issuing {
        ticket: TicketId,
        time: Duration,
        lease: Option<i64>,
    },
    /// Looks for the entry of the ticket that it adopts.
    Seeking,
    /// Has found that entry, and makes it its own.
    Adopting,
    /// Its entry is being deleted.
    Leaving,
}

impl Claim {
    pub(super) fn new(terms: Arc<Terms>, token: Token) -> Self {
        Self {
            token,
            stage: match terms.adopts {
                Some(_) => Stage::Seeking,
                None => Stage::Unsent,
            },
            key: Vec::new(),
            slot: None,
            lease: 0,
            epoch: 0,
            // All that hold the lock have to be told from those that wait.
            reads_all: terms.max_waiters.is_some(),
            created: 0,
            modified: 0,
            seen: 0,
            known: 0,
            notified: 0,
            look_at: Moment::from_nanos(0),
            follows_one: false,
            by_majority: false,
            watch: None,
            awaits: false,
            leaving: None,
            granted: false,
            announces: false,
            unwatched: false,
            may_be_made: false,
            uses_lease: true,
            adopted_on: None,
            may_be_deleted: false,
            may_come_late: false,
            takes_back: false,
            noted: None,
            downgrade: None,
            holder: None,
            terms,
        }
    }

    /// The time of the lease that it shares.
    pub(super) fn ttl(&self) -> Duration {
        whole_seconds(self.terms.ttl)
    }

    pub(super) fn is_held(&self) -> bool {
        matches!(self.stage, Stage::Held { .. })
    }

    /// For how long its lease lasts.
    pub(super) fn lasts(&self) -> Duration {
        if self.terms.renew {
            self.ttl()
        } else {
            self.terms.ttl
        }
    }

    /// What is written into its entry, or names that: if it is a reader that was a writer, it says so.
    pub(super) fn as_held(&self, value: Vec<u8>) -> Vec<u8> {
        match self.downgrade {
            Some(_) => entry::downgraded(&value),
            None => value,
        }
    }

    /// Whether its caller still waits for the lock.
    pub(super) fn acquires(&self) -> bool {
        let stage = matches!(
            self.stage,
            Stage::Unsent
                | Stage::Entering
                | Stage::Unsure
                | Stage::Waiting
                | Stage::Looking
                | Stage::Confirming
                | Stage::Noting
                | Stage::Seeking
                | Stage::Adopting
        );
        stage && self.leaving.is_none()
    }
}

/// A time that a lease can have: no less than `time`.
pub(super) fn whole_seconds(time: Duration) -> Duration {
    let up = u64::from(time.subsec_nanos() > 0);
    Duration::from_secs((time.as_secs() + up).max(2))
}

/// How long a member may leave a call unanswered: long enough for a busy disk, short
/// enough to ask another member before a lease of this time ends.
pub(super) fn call_timeout(ttl: Duration) -> Duration {
    (ttl / 4).clamp(Duration::from_millis(500), Duration::from_secs(2))
}
