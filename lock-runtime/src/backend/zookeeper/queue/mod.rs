//! The stage and the next request of each acquisition: a state machine without I/O.
//!
//! An acquisition is in the queue of its lock with a node that ends with the session. It
//! looks at the queue, and holds the lock if its [`Position`] says so; otherwise it watches
//! one node, and looks again when that changes.
//!
//! [`Position`]: crate::backend::queue_order::Position

mod adopting;
mod claim;
mod closed;
mod connection;
mod containers;
mod downgrading;
mod issuing;
mod position;
mod replies;
mod requests;
mod tails;
#[cfg(test)]
mod tests;
mod watches;
mod writes;
mod writing;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::call::{Recipient, Step, cause};
use super::protocol::entry::Entry;
use super::protocol::op::{Mode, Op};
use super::protocol::paths::Paths;
use super::protocol::reply::{Message, Trouble};
use super::session::Session;
use crate::backend::Outcome;
use crate::backend::claims::Claims;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::terms::{LeaseId, Terms};

use claim::{Claim, Closing, Downgrade, Stage};
use closed::Closed;
use containers::Containers;
use requests::Requests;
use tails::Tails;
use watches::Watches;
use writes::Writes;

/// A lock that is held no longer needs no watch of its own: setting one and hearing of the
/// release by it is a read and an event for each cycle.
const SHORT: Duration = Duration::from_millis(50);

/// All acquisitions of a manager.
pub(super) struct Queue {
    claims: Claims<Claim>,
    /// `None` until a server has confirmed one.
    session: Option<Session>,
    requests: Requests,
    writes: Writes,
    containers: Containers,
    tails: Tails,
    watches: Watches,
    closed: Closed,
    /// The nodes of holders whose tickets may come to be, and reach nobody.
    unclaimed: HashMap<LeaseId, Entry>,
    /// The server's clock, as it was heard last.
    server_time: i64,
    /// Whether it was heard when it was asked last.
    is_time_known: bool,
    /// Why the node of the session is not there, if the server has refused it.
    refused: Option<Cause>,
}

impl Queue {
    pub(super) fn new(paths: Paths) -> Self {
        Self {
            claims: Claims::default(),
            session: None,
            requests: Requests::new(paths),
            writes: Writes::default(),
            containers: Containers::default(),
            tails: Tails::default(),
            watches: Watches::default(),
            closed: Closed::default(),
            unclaimed: HashMap::new(),
            server_time: 0,
            is_time_known: false,
            refused: None,
        }
    }

    pub(super) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    pub(super) fn next_outcome(&mut self) -> Option<Outcome> {
        self.claims.next_outcome()
    }

    pub(super) fn acquire(&mut self, now: Moment, terms: Arc<Terms>) {
        let id = terms.id;
        let Some(token) = self.claims.fresh_token(id) else {
            return;
        };
        let former = self.unclaimed.remove(&id);
        let claim = Claim::new(now, terms, token);
        self.claims.insert(id, Claim { former, ..claim });
        if let Some(cause) = self.refused.clone() {
            self.give_up(id, &cause);
        } else if self.session.is_some() {
            self.begin(id);
        }
    }

    /// Answers from the last heartbeat if it is recent, and else from the next one.
    pub(super) fn renew(&mut self, id: LeaseId) {
        let held = |it: &&mut Claim| it.stage == Stage::Held;
        let claim = self.claims.get_mut(&id).filter(held);
        let (Some(claim), Some(session)) = (claim, &self.session) else {
            self.claims.report(Outcome::NotHeld { id });
            return;
        };
        claim.renewing = session.since() <= claim.since;
        if !claim.renewing {
            claim.since = session.since();
            self.claims.report(Outcome::Renewed {
                id,
                since: session.since(),
                ttl: session.timeout,
            });
        }
    }

    /// Lets go of the lock, which cools down if its terms say so.
    pub(super) fn release(&mut self, now: Moment, id: LeaseId) {
        let cooldown = self.claims.get(&id).map(|claim| match claim.stage {
            Stage::Held => claim.terms.cooldown(claim.granted, now),
            _ => Duration::ZERO,
        });
        let cooldown = cooldown.filter(|it| !it.is_zero());
        self.end(id, cooldown.map(Closing::Cooldown));
    }

    /// Leaves the queue, or releases the lock at once.
    pub(super) fn abandon(&mut self, id: LeaseId) {
        self.end(id, None);
    }

    fn end(&mut self, id: LeaseId, closing: Option<Closing>) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return self.released(id, Ok(false));
        };
        claim.unwanted = true;
        match claim.stage {
            Stage::Fresh | Stage::Trying | Stage::Refused => self.released(id, Ok(false)),
            // Known soon.
            Stage::Creating
            | Stage::Finding
            | Stage::Seeking
            | Stage::Adopting
            | Stage::Leaving { .. } => {}
            // It is not known whose node it has.
            Stage::Held if claim.downgrade == Some(Downgrade::Asked) => claim.closing = closing,
            Stage::InQueue | Stage::Held => self.leave(id, closing),
        }
    }

    /// A message about something that was watched.
    pub(super) fn heard(&mut self, message: &Message) {
        for id in self.watches.changed(&message.path, message.change) {
            let Some(claim) = self.claims.get(&id) else {
                continue;
            };
            match claim.stage {
                Stage::InQueue => self.woken(id, message),
                Stage::Held => self.look_after(id),
                _ => {}
            }
        }
    }

    /// Carries out due work: a lock has cooled down, a holder's node is to be watched, or a
    /// heartbeat is to be sent.
    pub(super) fn tick(&mut self, now: Moment) {
        while let Some(id) = self.claims.due(now) {
            match self.claims.get(&id).map(|it| it.stage) {
                Some(Stage::Fresh) if self.session.is_some() => self.begin(id),
                Some(Stage::InQueue) => self.look(id, false),
                Some(Stage::Held) => self.look_after(id),
                _ => {}
            }
        }
        if self.session.is_some() {
            while let Some(path) = self.closed.ended(now) {
                self.requests.discard(path);
            }
        }
        if let Some(session) = &mut self.session
            && session.next_heartbeat().is_some_and(|at| at <= now)
        {
            self.requests.write_session(session, Recipient::Heartbeat);
            session.sent(now);
        }
    }

    /// When something is due that no event announces.
    pub(super) fn next_wakeup(&self) -> Option<Moment> {
        let session = self.session.as_ref();
        let all = [
            self.claims.next_wakeup(),
            session.and_then(Session::next_heartbeat),
            session.map(Session::deadline),
            session.and_then(|_| self.closed.next_end()),
        ];
        all.into_iter().flatten().min()
    }

    /// Asks for the lock, in a new position.
    fn begin(&mut self, id: LeaseId) {
        let turn = self.claims.next_turn(id);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if claim.terms.adopts.is_some() {
            return self.seek(id);
        }
        if claim.terms.wait.is_try() || claim.terms.max_waiters.is_some() && !claim.waited {
            claim.stage = Stage::Trying;
            let key = claim.terms.key.clone();
            self.leave_first(&key);
            if let Some(claim) = self.claims.get(&id) {
                self.requests.list(claim, turn, Step::Try);
            }
        } else {
            self.create(id);
        }
    }

    /// Creates the claim's node, and looks at the queue.
    fn create(&mut self, id: LeaseId) {
        let turn = self.claims.next_turn(id);
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.stage = Stage::Creating;
            self.writes.push(turn);
        }
    }

    /// The same where nothing is above it.
    fn create_with_above(&mut self, id: LeaseId) {
        let turn = self.claims.next_turn(id);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        claim.stage = Stage::Creating;
        for op in self.requests.paths.above_lock(&claim.terms.key) {
            self.requests.send(op, Recipient::Above(id));
        }
        self.write_alone(turn);
    }

    /// Looks at the queue again.
    fn look(&mut self, id: LeaseId, watched: bool) {
        self.claims.next_turn(id);
        self.ask_queue(id, Step::Queue { watched });
    }

    /// Looks whether the claim's own node is still there, and watches it.
    fn look_after(&mut self, id: LeaseId) {
        if let Some(node) = self.claims.get(&id).and_then(|it| it.node) {
            self.ask_entry(id, node, true, Step::Own);
        }
    }

    fn ask_queue(&mut self, id: LeaseId, step: Step) {
        let turn = self.claims.turn(id);
        if let Some(claim) = self.claims.get(&id) {
            self.requests.list(claim, turn, step);
        }
    }

    /// Reads a node of the queue.
    fn ask_entry(&mut self, id: LeaseId, entry: Entry, watch: bool, step: Step) {
        if entry.is_timed() {
            self.ask_time();
        }
        let turn = self.claims.turn(id);
        if let Some(claim) = self.claims.get(&id) {
            self.requests.read(claim, turn, entry, watch, step);
        }
    }

    fn ask_time(&mut self) {
        if let Some(session) = &self.session {
            self.requests.write_session(session, Recipient::Time);
        }
    }

    /// Deletes its node, and leaves another one while the lock stays closed.
    fn leave(&mut self, id: LeaseId, closing: Option<Closing>) {
        let turn = self.claims.next_turn(id);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let Some(node) = claim.node else {
            return self.released(id, Ok(false));
        };
        claim.unwanted = true;
        claim.stage = Stage::Leaving {
            held: claim.stage == Stage::Held,
            again: false,
        };
        claim.closing = closing;
        let Some(closing) = closing else {
            return self.writes.push(turn);
        };
        let path = self.requests.path(claim, node);
        let (after, data) = claim.closed(node, closing);
        let after = Op::Create {
            path: self.requests.path(claim, after),
            data,
            mode: Mode::Persistent,
        };
        let op = Op::Multi(vec![Op::Delete { path }, after]);
        self.requests.send(op, Recipient::Claim(turn, Step::Leave));
    }

    /// The server has answered to that.
    fn left(&mut self, now: Moment, id: LeaseId, trouble: Option<Trouble>) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let Stage::Leaving { held, again } = claim.stage else {
            return;
        };
        let (node, closing) = (claim.node, claim.closing);
        let is_ticket = matches!(closing, Some(Closing::Ticket(..)));
        if let (None | Some(Trouble::NoNode), Some(node), Some(closing)) = (&trouble, node, closing)
        {
            self.will_open(now, id, node, closing);
        }
        let result = match trouble {
            None => Ok(held),
            // It stays closed, or is anybody's.
            Some(Trouble::NoNode) if is_ticket && again => return self.ask_whether_issued(id),
            // The lost answer was most likely that one.
            Some(Trouble::NoNode) => Ok(held && again),
            Some(trouble) => {
                // Its node would hold up the queue for as long as the session lasts.
                if let (Some(claim), Some(node)) = (self.claims.get(&id), node) {
                    let path = self.requests.path(claim, node);
                    self.requests.not_discarded(path);
                }
                self.may_be_issued(id);
                Err(cause(trouble))
            }
        };
        self.released(id, result);
    }

    /// Deletes later what may have taken the place of a node, and keeps the lock closed.
    fn will_open(&mut self, now: Moment, id: LeaseId, node: Entry, closing: Closing) {
        if let Some(claim) = self.claims.get(&id) {
            let (after, _) = claim.closed(node, closing);
            let path = self.requests.path(claim, after);
            self.closed.add(now, closing.time(), path);
        }
    }

    fn released(&mut self, id: LeaseId, result: Result<bool, Cause>) {
        self.claims.retire(Outcome::Released { id, result });
    }

    /// It was held, and is not ours any more.
    fn lost(&mut self, id: LeaseId) {
        self.claims.remove(&id);
        self.claims.report(Outcome::NotHeld { id });
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("claims", &self.claims.len())
            .finish_non_exhaustive()
    }
}
