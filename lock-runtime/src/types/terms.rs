//! The terms of an acquisition: its settings, fixed when it begins.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::types::enclosing::Enclosing;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::ticket_id::TicketId;

/// Identifies an acquisition, and then its lease, within one manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaseId(pub(crate) u64);

/// How long to wait for a held lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Zero tries once.
    AtMost(Duration),
    Forever,
}

impl Wait {
    pub(crate) fn is_try(self) -> bool {
        self == Self::AtMost(Duration::ZERO)
    }

    /// What is left of it, if it began then.
    pub(crate) fn rest(self, began: Moment, now: Moment) -> Self {
        match self {
            Self::AtMost(wait) => Self::AtMost(began.after(wait).since(now)),
            Self::Forever => Self::Forever,
        }
    }
}

/// As settings write it.
impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(wait) => wait.fmt(f),
            Self::Forever => f.write_str("forever"),
        }
    }
}

/// The settings of an acquisition of one key, fixed when it begins.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) id: LeaseId,
    pub(crate) key: LockKey,
    pub(crate) ttl: Duration,
    pub(crate) wait: Wait,
    pub(crate) renew: bool,
    pub(crate) kind: Kind,
    /// How many permits it takes; 1 if the lock has none.
    pub(crate) take: u32,
    /// The shortest time for which the lock stays closed, from the grant on.
    pub(crate) min_hold: Option<Duration>,
    /// The longest time for which it is held, from the grant on.
    pub(crate) max_hold: Option<Duration>,
    /// The function that takes the lock, with its module, if it is known.
    pub(crate) function: Option<&'static str>,
    /// The key without its values.
    pub(crate) template: Option<&'static str>,
    /// The place in the program that asks for the lock.
    pub(crate) asked_at: Option<&'static Location<'static>>,
    /// Whether later keys follow; the fence of the last one counts for all of them.
    pub(crate) more_keys: bool,
    /// Joins the queue only if fewer wait than this.
    pub(crate) max_waiters: Option<u32>,
    /// The ticket that is adopted, instead of waiting in the queue.
    pub(crate) adopts: Option<Box<TicketId>>,
    /// What the holder publishes, if it leads.
    pub(crate) data: Option<Arc<str>>,
    /// The locks that its chain of calls holds, the innermost first.
    pub(crate) holds: Box<[Enclosing]>,
}

impl Terms {
    /// An exclusive lock with a wait and renewals.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn of(id: LeaseId, key: &str, ttl: Duration) -> Self {
        Self {
            id,
            key: LockKey::of(key),
            ttl,
            wait: Wait::Forever,
            renew: true,
            kind: Kind::Exclusive,
            take: 1,
            min_hold: None,
            max_hold: None,
            function: None,
            template: None,
            asked_at: None,
            more_keys: false,
            max_waiters: None,
            adopts: None,
            data: None,
            holds: Box::default(),
        }
    }

    /// Whether it must be granted outside a chain: because of a cooldown after it, because a
    /// later key decides its fencing token, because the followers of a chain have left the queue
    /// in which waiters are counted, or because they hold the lock under the name of the first one.
    pub(crate) fn is_alone(&self) -> bool {
        self.min_hold.is_some()
            || self.more_keys
            || self.max_waiters.is_some()
            || self.data.is_some()
    }

    /// The ticket that it adopts.
    pub(crate) fn ticket(&self) -> Option<TicketId> {
        self.adopts.as_deref().copied()
    }

    /// How many permits it takes, at least one.
    pub(crate) fn permits(&self) -> usize {
        usize::try_from(self.take.max(1)).unwrap_or(usize::MAX)
    }

    /// Whether its holder may also do the work of these.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let enough = self.take >= other.take || self.kind == Kind::Exclusive;
        self.kind.covers(other.kind) && enough
    }

    /// Whether it takes the lock or joins the queue, whatever it finds.
    pub(crate) fn simply_waits(&self) -> bool {
        !self.wait.is_try() && self.adopts.is_none() && self.max_waiters.is_none()
    }

    /// Whether so many others wait that this acquisition is refused.
    pub(crate) fn is_full(&self, others: usize) -> bool {
        let most = self
            .max_waiters
            .map(|it| usize::try_from(it).unwrap_or(usize::MAX));
        most.is_some_and(|most| others >= most)
    }

    /// The longest time for which the lease lasts. A fixed lease lasts for its ttl, even if it was
    /// granted in two parts.
    pub(crate) fn longest(&self) -> Option<Duration> {
        let fixed = (!self.renew).then_some(self.ttl);
        [self.max_hold, fixed].into_iter().flatten().min()
    }

    /// How long the lock cools down if it is released `now`.
    pub(crate) fn cooldown(&self, granted: Moment, now: Moment) -> Duration {
        let least = self.min_hold.unwrap_or_default();
        least.saturating_sub(now.since(granted))
    }

    /// The limit of the server's silence before the connection counts as broken: short enough to
    /// renew the lease over a new connection, long enough for a busy machine.
    pub(crate) fn call_timeout(&self) -> Duration {
        (self.ttl / 4).clamp(Duration::from_millis(100), Duration::from_secs(1))
    }
}
