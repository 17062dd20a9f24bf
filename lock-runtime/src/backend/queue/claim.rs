//! A claim: one acquisition and its stage.

use std::sync::Arc;
use std::time::Duration;

use super::protocol::call::{Bearer, Note};
use super::protocol::trouble::Trouble;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::ticket_id::TicketId;

/// The longest lease of a pushed grant, as the servers know it too.
pub(super) const CLAIM_TTL: Duration = Duration::from_secs(3);

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Claim {
    pub(super) bearer: Bearer,
    pub(super) stage: Stage,
    /// Before the sending of the last command that may have found the token waiting:
    /// the server cannot have granted it earlier.
    pub(super) since: Moment,
    pub(super) position: Option<u64>,
    /// Whether it has been in the queue, and stays a waiter however many wait.
    pub(super) waited: bool,
    /// The number that was set aside for it in a chain, which it keeps.
    pub(super) fence: Option<u64>,
    /// Since when and for how long the lock is surely ours, while it is held.
    pub(super) lease: (Moment, Duration),
    /// Whether the server has, or may have, a note of a grant under its token, which has to be that
    /// of this claim.
    pub(super) noted: bool,
    /// How many renewals are on the way.
    pub(super) renewals: u32,
    /// What has become of the last renewal that is not on the way.
    pub(super) renewal: Renewal,
    /// Whether a brief renewal under its token has no answer. It may still arrive, and cut what a later call has
    /// extended.
    pub(super) may_be_cut: bool,
    /// Whether the server may know it as a waiter of a session that has ended, whom it skips.
    pub(super) is_stray: bool,
    /// Whether it is one server's part of an acquisition on several.
    pub(super) is_part: bool,
    /// Whether it has taken over the lock of another client, which it has once that is confirmed.
    pub(super) takes_over: bool,
    /// Whether others waited for the lock at the same time.
    pub(super) crowded: bool,
    /// Whether the server has yet to know that it holds what another claim has held.
    pub(super) unknown: bool,
    /// How far the server knows that it is a reader that was a writer, if it is.
    pub(super) downgrade: Option<Downgrade>,
    /// If the server forbids the release, until when it is tried again.
    pub(super) forbidden: Option<Moment>,
    /// Why no ticket takes its place, if that was asked for: it is released instead.
    pub(super) refused: Option<Cause>,
}

/// What has become of a renewal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Renewal {
    Done,
    /// It has no answer, and will have none.
    Lost,
    /// The server has refused one for now, or left it unanswered for long, and has carried out none since.
    Refused,
}

/// How far the server knows of a reader that was a writer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Downgrade {
    /// It may not know.
    Asked,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stage {
    /// To be sent as soon as there is a connection.
    Unsent,
    /// Its acquire is on the way.
    Acquiring,
    /// In the queue.
    Waiting,
    /// Out of the queue: it gets the lock from the one before it in the chain with that
    /// token, and the server knows nothing of it.
    Chained {
        chain: Token,
    },
    /// The last answer about it is lost: only the server knows its position.
    Unsure,
    /// Granted a while ago; a renewal is to show that it is still held.
    Confirming {
        fence: u64,
    },
    /// Handed over in a chain, with a lease of `ttl` from `since`; the server is to know that it
    /// holds the lock now.
    Passing {
        fence: u64,
        since: Moment,
        ttl: Duration,
    },
    /// Granted; replicas are to confirm that they have it.
    Replicating {
        fence: u64,
    },
    Held {
        fence: u64,
        granted: Moment,
    },
    /// It leaves the queue, where it stands under a session that has ended, to join again under the present one.
    Rejoining,
    /// Nobody wants it any more; until the server says so. The driver waits until
    /// a lease would have ended by itself.
    Leaving {
        until: Moment,
    },
    /// A ticket is to take its place, which lasts until `ends`; until the server says so, or its
    /// lease has ended by itself.
    Issuing {
        ticket: TicketId,
        ends: Moment,
        until: Moment,
    },
    /// Until the server says so, or its lease has ended by itself.
    Releasing {
        until: Moment,
        /// Until when the lock cools down.
        cools_until: Moment,
    },
}

impl Claim {
    /// Before its first call is sent.
    pub(super) fn new(bearer: Bearer, now: Moment) -> Self {
        Self {
            bearer,
            stage: Stage::Unsent,
            since: now,
            position: None,
            waited: false,
            fence: None,
            lease: (now, Duration::ZERO),
            noted: false,
            renewals: 0,
            renewal: Renewal::Done,
            may_be_cut: false,
            is_stray: false,
            is_part: false,
            takes_over: false,
            crowded: false,
            unknown: false,
            downgrade: None,
            forbidden: None,
            refused: None,
        }
    }

    /// The bearer of its acquire.
    pub(super) fn acquirer(&self) -> Bearer {
        let mut bearer = self.bearer.clone();
        if self.waited && bearer.terms.max_waiters.is_some() {
            Arc::make_mut(&mut bearer.terms).max_waiters = None;
        }
        bearer
    }

    /// For how long a lease counts that the server has extended to `ttl`.
    pub(super) fn counted(&self, ttl: Duration) -> Duration {
        if self.may_be_cut {
            ttl.min(CLAIM_TTL)
        } else {
            ttl
        }
    }

    /// The lease until whose end this claim counts on the lock: none before it is granted.
    pub(super) fn counted_lease(&self) -> (Moment, Duration) {
        match self.stage {
            Stage::Passing { since, ttl, .. } => (since, ttl),
            Stage::Held { .. } => self.lease,
            _ => (self.since, Duration::ZERO),
        }
    }

    pub(super) fn is_held(&self) -> bool {
        matches!(self.stage, Stage::Held { .. })
    }

    /// Its renewal has failed.
    pub(super) fn not_renewed(&mut self, trouble: &Trouble) {
        if let Trouble::NotNow(_) = trouble {
            self.renewal = Renewal::Refused;
        } else if self.renewal == Renewal::Done {
            self.renewal = Renewal::Lost;
        }
    }

    /// Whether its renewal goes with the first calls of a new connection, each of which may take long. A part is renewed when
    /// its acquisition is.
    pub(super) fn is_late(&self) -> bool {
        self.is_held() && !self.is_part && self.renewal == Renewal::Lost && self.renewals == 0
    }

    /// Whether its renewals keep others waiting.
    #[cfg(feature = "mysql")]
    pub(super) fn was_refused(&self) -> bool {
        self.renewal == Renewal::Refused
    }

    /// What a renewal tells about its grant, if the server is to note it.
    pub(super) fn note(&self, now: Moment) -> Option<Note> {
        let (fence, held) = match self.stage {
            Stage::Held { fence, granted } => (fence, now.since(granted)),
            Stage::Confirming { fence } => (fence, Duration::ZERO),
            _ => return None,
        };
        self.noted.then_some(Note { fence, held })
    }

    /// Whether it may be in the queue, and be handed the lock there.
    pub(super) fn is_in_queue(&self) -> bool {
        let stage = self.stage;
        matches!(stage, Stage::Acquiring | Stage::Waiting | Stage::Unsure)
    }

    /// Whether its acquire is to be sent.
    pub(super) fn is_unsent(&self) -> bool {
        match self.stage {
            Stage::Unsent => true,
            Stage::Unsure => self.acquires_again(),
            _ => false,
        }
    }

    /// Whether its acquire is sent again under the same token if its answer is lost, as that of an
    /// adopter is: it finds the ticket, or the lock under that token. So does a try that takes over
    /// a lock.
    pub(super) fn acquires_again(&self) -> bool {
        self.bearer.terms.adopts.is_some() || self.takes_over
    }

    /// A server that takes over may not know that it is a reader.
    pub(super) fn downgrade_again(&mut self) {
        self.downgrade = self.downgrade.and(Some(Downgrade::Asked));
    }

    /// Whether the server is to know that it is over.
    pub(super) fn ends(&self) -> bool {
        let stage = self.stage;
        matches!(
            stage,
            Stage::Leaving { .. } | Stage::Releasing { .. } | Stage::Issuing { .. }
        )
    }

    /// Whether it gets the lock in this chain.
    pub(super) fn follows(&self, chain: Token) -> bool {
        self.stage == Stage::Chained { chain }
    }

    /// Gives it up.
    pub(super) fn leave(&mut self, now: Moment) {
        let until = now.after(self.bearer.terms.ttl);
        self.stage = Stage::Leaving { until };
    }

    /// The stage of a release that begins now.
    pub(super) fn releasing(&self, now: Moment) -> Stage {
        let cooldown = match self.stage {
            Stage::Held { granted, .. } => self.bearer.terms.cooldown(granted, now),
            _ => Duration::ZERO,
        };
        Stage::Releasing {
            until: now.after(self.bearer.terms.ttl),
            cools_until: now.after(cooldown),
        }
    }
}
