//! One acquisition, from its request to its release.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::name;
use crate::backend::token::Token;
use crate::backend::zookeeper::protocol::entry::{self, Entry};
use crate::backend::zookeeper::protocol::reply::Trouble;
use crate::base::clock::Moment;
use crate::types::crowd::Crowd;
use crate::types::holder::Holder;
use crate::types::terms::{LeaseId, Terms};
use crate::types::ticket_id::TicketId;

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is known at another time"
)]
pub(super) struct Claim {
    pub(super) terms: Arc<Terms>,
    pub(super) token: Token,
    pub(super) stage: Stage,
    /// Its own in the queue.
    pub(super) node: Option<Entry>,
    /// Whether it has waited, and those behind may not know that it holds the lock.
    pub(super) waited: bool,
    /// The one of ours that came before it, and the node of that one if it is right
    /// ahead.
    pub(super) before: Option<LeaseId>,
    pub(super) ahead: Option<Entry>,
    /// The one of ours that is right behind it.
    pub(super) follower: Option<LeaseId>,
    /// Whether nobody is ahead once that node is gone.
    pub(super) is_next: bool,
    /// The number of the last change of the queue after that node was gone.
    pub(super) changed: i64,
    /// The node of a cooldown that it has deleted last.
    pub(super) discarded: Option<Entry>,
    /// The node ahead, once it was written and the queue was read since.
    pub(super) passed: Option<Entry>,
    /// Whether it has yet to be confirmed that those behind are notified.
    pub(super) announcing: bool,
    /// How often in turn its node could not be created since nothing was above it.
    pub(super) without_above: u32,
    /// Why that could not be created.
    pub(super) above_refused: Option<Trouble>,
    /// No caller wants it any more: it leaves once its state is known.
    pub(super) unwanted: bool,
    /// An answer was lost.
    pub(super) unanswered: bool,
    /// Whether the holder that was to be reported has left once.
    pub(super) missed: bool,
    /// The holder who was reported last.
    pub(super) holder: Option<Box<Holder>>,
    /// The other waiters.
    pub(super) crowd: Crowd,
    pub(super) granted: Moment,
    /// From when its lease counts, as was reported last.
    pub(super) since: Moment,
    pub(super) renewing: bool,
    /// How the lock stays closed when it has left.
    pub(super) closing: Option<Closing>,
    /// How far it is a reader that was a writer, if it is.
    pub(super) downgrade: Option<Downgrade>,
    /// The sessions in which it has adopted its ticket, or may have.
    pub(super) adopted_in: BTreeSet<i64>,
    /// The node from which a ticket was asked for that reached nobody.
    pub(super) former: Option<Entry>,
}

/// How far a writer has become a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Downgrade {
    /// Its node may be that of the writer or that of the reader.
    Asked,
    Done,
}

/// What keeps a lock closed after its release, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    Cooldown(Duration),
    Ticket(TicketId, Duration),
}

impl Closing {
    /// How long the lock stays closed.
    pub(super) fn time(self) -> Duration {
        match self {
            Self::Cooldown(time) | Self::Ticket(_, time) => time,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Waits for a session.
    Fresh,
    /// Looks whether the lock is free, and creates nothing.
    Trying,
    Creating,
    /// Does not know whether its node was created.
    Finding,
    InQueue,
    /// Looks for the node of the ticket that it adopts.
    Seeking,
    /// Replaces that node by its own.
    Adopting,
    /// Is to report who holds the lock, and ends.
    Refused,
    Held,
    /// Deletes its node. `again`: an answer to that was lost.
    Leaving {
        held: bool,
        again: bool,
    },
}

impl Claim {
    pub(super) fn new(now: Moment, terms: Arc<Terms>, token: Token) -> Self {
        Self {
            terms,
            token,
            stage: Stage::Fresh,
            node: None,
            waited: false,
            before: None,
            ahead: None,
            follower: None,
            is_next: false,
            changed: 0,
            discarded: None,
            passed: None,
            announcing: false,
            without_above: 0,
            above_refused: None,
            unwanted: false,
            unanswered: false,
            missed: false,
            holder: None,
            crowd: Crowd::default(),
            granted: now,
            since: now,
            renewing: false,
            closing: None,
            downgrade: None,
            adopted_in: BTreeSet::new(),
            former: None,
        }
    }

    /// Starts over, with nothing that an earlier session knows of.
    pub(super) fn start_over(&mut self, token: Token) {
        self.token = token;
        self.stage = Stage::Fresh;
        self.node = None;
        self.unanswered = false;
        self.before = None;
        self.ahead = None;
        self.follower = None;
        self.is_next = false;
    }

    /// Whether what a busy server has refused can be asked again later.
    pub(super) fn can_ask_again(&self) -> bool {
        let stages = [Stage::Trying, Stage::Creating, Stage::InQueue];
        !self.unwanted && stages.contains(&self.stage)
    }

    /// Whether it is not granted yet, and wanted.
    pub(super) fn is_acquiring(&self) -> bool {
        !self.unwanted && !matches!(self.stage, Stage::Held | Stage::Leaving { .. })
    }

    /// Whether it ends where so many others wait and it would wait too.
    pub(super) fn is_refused(&self, others: usize) -> bool {
        self.terms.wait.is_try() || !self.waited && self.terms.is_full(others)
    }

    /// The data of its node in a session of this timeout.
    pub(super) fn data(&self, timeout: Duration) -> Vec<u8> {
        let time = self.terms.longest().map_or(timeout, |it| it.min(timeout));
        entry::data(&name::name(self.token, &self.terms), time)
    }

    /// The node that keeps the lock closed after that of its holder, and its data.
    pub(super) fn closed(&self, node: Entry, closing: Closing) -> (Entry, Vec<u8>) {
        let name = name::name(self.token, &self.terms);
        match closing {
            Closing::Cooldown(time) => {
                let data = entry::data(&format!("-{name}"), time);
                (node.cooldown(), data)
            }
            Closing::Ticket(ticket, time) => {
                let data = entry::data(&name::of_ticket(ticket, &name), time);
                (node.ticket(ticket), data)
            }
        }
    }
}
