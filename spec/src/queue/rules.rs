//! The times of the protocol, and the mistakes that the properties have to notice.

/// How long things last, in ticks.
#[derive(Clone, Debug)]
pub struct Rules<N = u8> {
    /// The ttl of a lease.
    pub ttl: N,
    /// The ttl of a lease that was granted by a push, until its holder renews it.
    pub claim: N,
    /// Drift and margin together: the deadline is that much earlier than the end of the lease.
    pub margin: N,
    /// The server skips the waiters of a connection that has not asked for longer than this.
    pub silence: N,
    /// #chains: by how much a follower may have joined after one whom it overtakes.
    pub window: N,
    /// #chains: how many waiters are looked at for followers.
    pub followers: usize,
    /// How long a cooldown lasts.
    pub cooldown: N,
    /// How long a ticket lasts.
    pub ticket: N,
    /// How long a call may be unanswered before its client drops the connection.
    pub call_timeout: N,
    /// Whether clients acquire nothing for a ttl after the start of the server.
    pub quarantine: bool,
    /// The rule that is broken, if one is.
    pub bug: Option<Bug>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            ttl: 4,
            claim: 3,
            margin: 1,
            silence: 2,
            window: 0,
            followers: 63,
            cooldown: 2,
            ticket: 2,
            call_timeout: 1,
            quarantine: true,
            bug: None,
        }
    }
}

impl Rules {
    /// An age at which nothing is left of a lease that was granted by a push.
    pub fn oldest(&self) -> u8 {
        self.ttl.min(self.claim) - self.margin
    }

    /// Whether this rule is broken.
    pub fn breaks(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A release removes whichever holder the lock has.
    ReleaseOfAnybody,
    /// An acquire without an answer is sent again under the same token.
    AcquireSentAgain,
    /// Clients acquire at once from a server that may have forgotten locks.
    QuarantineSkipped,
    /// A lease counts from the reply instead of the call.
    CountedFromTheReply,
    /// A lease counts from the push instead of the last call before it.
    CountedFromThePush,
    /// The body is polled without a look at the deadline.
    PolledWithoutALook,
    /// A short renewal of a chain that has no answer is taken for one that never arrives.
    ShortRenewalForgotten,
    /// The followers of a chain begin with the fence of the first.
    FollowersWithoutFences,
    /// The counter of fences starts anew with a server that has lost its data.
    CounterStartsAnew,
    /// Waiters rely on the push.
    NobodyAsks,
    /// The server hands the lock to the last waiter.
    LastComesFirst,
    /// A chain takes its followers from anywhere in the queue.
    FollowersOvertake,
    /// A fresh token joins without the old position.
    PositionForgotten,
    /// A newcomer takes a free lock although others wait for it.
    NewcomerPasses,
    /// During a cooldown the owner keeps the name of the acquisition.
    CooldownUnderItsName,
    /// A ticket ends with the lease of the holder that issued it.
    TicketEndsWithTheLease,
    /// A ticket is adopted that is not there any more.
    AdoptedWithoutTicket,
}
