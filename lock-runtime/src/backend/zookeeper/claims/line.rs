//! What an acquisition finds in the line of its lock: the lock, or somebody ahead.

use std::time::Duration;

use super::claim::{Claim, Node, Stage};
use super::{Claims, Entry};
use crate::backend::Outcome;
use crate::backend::line::Place;
use crate::backend::zookeeper::call::{Call, Step, To};
use crate::backend::zookeeper::protocol::entry::holders;
use crate::backend::zookeeper::protocol::op::Op;
use crate::base::clock::Moment;
use crate::types::crowd::Crowd;
use crate::types::holder::Holder;
use crate::types::kind::Kind;
use crate::types::terms::LeaseId;

/// The line of a lock after a change of this number.
#[derive(Clone, Copy, Default)]
pub(super) struct Line<'a> {
    pub(super) entries: &'a [Entry],
    pub(super) changed: i64,
}

/// Who waits in a line, besides so many of ours.
fn crowd(line: &[Entry], ours: usize) -> Crowd {
    let waiters = line.len().saturating_sub(holders(line) + ours);
    Crowd {
        waiting: u32::try_from(waiters).unwrap_or(u32::MAX),
        longest: Duration::ZERO,
    }
}

impl Claims {
    /// A try that finds somebody in the line does not enter it.
    pub(super) fn tried(&mut self, id: LeaseId, line: &[Entry]) {
        let Some(claim) = self.table.get_mut(&id) else {
            return;
        };
        let kinds: Vec<_> = line.iter().map(|it| it.kind).collect();
        match (Place::of_newcomer(&kinds, claim.terms.kind), line.first()) {
            (Place::OtherPermits(held), _) => self.other_permits(id, held),
            (Place::Behind(_) | Place::Next, Some(_)) => {
                claim.crowd = crowd(line, 0);
                self.refuse(id, line);
            }
            _ => self.create(id, false),
        }
    }

    /// It has looked at the line.
    pub(super) fn looked(&mut self, now: Moment, id: LeaseId, line: Line<'_>, watched: bool) {
        let Line { entries, changed } = line;
        let Some(claim) = self.table.get_mut(&id) else {
            return;
        };
        if claim.stage == Stage::Finding {
            return self.search(id, entries);
        }
        let Some(node) = claim.node else {
            return;
        };
        let Some(at) = entries.iter().position(|it| *it == node.entry) else {
            return self.place_lost(id);
        };
        let ahead = &entries[..at];
        let kinds: Vec<_> = ahead.iter().map(|it| it.kind).collect();
        let place = if claim.looked {
            Place::of(&kinds, claim.terms.kind)
        } else {
            Place::of_newcomer(&kinds, claim.terms.kind)
        };
        claim.looked = true;
        claim.crowd = crowd(entries, 1);
        match place {
            Place::Enter => {
                // Those behind may have seen it wait.
                claim.announcing = claim.waited || at + 1 < entries.len();
                self.grant(now, id, changed.max(node.created));
                self.look_after(id);
            }
            Place::OtherPermits(held) => {
                self.discard_entry(id, node.entry);
                self.other_permits(id, held);
            }
            Place::Behind(_) | Place::Next if self.is_try(id) => {
                self.discard_entry(id, node.entry);
                self.refuse(id, ahead);
            }
            Place::Behind(at) => self.wait_behind(id, ahead[0], ahead[at]),
            Place::Next if watched => self.wait_for_anybody(id, ahead),
            Place::Next => self.look(id, true),
        }
    }

    /// Looks for a node whose creation was not confirmed.
    fn search(&mut self, id: LeaseId, line: &[Entry]) {
        let Some(claim) = self.table.get(&id) else {
            return;
        };
        let ours = |it: &&Entry| it.token == claim.token && !it.rests;
        match line.iter().find(ours) {
            Some(entry) => self.ask_entry(id, *entry, false, Step::Found(*entry)),
            None if claim.unwanted => self.end_release(id, Ok(false)),
            None => self.begin(id),
        }
    }

    /// Somebody has deleted its node while it waited.
    fn place_lost(&mut self, id: LeaseId) {
        if let Some(token) = self.fresh_token(id)
            && let Some(claim) = self.table.get_mut(&id)
        {
            claim.start_over(token);
            self.begin(id);
        }
    }

    /// Its own node is there, and nobody was ahead at the last change that is known.
    pub(super) fn entered(&mut self, now: Moment, id: LeaseId, node: Node) {
        if let Some(claim) = self.table.get(&id) {
            let path = self.path(claim, node.entry);
            let changed = claim.changed;
            self.watches.node(path, id);
            self.grant(now, id, changed.max(node.created));
        }
    }

    /// The fence is the number of the last change of the line that shows the lock to be its
    /// own. A release is a change too, so the fence is larger than those of all earlier
    /// holders and smaller than those of all later ones. The number of its own node would
    /// not do: a waiter's node may be older than the last key of a holder of several.
    fn grant(&mut self, now: Moment, id: LeaseId, changed: i64) {
        let (Some(session), Some(claim)) = (&self.session, self.table.get_mut(&id)) else {
            return;
        };
        // A server that is behind shows the nodes of sessions that have ended.
        if now >= session.deadline() {
            return;
        }
        claim.stage = Stage::Held;
        claim.granted = now;
        claim.told = session.since();
        self.outcomes.push_back(Outcome::Granted {
            id,
            fence: changed.unsigned_abs(),
            since: session.since(),
            ttl: session.timeout,
        });
        self.announce(id);
        self.precedes(id);
    }

    /// Tells the next one in line that this one has entered, unless that is confirmed.
    pub(super) fn announce(&mut self, id: LeaseId) {
        let (Some(session), Some(claim)) = (&self.session, self.table.get(&id)) else {
            return;
        };
        let is_due = claim.announcing
            && claim.stage == Stage::Held
            && matches!(claim.terms.kind, Kind::Permits(_));
        if let Some(node) = claim.node.filter(|_| is_due) {
            let path = self.path(claim, node.entry);
            let data = claim.data(session.timeout);
            let to = To::Announcement(id);
            self.calls.push(Call::new(Op::Write { path, data }, to));
        }
    }

    fn wait_behind(&mut self, id: LeaseId, front: Entry, ahead: Entry) {
        self.waits(id);
        self.ask_entry(id, ahead, true, Step::Ahead(ahead));
        if front != ahead {
            self.ask_entry(id, front, false, Step::Front(front));
        }
    }

    /// Messages come of everybody who leaves; but nobody leaves when a rest ends.
    fn wait_for_anybody(&mut self, id: LeaseId, ahead: &[Entry]) {
        self.waits(id);
        for rest in ahead.iter().filter(|it| it.rests) {
            self.ask_entry(id, *rest, false, Step::Ahead(*rest));
        }
        self.ask_entry(id, ahead[0], false, Step::Front(ahead[0]));
    }

    fn waits(&mut self, id: LeaseId) {
        if let Some(claim) = self.table.get_mut(&id) {
            claim.waited = true;
            claim.turn += 1;
        }
    }

    /// A try ends as soon as it is known who holds the lock.
    fn refuse(&mut self, id: LeaseId, line: &[Entry]) {
        let Some(claim) = self.table.get_mut(&id) else {
            return;
        };
        claim.stage = Stage::Refused;
        claim.node = None;
        claim.turn += 1;
        if let Some(first) = line.get(holders(line)) {
            self.call_session(To::Time);
            self.ask_entry(id, *first, false, Step::Waiter(*first));
        }
        self.ask_entry(id, line[0], false, Step::Front(line[0]));
    }

    fn other_permits(&mut self, id: LeaseId, held: u32) {
        if let Some(claim) = self.table.remove(&id) {
            let outcome = Outcome::other_permits(id, claim.terms.kind, held);
            self.outcomes.push_back(outcome);
        }
    }

    /// Whoever held the lock has left it since.
    pub(super) fn front_is_gone(&mut self, id: LeaseId) {
        if self.is_try(id) {
            self.begin(id);
        } else {
            self.tell_waiter(id, None);
        }
    }

    /// A waiter is told who holds the lock, and a try that it ends.
    pub(super) fn tell_waiter(&mut self, id: LeaseId, holder: Option<Holder>) {
        let Some(claim) = self.table.get_mut(&id) else {
            return;
        };
        let crowd = claim.crowd;
        let holder = holder.map(|holder| Box::new(Holder { crowd, ..holder }));
        claim.holder.clone_from(&holder);
        if claim.stage == Stage::Refused {
            self.table.remove(&id);
            self.outcomes.push_back(Outcome::Busy { id, holder });
        } else {
            self.outcomes.push_back(Outcome::Waiting { id, holder });
        }
    }

    fn is_try(&self, id: LeaseId) -> bool {
        let is_try = |it: &Claim| it.terms.wait.is_try();
        self.table.get(&id).is_some_and(is_try)
    }

    /// Deletes a node of its line, however long it takes.
    pub(super) fn discard_entry(&mut self, id: LeaseId, entry: Entry) {
        if let Some(claim) = self.table.get(&id) {
            self.discard(self.path(claim, entry));
        }
    }

    /// Looks again when `time` has passed.
    pub(super) fn look_in(&mut self, now: Moment, id: LeaseId, time: Duration) {
        self.agenda.insert((now.after(time), id));
    }
}
