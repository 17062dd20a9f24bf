//! Answers of the server to what acquisitions have asked.

use std::time::Duration;

use super::claim::{Claim, Downgrade, Stage};
use super::position::{PAUSE, Snapshot};
use super::{Entry, Queue, writes};
use crate::backend::Outcome;
use crate::backend::claims::Turn;
use crate::backend::zookeeper::call::{Recipient, Step, cause};
use crate::backend::zookeeper::protocol::entry::is_asked;
use crate::backend::zookeeper::protocol::reply::{Reply, Stat, Trouble};
use crate::base::clock::Moment;
use crate::types::terms::LeaseId;

/// The attempts to create the nodes above a lock before this counts as refused.
const ATTEMPTS: u32 = 3;

impl Queue {
    /// The server has answered.
    pub(in super::super) fn replied(
        &mut self,
        now: Moment,
        to: Recipient,
        reply: Result<Reply, Trouble>,
    ) {
        match (to, reply) {
            (Recipient::Claim(turn, step), reply) => self.answered(now, turn, step, reply),
            (Recipient::Alone(turn, step), reply) => {
                self.writes.ended(writes::ALONE);
                self.answered(now, turn, step, reply);
            }
            (Recipient::Watches, Err(_)) => self.watch_again(),
            (Recipient::Batch(members), reply) => self.written(now, members, reply),
            (Recipient::Heartbeat, Ok(_)) => self.beaten(),
            (Recipient::Heartbeat, Err(trouble)) => self.beat_refused(now, trouble),
            (Recipient::Time, Ok(Reply::Stat(stat))) => {
                self.server_time = stat.written;
                self.is_time_known = true;
            }
            (Recipient::Time, Err(_)) => self.is_time_known = false,
            (Recipient::Above(id), Err(trouble)) => self.above_refused(id, trouble),
            (Recipient::Announcement(id), reply) => self.announced(id, reply.err()),
            (Recipient::Leftover(_), Ok(_) | Err(Trouble::NoNode)) => {}
            (Recipient::Leftover(path), Err(_)) => self.requests.not_discarded(path),
            _ => {}
        }
    }

    pub(super) fn answered(
        &mut self,
        now: Moment,
        turn: Turn,
        step: Step,
        reply: Result<Reply, Trouble>,
    ) {
        let id = turn.id;
        let Some(claim) = self.claims.in_turn(turn) else {
            return;
        };
        match (step, &reply) {
            (Step::Create | Step::Leave, Ok(_)) => self.containers.used(now, &claim.terms.key),
            (Step::Create, Err(_)) => self.containers.forget(&claim.terms.key),
            _ => {}
        }
        match (step, reply) {
            (Step::Leave, reply) => self.left(now, id, reply.err()),
            (Step::Issued, Ok(_)) => self.released(id, Ok(true)),
            (Step::Issued, Err(Trouble::NoNode)) => self.released(id, Ok(false)),
            (Step::Issued, Err(trouble)) => {
                self.may_be_issued(id);
                self.released(id, Err(cause(trouble)));
            }
            (Step::Writer | Step::Downgrade | Step::Reader, reply) => {
                self.downgrade_answered(id, step, reply);
            }
            (Step::Seek | Step::Ticket(_) | Step::Adopt(_) | Step::Adopted, reply) => {
                self.goes_on_adopting(now, id, step, reply);
            }
            (Step::Create, Ok(Reply::Created { path })) => self.created(id, &path),
            (Step::Try, Ok(Reply::Children { names, .. })) => {
                self.tried(id, &Entry::queue(&names));
            }
            (Step::Create | Step::Try, Err(Trouble::NoNode)) => self.nothing_above(id),
            (Step::Queue { watched }, Ok(Reply::Children { names, changed })) => {
                if watched {
                    let path = self.requests.paths.lock(&claim.terms.key);
                    self.watches
                        .children(path, id, |it| self.claims.contains(it));
                }
                let queue = Snapshot {
                    entries: &Entry::queue(&names),
                    changed,
                };
                self.looked(now, id, queue, watched);
            }
            (Step::Queue { .. }, Err(Trouble::NoNode)) => {
                self.looked(now, id, Snapshot::default(), false);
            }
            (Step::Found(entry), Ok(Reply::Data { stat, .. })) => self.found(id, entry, stat),
            (
                Step::Ahead(entry) | Step::Front(entry) | Step::Timed(entry),
                Ok(Reply::Data { data, stat }),
            ) => {
                self.read(now, id, step, entry, &data, stat);
            }
            // Others may have deleted the node right ahead, and with it the whole queue.
            (
                Step::Found(_) | Step::Ahead(_) | Step::Changed | Step::Enter,
                Err(Trouble::NoNode),
            )
            | (Step::Sync, Ok(_)) => self.look(id, false),
            (Step::Changed, Ok(Reply::Data { stat, .. })) => claim.changed = stat.pzxid,
            (Step::Enter, Ok(_)) => self.entered(now, id),
            (Step::Waiter(_), Ok(Reply::Data { stat, .. })) => {
                let waited = self.server_time.saturating_sub(stat.created);
                let waited = u64::try_from(waited).unwrap_or(0);
                claim.crowd.longest = Duration::from_millis(waited);
            }
            (Step::Front(_), Err(Trouble::NoNode)) => self.front_is_gone(id),
            // The holder may be unknown.
            (Step::Front(_), Err(_)) => self.report_holder(id, None),
            (Step::Own, Ok(reply)) => {
                if let Some(node) = claim.node {
                    let path = self.requests.path(claim, node);
                    self.watches.node(path, id, |it| self.claims.contains(it));
                }
                if matches!(&reply, Reply::Data { data, .. } if is_asked(data)) {
                    self.claims.report(Outcome::Wanted { id });
                }
            }
            (Step::Own, Err(Trouble::NoNode)) => self.revoked(id),
            (Step::Own, Err(_)) => {
                let pause = self.session.as_ref().map(|it| it.timeout / 4);
                let again = now.after(pause.unwrap_or_default());
                self.claims.schedule(again, id);
            }
            // The first waiter's wait is reported if it is known.
            (Step::Waiter(_) | Step::Timed(_), Err(_)) => {}
            (_, Err(Trouble::Busy)) if claim.can_ask_again() => self.busy(now, id),
            (Step::Found(entry), Err(trouble)) => {
                self.discard_entry(id, entry);
                self.failed(id, trouble);
            }
            (_, Err(trouble)) => self.failed(id, trouble),
            // The answer does not fit the request.
            (_, Ok(_)) => self.failed(id, Trouble::Other(0)),
        }
    }

    /// Its node cannot be created where nothing is above it.
    fn nothing_above(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        claim.without_above += 1;
        match claim.above_refused.take() {
            // The servers also refuse to create an existing node, and they remove empty ones.
            Some(trouble) if claim.without_above >= ATTEMPTS => self.failed(id, trouble),
            _ if claim.unwanted => self.released(id, Ok(false)),
            _ => self.create_with_above(id),
        }
    }

    fn above_refused(&mut self, id: LeaseId, trouble: Trouble) {
        if let Some(claim) = self.claims.get_mut(&id)
            && !matches!(trouble, Trouble::NodeExists | Trouble::NoNode)
        {
            claim.above_refused = Some(trouble);
        }
    }

    /// Those behind are notified that it has entered, or will be with the next heartbeat.
    fn announced(&mut self, id: LeaseId, trouble: Option<Trouble>) {
        match (trouble, self.claims.get_mut(&id)) {
            // Those behind it have been notified by an earlier write, too.
            (None | Some(Trouble::Written), Some(claim)) => claim.announcing = false,
            (Some(Trouble::NoNode), _) => self.revoked(id),
            _ => {}
        }
    }

    /// Its node is in the queue.
    fn created(&mut self, id: LeaseId, path: &str) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let name = path.rsplit('/').next().unwrap_or_default();
        let Some(entry) = Entry::parse(name) else {
            return self.failed(id, Trouble::Other(0));
        };
        claim.node = Some(entry);
        claim.stage = Stage::InQueue;
        claim.without_above = 0;
        if claim.unwanted {
            self.leave(id, None);
        } else {
            self.enters_queue(id);
        }
    }

    /// A node with its token is there, after an answer was lost.
    fn found(&mut self, id: LeaseId, entry: Entry, stat: Stat) {
        let session = self.session.as_ref().map(|it| it.identity.id);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        // That of a session that has ended may still be shown.
        if session != Some(stat.owner) {
            self.start_over(id);
            return self.begin(id);
        }
        claim.node = Some(entry);
        claim.stage = Stage::InQueue;
        if claim.unwanted {
            self.leave(id, None);
        } else {
            self.look(id, false);
        }
    }

    /// It asks again after a pause, in its position if it has one.
    fn busy(&mut self, now: Moment, id: LeaseId) {
        self.claims.next_turn(id);
        if let Some(claim) = self.claims.get_mut(&id)
            && claim.stage != Stage::InQueue
        {
            claim.stage = Stage::Fresh;
        }
        self.claims.schedule(now.after(PAUSE), id);
        let cause = cause(Trouble::Busy);
        let soon = true;
        self.claims.report(Outcome::Trouble { id, cause, soon });
    }

    /// The server will not do it.
    fn failed(&mut self, id: LeaseId, trouble: Trouble) {
        if let Some(node) = self.claims.get(&id).and_then(|it| it.node) {
            self.discard_entry(id, node);
        }
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let cause = cause(trouble);
        let outcome = if claim.unwanted {
            let result = Err(cause);
            Outcome::Released { id, result }
        } else {
            Outcome::Failed { id, cause }
        };
        if claim.stage == Stage::Finding {
            // Its node may be there. It is looked for with each heartbeat.
            claim.unwanted = true;
            self.claims.report(outcome);
        } else {
            self.claims.retire(outcome);
        }
    }

    /// Its node is gone, and with it the lock.
    fn revoked(&mut self, id: LeaseId) {
        // A writer's node gives way to a reader's.
        let is_held =
            |it: &Claim| it.stage == Stage::Held && it.downgrade != Some(Downgrade::Asked);
        if self.claims.get(&id).is_some_and(is_held) {
            self.lost(id);
        }
    }

    fn beat_refused(&mut self, now: Moment, trouble: Trouble) {
        if let Some(session) = &mut self.session {
            session.refused(now);
            // Somebody has deleted the session's node.
            if trouble == Trouble::NoNode {
                self.requests.create_session(session);
            }
        }
    }

    /// A heartbeat is confirmed, and the renewals that wait for it.
    fn beaten(&mut self) {
        if let Some(session) = &mut self.session {
            session.confirmed();
        }
        for id in self.claims.ids(|it| it.renewing) {
            self.renew(id);
        }
        self.requests.discard_leftovers();
        for id in self.claims.ids(|it| it.unwanted) {
            match self.claims.get(&id).map(|it| it.stage) {
                Some(Stage::Finding) => self.look(id, false),
                Some(Stage::Seeking) => self.seek(id),
                _ => {}
            }
        }
        for id in self.claims.ids(|it| it.announcing) {
            self.announce(id);
        }
    }
}
