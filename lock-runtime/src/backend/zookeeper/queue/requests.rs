//! The requests that are to be sent to the server.

use std::time::Duration;

use super::claim::Claim;
use crate::backend::claims::Turn;
use crate::backend::share::Share;
use crate::backend::zookeeper::call::{Call, Recipient, Step};
use crate::backend::zookeeper::protocol::entry::Entry;
use crate::backend::zookeeper::protocol::op::{ANY, Mode, Op};
use crate::backend::zookeeper::protocol::paths::Paths;
use crate::backend::zookeeper::session::Session;

/// Calls that are not sent yet, and the paths that they are about.
pub(super) struct Requests {
    pub(super) paths: Paths,
    calls: Vec<Call>,
    /// Nodes whose deletion was not confirmed.
    leftovers: Vec<String>,
}

impl Requests {
    pub(super) fn new(paths: Paths) -> Self {
        Self {
            paths,
            calls: Vec::new(),
            leftovers: Vec::new(),
        }
    }

    pub(super) fn send(&mut self, op: Op, to: Recipient) {
        self.calls.push(Call::new(op, to));
    }

    /// The requests to send.
    pub(super) fn take(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.calls)
    }

    /// Forgets what a session has asked for, but no deletion: what keeps a lock closed outlives the session.
    pub(super) fn end_session(&mut self) {
        for call in self.take() {
            if let Recipient::Leftover(path) = call.to {
                self.not_discarded(path);
            }
        }
    }

    /// Reads the queue of a lock.
    pub(super) fn list(&mut self, claim: &Claim, turn: Turn, step: Step) {
        let path = self.paths.lock(&claim.terms.key);
        let watch = step == Step::Queue { watched: true };
        self.send(Op::Children { path, watch }, Recipient::Claim(turn, step));
    }

    /// Reads a node of the queue of a lock.
    pub(super) fn read(
        &mut self,
        claim: &Claim,
        turn: Turn,
        entry: Entry,
        watch: bool,
        step: Step,
    ) {
        let path = self.path(claim, entry);
        self.send(Op::Read { path, watch }, Recipient::Claim(turn, step));
    }

    /// Creates the node of an acquisition.
    pub(super) fn create(&self, claim: &Claim, timeout: Duration) -> Op {
        let stem = Entry::stem(Share::of(&claim.terms), claim.token);
        Op::Create {
            path: format!("{}/{stem}", self.paths.lock(&claim.terms.key)),
            data: claim.data(timeout),
            mode: Mode::Sequential,
        }
    }

    /// Creates the node to which heartbeats are written.
    pub(super) fn create_session(&mut self, session: &Session) {
        for op in self.paths.above_session() {
            self.send(op, Recipient::Nobody);
        }
        let op = Op::Create {
            path: self.paths.session(&session.identity),
            data: Vec::new(),
            mode: Mode::Ephemeral,
        };
        self.send(op, Recipient::Session);
    }

    /// Writes to that node.
    pub(super) fn write_session(&mut self, session: &Session, to: Recipient) {
        let path = self.paths.session(&session.identity);
        let data = Vec::new();
        let write = Op::Write {
            path,
            data,
            version: ANY,
        };
        self.send(write, to);
    }

    /// Deletes a node, however long it takes.
    pub(super) fn discard(&mut self, path: String) {
        let to = Recipient::Leftover(path.clone());
        self.send(Op::Delete { path }, to);
    }

    /// A node is still to be deleted.
    pub(super) fn not_discarded(&mut self, path: String) {
        if !self.leftovers.contains(&path) {
            self.leftovers.push(path);
        }
    }

    /// Deletes what could not be deleted before.
    pub(super) fn discard_leftovers(&mut self) {
        for path in std::mem::take(&mut self.leftovers) {
            self.discard(path);
        }
    }

    pub(super) fn path(&self, claim: &Claim, entry: Entry) -> String {
        format!("{}/{entry}", self.paths.lock(&claim.terms.key))
    }
}
