//! What each acquisition waits for and what to ask next: a state machine without I/O.
//!
//! An acquisition stands in the line of its lock with a node that ends with the session.
//! It looks at the line, and holds the lock if [`Place`] says so; otherwise it watches
//! one node, and looks again when that changes.
//!
//! [`Place`]: crate::backend::line::Place

mod claim;
mod connection;
mod endings;
mod line;
mod neighbours;
mod replies;
mod rests;
mod tails;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::call::{Call, Step, To};
use super::protocol::entry::Entry;
use super::protocol::op::{Mode, Op};
use super::protocol::paths::Paths;
use super::protocol::reply::Message;
use super::session::Session;
use crate::backend::Outcome;
use crate::backend::token::{Token, Tokens};
use crate::base::clock::Moment;
use crate::base::numbers::Numbered;
use crate::types::error::Cause;
use crate::types::terms::{LeaseId, Terms};

use claim::{Claim, Stage};
use tails::Tails;
use watches::Watches;

/// All acquisitions of a manager.
pub(super) struct Claims {
    paths: Paths,
    /// `None` until a server has confirmed one.
    session: Option<Session>,
    table: Numbered<LeaseId, Claim>,
    tokens: Tokens,
    tails: Tails,
    watches: Watches,
    /// When somebody looks again: a lock has rested, or a node could not be watched.
    agenda: BTreeSet<(Moment, LeaseId)>,
    /// The server's clock, as it was told last.
    server_time: i64,
    /// Nodes whose deletion was not confirmed.
    leftovers: Vec<String>,
    calls: Vec<Call>,
    pub(super) outcomes: VecDeque<Outcome>,
}

impl Claims {
    pub(super) fn new(paths: Paths) -> Self {
        Self {
            paths,
            session: None,
            table: Numbered::default(),
            tokens: Tokens::default(),
            tails: Tails::default(),
            watches: Watches::default(),
            agenda: BTreeSet::new(),
            server_time: 0,
            leftovers: Vec::new(),
            calls: Vec::new(),
            outcomes: VecDeque::new(),
        }
    }

    pub(super) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    pub(super) fn next_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// What is to be sent.
    pub(super) fn calls(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.calls)
    }

    pub(super) fn acquire(&mut self, now: Moment, terms: Arc<Terms>) {
        let id = terms.id;
        let Some(token) = self.fresh_token(id) else {
            return;
        };
        self.table.insert(id, Claim::new(now, terms, token));
        if self.session.is_some() {
            self.begin(id);
        }
    }

    /// A message about something that was watched.
    pub(super) fn heard(&mut self, message: &Message) {
        for id in self.watches.changed(&message.path, message.change) {
            let Some(claim) = self.table.get(&id) else {
                continue;
            };
            match claim.stage {
                Stage::InLine => self.woken(id, message),
                Stage::Held => self.look_after(id),
                _ => {}
            }
        }
    }

    /// Does what is due.
    pub(super) fn tick(&mut self, now: Moment) {
        while let Some(&(at, id)) = self.agenda.first().filter(|(at, _)| *at <= now) {
            self.agenda.remove(&(at, id));
            match self.table.get(&id).map(|it| it.stage) {
                Some(Stage::InLine) => self.look(id, false),
                Some(Stage::Held) => self.look_after(id),
                _ => {}
            }
        }
        let beats = self.session.as_ref().and_then(Session::next_heartbeat);
        if beats.is_some_and(|at| at <= now) {
            self.call_session(To::Heartbeat);
            if let Some(session) = &mut self.session {
                session.sent(now);
            }
        }
    }

    /// When something is due that no event announces.
    pub(super) fn next_wakeup(&self) -> Option<Moment> {
        let session = self.session.as_ref();
        let all = [
            self.agenda.first().map(|(at, _)| *at),
            session.and_then(Session::next_heartbeat),
            session.map(Session::deadline),
        ];
        all.into_iter().flatten().min()
    }

    /// Asks for the lock, in a new place.
    fn begin(&mut self, id: LeaseId) {
        let Some(claim) = self.table.get_mut(&id) else {
            return;
        };
        claim.turn += 1;
        if claim.terms.wait.is_try() {
            claim.stage = Stage::Trying;
            self.ask_line(id, Step::Try);
        } else {
            self.create(id, false);
        }
    }

    /// Creates the claim's node, and looks at the line.
    fn create(&mut self, id: LeaseId, and_above: bool) {
        let (Some(claim), Some(session)) = (self.table.get_mut(&id), &self.session) else {
            return;
        };
        claim.stage = Stage::Creating;
        claim.turn += 1;
        let key = &claim.terms.key;
        if and_above {
            let above = self.paths.above_lock(key);
            let above = above.into_iter().map(|op| Call::new(op, To::Above(id)));
            self.calls.extend(above);
        }
        let stem = Entry::stem(claim.terms.kind, claim.token);
        let op = Op::Create {
            path: format!("{}/{stem}", self.paths.lock(key)),
            data: claim.data(session.timeout),
            mode: Mode::InLine,
        };
        let to = To::Claim(id, claim.turn, Step::Create);
        self.calls.push(Call::new(op, to));
        if self.comes(id) {
            self.ask_line(id, Step::Line { watched: false });
        }
    }

    /// Looks at the line again.
    fn look(&mut self, id: LeaseId, watched: bool) {
        if let Some(claim) = self.table.get_mut(&id) {
            claim.turn += 1;
            self.ask_line(id, Step::Line { watched });
        }
    }

    /// Looks whether the claim's own node is still there, and watches it.
    fn look_after(&mut self, id: LeaseId) {
        if let Some(node) = self.table.get(&id).and_then(|it| it.node) {
            self.ask_entry(id, node.entry, true, Step::Own);
        }
    }

    fn ask_line(&mut self, id: LeaseId, step: Step) {
        let Some(claim) = self.table.get(&id) else {
            return;
        };
        let op = Op::Children {
            path: self.paths.lock(&claim.terms.key),
            watch: step == Step::Line { watched: true },
        };
        let to = To::Claim(id, claim.turn, step);
        self.calls.push(Call::new(op, to));
    }

    /// Reads a node of the line.
    fn ask_entry(&mut self, id: LeaseId, entry: Entry, watch: bool, step: Step) {
        if entry.rests {
            self.call_session(To::Time);
        }
        let Some(claim) = self.table.get(&id) else {
            return;
        };
        let path = self.path(claim, entry);
        let to = To::Claim(id, claim.turn, step);
        self.calls.push(Call::new(Op::Read { path, watch }, to));
    }

    /// Writes to the session's node.
    fn call_session(&mut self, to: To) {
        if let Some(session) = &self.session {
            let op = Op::Write {
                path: self.paths.session(&session.identity),
                data: Vec::new(),
            };
            self.calls.push(Call::new(op, to));
        }
    }

    fn path(&self, claim: &Claim, entry: Entry) -> String {
        format!("{}/{entry}", self.paths.lock(&claim.terms.key))
    }

    /// Deletes a node, however long it takes.
    fn discard(&mut self, path: String) {
        let to = To::Leftover(path.clone());
        self.calls.push(Call::new(Op::Delete { path }, to));
    }

    /// Deletes what could not be deleted before.
    fn discard_leftovers(&mut self) {
        for path in std::mem::take(&mut self.leftovers) {
            self.discard(path);
        }
    }

    /// `None` if there is none, and the acquisition has failed.
    fn fresh_token(&mut self, id: LeaseId) -> Option<Token> {
        let token = self.tokens.next();
        if let Err(error) = &token {
            let cause: Cause = Arc::new(*error);
            self.outcomes.push_back(Outcome::Failed { id, cause });
        }
        token.ok()
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claims")
            .field("claims", &self.table.len())
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}
