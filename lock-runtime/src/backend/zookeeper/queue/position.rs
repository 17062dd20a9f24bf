//! The position of an acquisition in the queue of its lock: it has the lock, is behind others,
//! or finds a lock that cools down or is closed by a ticket. When that is over, the next acquisition
//! deletes its node.
//!
//! How long a lock has been closed is the difference of two times of the leader's clock:
//! when its node was created, and when the node of our session was written just now.
//!
//! Acquisitions of this manager may be right behind each other: nobody is between them, so
//! that neither looks at the queue, which may be long.
//!
//! The servers number the nodes of a queue without gaps. So an acquisition right after another one
//! of ours waits for that one; and when that one has held the lock and is gone, nobody is
//! ahead any more.

use std::time::Duration;

use super::claim::{Claim, Stage};
use super::{Entry, Queue, SHORT};
use crate::backend::Outcome;
use crate::backend::queue_order::Position;
use crate::backend::share::Share;
use crate::backend::zookeeper::call::{Recipient, Step};
use crate::backend::zookeeper::protocol::entry::{self, holders};
use crate::backend::zookeeper::protocol::op::Op;
use crate::backend::zookeeper::protocol::reply::{Change, Message, Stat};
use crate::base::clock::Moment;
use crate::types::crowd::Crowd;
use crate::types::holder::Holder;
use crate::types::kind::Kind;
use crate::types::terms::LeaseId;

/// How often a waiter looks whether the one ahead has entered, where nothing announces that.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// How often it looks at what closes the lock, while the time of the server is unknown.
const UNTIL_TIME: Duration = Duration::from_secs(1);

/// The queue of a lock after a change of this number.
#[derive(Clone, Copy, Default)]
pub(super) struct Snapshot<'a> {
    pub(super) entries: &'a [Entry],
    pub(super) changed: i64,
}

/// How many of a queue wait.
fn waiters(queue: &[Entry]) -> usize {
    queue.len().saturating_sub(holders(queue))
}

/// The waiters in a queue, without so many of ours.
fn crowd(queue: &[Entry], ours: usize) -> Crowd {
    let others = waiters(queue).saturating_sub(ours);
    Crowd {
        waiting: u32::try_from(others).unwrap_or(u32::MAX),
        ..Crowd::default()
    }
}

/// Whether its position follows from that of the one right ahead of it.
fn is_plain(claim: &Claim) -> bool {
    claim.terms.kind == Kind::Exclusive && claim.terms.simply_waits()
}

/// Whether nothing of it stays in the queue when it has left.
fn leaves_nothing(claim: &Claim) -> bool {
    is_plain(claim) && claim.terms.min_hold.is_none() && claim.downgrade.is_none()
}

impl Queue {
    /// A try that finds others in the queue does not enter it, nor does an acquisition that finds
    /// too many waiters.
    pub(super) fn tried(&mut self, id: LeaseId, queue: &[Entry]) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let shares: Vec<_> = queue.iter().map(|it| it.share).collect();
        let position = Position::of(&shares, Share::of(&claim.terms));
        match (position, queue.first()) {
            (Position::Behind(_) | Position::Next, Some(_)) if claim.is_refused(waiters(queue)) => {
                claim.crowd = crowd(queue, 0);
                self.refuse(id, queue);
            }
            _ => self.create(id),
        }
    }

    /// It has looked at the queue.
    pub(super) fn looked(&mut self, now: Moment, id: LeaseId, queue: Snapshot<'_>, watched: bool) {
        let Snapshot { entries, changed } = queue;
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if claim.stage == Stage::Finding {
            return self.search(id, entries);
        }
        let Some(node) = claim.node else {
            return;
        };
        let Some(at) = entries.iter().position(|it| *it == node) else {
            // Somebody has deleted its node while it waited.
            self.start_over(id);
            return self.begin(id);
        };
        let ahead = &entries[..at];
        let shares: Vec<_> = ahead.iter().map(|it| it.share).collect();
        let position = Position::of(&shares, Share::of(&claim.terms));
        let is_refused = claim.is_refused(at.saturating_sub(holders(entries)));
        claim.crowd = crowd(entries, 1);
        match position {
            Position::Enter => {
                // Those behind may have seen it wait.
                claim.announcing = claim.waited || at + 1 < entries.len();
                self.grant(now, id, changed);
            }
            Position::Behind(_) | Position::Next if is_refused => {
                self.discard_entry(id, node);
                self.refuse(id, ahead);
            }
            Position::Behind(at) => self.wait_behind(id, ahead[0], ahead[at]),
            Position::Next if watched => self.wait_for_anybody(id, ahead),
            Position::Next => self.look(id, true),
        }
    }

    /// Looks for a node whose creation was not confirmed.
    fn search(&mut self, id: LeaseId, queue: &[Entry]) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let ours = |it: &&Entry| it.token == claim.token && !it.is_timed();
        match queue.iter().find(ours) {
            Some(entry) => self.ask_entry(id, *entry, false, Step::Found(*entry)),
            None if claim.unwanted => self.released(id, Ok(false)),
            None => self.begin(id),
        }
    }

    /// Starts over with a fresh token, and with nothing that an earlier session knows of.
    pub(super) fn start_over(&mut self, id: LeaseId) {
        self.claims.next_turn(id);
        self.claims.reschedule(None, id);
        if let Some(token) = self.claims.fresh_token(id)
            && let Some(claim) = self.claims.get_mut(&id)
        {
            claim.start_over(token);
        }
    }

    /// Its own node is there, and nobody was ahead at the last change that is known.
    pub(super) fn entered(&mut self, now: Moment, id: LeaseId) {
        if let Some(claim) = self.claims.get(&id) {
            let changed = claim.changed;
            self.grant(now, id, changed);
        }
    }

    /// The fence is the number of the last change of the queue that shows the lock to be its
    /// own. A release is a change too, so the fence is larger than those of all earlier
    /// holders and smaller than those of all later ones. The number of its own node would
    /// not do: a waiter's node may be older than the last key of a holder of several.
    pub(super) fn grant(&mut self, now: Moment, id: LeaseId, changed: i64) {
        let (Some(session), Some(claim)) = (&self.session, self.claims.get_mut(&id)) else {
            return;
        };
        // A server that is behind shows the nodes of sessions that have ended.
        if now >= session.deadline() {
            return;
        }
        claim.stage = Stage::Held;
        claim.granted = now;
        claim.since = session.since();
        let token = Some(claim.token.number());
        self.claims.report(Outcome::Granted {
            id,
            fence: changed.unsigned_abs(),
            token,
            since: session.since(),
            ttl: session.timeout,
        });
        self.claims.reschedule(Some(now.after(SHORT)), id);
        self.announce(id);
        self.precedes(id);
    }

    /// Notifies the next waiter that this one has entered, unless that is confirmed.
    pub(super) fn announce(&mut self, id: LeaseId) {
        let (Some(session), Some(claim)) = (&self.session, self.claims.get(&id)) else {
            return;
        };
        let is_due = claim.announcing
            && claim.stage == Stage::Held
            && matches!(claim.terms.kind, Kind::Permits(_));
        if let Some(node) = claim.node.filter(|_| is_due) {
            let path = self.requests.path(claim, node);
            let data = claim.data(session.timeout);
            // Somebody may have written to it already, to ask for the lock.
            let write = Op::Write {
                path,
                data,
                version: 0,
            };
            self.requests.send(write, Recipient::Announcement(id));
        }
    }

    fn wait_behind(&mut self, id: LeaseId, front: Entry, ahead: Entry) {
        self.waits(id);
        self.ask_entry(id, ahead, true, Step::Ahead(ahead));
        if front != ahead {
            self.ask_entry(id, front, false, Step::Front(front));
        }
    }

    /// Messages come of everybody who leaves; but nobody leaves when a cooldown ends.
    fn wait_for_anybody(&mut self, id: LeaseId, ahead: &[Entry]) {
        self.waits(id);
        for cooling in ahead.iter().filter(|it| it.is_timed()) {
            self.ask_entry(id, *cooling, false, Step::Ahead(*cooling));
        }
        self.ask_entry(id, ahead[0], false, Step::Front(ahead[0]));
    }

    fn waits(&mut self, id: LeaseId) {
        self.claims.next_turn(id);
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.waited = true;
        }
    }

    /// A try ends as soon as it is known who holds the lock.
    fn refuse(&mut self, id: LeaseId, queue: &[Entry]) {
        self.claims.next_turn(id);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        claim.stage = Stage::Refused;
        claim.node = None;
        // One that is over has yet to be deleted.
        let timed = queue[..holders(queue)]
            .iter()
            .skip(1)
            .filter(|it| it.is_timed());
        for entry in timed {
            self.ask_entry(id, *entry, false, Step::Timed(*entry));
        }
        if let Some(first) = queue.get(holders(queue)) {
            self.ask_time();
            self.ask_entry(id, *first, false, Step::Waiter(*first));
        }
        self.ask_entry(id, queue[0], false, Step::Front(queue[0]));
    }

    /// The holder has left the lock since.
    pub(super) fn front_is_gone(&mut self, id: LeaseId) {
        let claim = self.claims.get_mut(&id);
        match claim.filter(|it| it.stage == Stage::Refused && !it.missed) {
            // A lock whose holders are faster than our round trips is not free: once more, and no longer.
            Some(claim) => {
                claim.missed = true;
                self.begin(id);
            }
            None => self.report_holder(id, None),
        }
    }

    /// Reports to a waiter who holds the lock, and to a try that it ends.
    pub(super) fn report_holder(&mut self, id: LeaseId, holder: Option<Holder>) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let crowd = claim.crowd;
        let holder = holder.map(|holder| Box::new(Holder { crowd, ..holder }));
        claim.holder.clone_from(&holder);
        if claim.stage == Stage::Refused {
            self.claims.retire(Outcome::Busy { id, holder });
        } else {
            self.claims.report(Outcome::Waiting { id, holder });
        }
    }

    /// Deletes a node of its queue, however long it takes.
    pub(super) fn discard_entry(&mut self, id: LeaseId, entry: Entry) {
        if let Some(claim) = self.claims.get(&id) {
            let path = self.requests.path(claim, entry);
            self.requests.discard(path);
        }
    }

    /// A node of the queue was read.
    pub(super) fn read(
        &mut self,
        now: Moment,
        id: LeaseId,
        step: Step,
        entry: Entry,
        data: &[u8],
        stat: Stat,
    ) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        // A node is also written when its holder is asked to yield. Only a permit of the same number
        // waits for the one ahead to enter: all others would find the same one ahead again.
        let kind = claim.terms.kind;
        let is_same_permit = matches!(kind, Kind::Permits(_)) && entry.share.kind == kind;
        let holder = entry::holder(data);
        let is_ahead = matches!(step, Step::Ahead(_));
        // It has entered since it was seen in the queue. If it is ahead once more, somebody has asked it to yield while it
        // waits, and its grant writes nothing.
        let has_entered = is_ahead && is_same_permit && !entry.is_timed() && stat.version > 0;
        let looks = has_entered && claim.passed.replace(entry) != Some(entry);
        if is_ahead {
            let path = self.requests.path(claim, entry);
            self.watches.node(path, id, |it| self.claims.contains(it));
        }
        if entry.is_timed() {
            return self.is_closed(now, id, step, entry, holder, stat);
        }
        if looks {
            return self.look(id, false);
        }
        if has_entered {
            self.claims.schedule(now.after(PAUSE), id);
        }
        match self.waits_ahead(id, entry) {
            Some(before) => self.report_same_holder(id, before),
            None => self.report_holder(id, Some(holder)),
        }
    }

    /// The lock cools down, or is closed by a ticket.
    fn is_closed(
        &mut self,
        now: Moment,
        id: LeaseId,
        step: Step,
        entry: Entry,
        mut holder: Holder,
        stat: Stat,
    ) {
        let left = entry::left(holder.remaining, stat, self.server_time);
        if left.is_zero() {
            return self.cooldown_is_over(id, entry, holder);
        }
        if matches!(step, Step::Timed(_)) {
            return;
        }
        holder.remaining = Some(left);
        // Somebody may have deleted the node to which the time is written.
        let again = if self.is_time_known {
            left
        } else {
            left.min(UNTIL_TIME)
        };
        self.claims.schedule(now.after(again), id);
        self.report_holder(id, Some(holder));
    }

    /// Deletes the node, which the servers may refuse. A waiter gets a message when the
    /// node is gone; a try begins again, but once only.
    fn cooldown_is_over(&mut self, id: LeaseId, entry: Entry, holder: Holder) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let is_try = claim.stage == Stage::Refused;
        if claim.discarded.replace(entry) == Some(entry) && is_try {
            return self.report_holder(id, Some(holder));
        }
        self.discard_entry(id, entry);
        if is_try {
            self.begin(id);
        }
    }

    /// Its node is going to be created: it looks at the queue then, unless it may come right
    /// behind another one of ours.
    pub(super) fn joins(&mut self, id: LeaseId) {
        let plain = self.claims.get(&id).filter(|it| is_plain(it));
        let key = plain.map(|it| it.terms.key.clone());
        let before = key.and_then(|key| self.tails.add(&key, id, &self.claims));
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.before = before;
        }
        if before.is_none() {
            self.ask_queue(id, Step::Queue { watched: false });
        }
    }

    /// Its node is there: it waits for the one of ours that is right ahead, or looks.
    pub(super) fn enters_queue(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let (Some(before), Some(node)) = (claim.before, claim.node) else {
            return;
        };
        let ahead = self.claims.get_mut(&before).and_then(|ahead| {
            let entry = ahead.node?;
            let is_near = entry.is_right_before(node);
            is_near.then(|| {
                ahead.follower = Some(id);
                (entry, ahead.stage == Stage::Held && leaves_nothing(ahead))
            })
        });
        let Some((entry, is_next)) = ahead else {
            return self.look(id, false);
        };
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.ahead = Some(entry);
            claim.is_next = is_next;
            claim.waited = true;
        }
        self.ask_entry(id, entry, true, Step::Ahead(entry));
    }

    /// It holds the lock, so that nobody is ahead of the one behind it when it has left.
    pub(super) fn precedes(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get(&id).filter(|it| leaves_nothing(it)) else {
            return;
        };
        if let Some(follower) = claim.follower
            && let Some(follower) = self.claims.get_mut(&follower)
            && follower.before == Some(id)
        {
            follower.is_next = true;
        }
    }

    /// The node that a waiter watched has changed.
    pub(super) fn woken(&mut self, id: LeaseId, message: &Message) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let ahead = claim.ahead.map(|it| self.requests.path(claim, it));
        let is_gone = message.change == Change::Deleted && ahead.as_ref() == Some(&message.path);
        if is_gone {
            self.ahead_is_gone(id);
        } else {
            self.look(id, false);
        }
    }

    /// The node that it watched is gone: it enters, or reads the queue again.
    pub(super) fn ahead_is_gone(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let is_next = claim.is_next && claim.ahead.is_some();
        claim.is_next = false;
        claim.ahead = None;
        match claim.node.filter(|_| is_next) {
            Some(node) => {
                let path = self.requests.paths.lock(&claim.terms.key);
                let watch = false;
                let to = Recipient::Claim(self.claims.next_turn(id), Step::Changed);
                self.requests.send(Op::Read { path, watch }, to);
                // Its own node may be gone, too. That it is there after the change shows that
                // the fence, the number of the change, is smaller than that of who comes later.
                self.ask_entry(id, node, false, Step::Enter);
            }
            None => self.look(id, false),
        }
    }

    /// The one of ours that waits with the node right ahead.
    pub(super) fn waits_ahead(&self, id: LeaseId, entry: Entry) -> Option<LeaseId> {
        let before = self.claims.get(&id)?.before?;
        let ahead = self.claims.get(&before)?;
        let is_waiting = ahead.stage == Stage::InQueue && ahead.node? == entry;
        is_waiting.then_some(before)
    }

    /// It waits for the same holder as the one right ahead, and for that one.
    pub(super) fn report_same_holder(&mut self, id: LeaseId, before: LeaseId) {
        let ahead = self.claims.get(&before);
        let holder = ahead.and_then(|it| it.holder.as_deref().cloned());
        let crowd = holder.as_ref().map(|it| it.crowd);
        if let (Some(crowd), Some(claim)) = (crowd, self.claims.get_mut(&id)) {
            claim.crowd = crowd;
            claim.crowd.waiting += 1;
        }
        self.report_holder(id, holder);
    }
}
