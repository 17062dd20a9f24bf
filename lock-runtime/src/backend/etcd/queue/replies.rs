//! Applies answers, and the events of watches and sessions, to claims.

use std::time::Duration;

use super::claim::{Claim, Stage};
use super::lease::SessionEvent;
use super::{LONG_PAUSE, PAUSE, Queue, Recipient, Seen, Step};
use crate::backend::Outcome;
use crate::backend::claims::Turn;
use crate::backend::etcd::protocol::ahead::{Ahead, Front};
use crate::backend::etcd::protocol::call::{Reply, Sent};
use crate::backend::etcd::protocol::entry;
use crate::backend::etcd::protocol::keys::Span;
use crate::backend::etcd::protocol::messages::{KeyValue, RangeResponse, TxnResponse};
use crate::backend::etcd::protocol::notes;
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::base::clock::Moment;
use crate::types::terms::LeaseId;

impl Queue {
    /// The answer to a call; to a keep-alive, that of one member.
    pub(crate) fn answered(
        &mut self,
        now: Moment,
        sent: &Sent<Recipient>,
        result: Result<Reply, Trouble>,
    ) {
        match sent.to {
            Recipient::Session(ttl, step) => self.with_session(now, ttl, |session, around| {
                session.answered(now, sent.at, step, result, around)
            }),
            Recipient::Claim(turn, step) => {
                if step.is_write() {
                    self.batches.landed();
                }
                self.step_answered(now, turn, step, result);
            }
            Recipient::Batch(number) => {
                if let Err(Trouble::NoSpace(_)) = &result {
                    self.may_be_done(number);
                }
                for (sent, result) in self.batches.answered(number, result) {
                    if let Recipient::Claim(turn, step) = sent.to {
                        self.step_answered(now, turn, step, result);
                    }
                }
            }
            Recipient::Notes => self.lease_of_notes(now, result),
            Recipient::Cluster => {}
            Recipient::Query(number) => self.inspected(number, result),
        }
    }

    /// The calls of a transaction that may have been done are sent again by themselves.
    fn may_be_done(&mut self, transaction: u64) {
        for recipient in self.batches.recipients(transaction) {
            let Recipient::Claim(turn, step) = recipient else {
                continue;
            };
            let Some(claim) = self.claims.in_turn(*turn) else {
                continue;
            };
            match step {
                Step::Enter => claim.may_be_made = true,
                _ => claim.may_be_deleted = true,
            }
        }
    }

    fn step_answered(
        &mut self,
        now: Moment,
        turn: Turn,
        step: Step,
        result: Result<Reply, Trouble>,
    ) {
        let claim = self.claims.in_turn(turn);
        let Some(claim) = claim.filter(|it| it.awaits) else {
            return;
        };
        claim.awaits = false;
        let lock = claim.terms.key.clone();
        // Calls about a lock that write go one after the other.
        if step.is_write() {
            self.key_orders.end(&lock);
        }
        self.claim_answered(now, turn.id, step, result);
        if step.is_write() {
            self.pump(now, &lock);
        }
    }

    fn claim_answered(
        &mut self,
        now: Moment,
        id: LeaseId,
        step: Step,
        result: Result<Reply, Trouble>,
    ) {
        match (step, result) {
            (Step::Enter, _) if self.is_outlived(id) => self.start_over(now, id),
            (Step::Enter, Ok(Reply::Txn(txn))) => self.entered(now, id, txn),
            (Step::Enter, Err(trouble)) => self.not_entered(now, id, &trouble),
            (Step::Look, Ok(Reply::Txn(txn))) => self.looked(now, id, txn),
            (Step::Check, Ok(Reply::Range(range))) => self.checked(now, id, &range),
            (Step::Announce, Ok(Reply::Txn(txn))) => self.announced(now, id, txn),
            (Step::Lease, Ok(Reply::Lease(granted))) => {
                if let Some(claim) = self.claims.get_mut(&id)
                    && let Stage::Moving { lease, .. } | Stage::Issuing { lease, .. } =
                        &mut claim.stage
                {
                    *lease = Some(granted.id);
                    self.go_on(now, id);
                }
            }
            (Step::Move, Ok(Reply::Txn(txn))) => self.moved(now, id, &txn),
            (Step::Delete, Ok(Reply::Deleted(it))) => self.deleted(id, it.deleted > 0),
            (Step::Delete, Ok(Reply::Txn(txn))) => self.deleted(id, txn.deleted() > 0),
            (Step::Downgrade, Ok(Reply::Txn(txn))) => self.downgraded(now, id, txn),
            (Step::Downgrade, Err(Trouble::Never(cause))) => self.not_downgraded(id, cause),
            (Step::Issue, Ok(Reply::Txn(txn))) => self.issued(now, id, txn),
            (Step::Seek, Ok(Reply::Range(range))) => self.sought(now, id, range),
            (Step::Adopt, Ok(Reply::Txn(txn))) => self.adopted(now, id, txn),
            (Step::Note, Ok(Reply::Txn(txn))) => self.has_noted(now, id, txn),
            (Step::Seek | Step::Adopt, Err(trouble)) if !self.is_in(id, Stage::Leaving) => {
                self.not_adopted(now, id, &trouble);
            }
            (Step::Note, Err(trouble @ (Trouble::NoLease(_) | Trouble::Unknown(_)))) => {
                self.not_noted(now, id, &trouble);
            }
            (_, Err(Trouble::Never(cause))) if self.acquires(id) => self.fail(now, id, cause),
            (_, result) => self.try_again(now, id, result),
        }
    }

    /// The entry has been made, or was there already; or it could not be made.
    fn entered(&mut self, now: Moment, id: LeaseId, txn: TxnResponse) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let (succeeded, revision) = (txn.succeeded, txn.revision());
        let is_noted = succeeded && notes::is_written(&txn);
        let mut reads = txn.ranges();
        if succeeded {
            claim.created = revision;
            claim.modified = revision;
            claim.seen = revision;
        } else {
            let found = reads.next().unwrap_or_default().kvs.pop();
            let Some(found) = found else {
                let marker = reads.next().unwrap_or_default();
                let front = Front::read(&self.keys, reads.next().unwrap_or_default());
                return self.refused(now, id, &front, &marker);
            };
            if !entry::is_of(&found.value, claim.token) {
                return self.find_another_slot(id);
            }
            claim.created = found.create_revision;
            claim.modified = found.mod_revision;
            claim.seen = revision;
        }
        if claim.leaving.is_some() {
            return self.leave(now, id);
        }
        if !succeeded {
            claim.stage = Stage::Looking;
            return self.go_on(now, id);
        }
        let limited = !claim.reads_all;
        match Ahead::read(&self.keys, claim.terms.kind, &mut reads, limited) {
            Some(ahead) => {
                if is_noted {
                    self.is_noted(id, reads);
                }
                self.find_position(now, id, ahead, false, revision);
            }
            None => self.read_all(now, id),
        }
    }

    /// There is an entry in its slot that is not its own: of one who adopted it, or that was deleted before, since a
    /// backup was put back.
    fn find_another_slot(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let lock = claim.terms.key.clone();
        let other = self.slots.take(&lock);
        if let Some(slot) = claim.slot.replace(other) {
            self.slots.give_up(&lock, slot);
        }
        if claim.leaving.is_some() {
            return self.released(id, Ok(false));
        }
        claim.stage = Stage::Unsent;
        self.key_orders.join_first(&lock, id);
    }

    /// There is no entry, because a try has found the lock held, or since the session has
    /// ended or moved on meanwhile.
    fn refused(&mut self, now: Moment, id: LeaseId, front: &Front, marker: &RangeResponse) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if claim.leaving.is_some() {
            return self.released(id, Ok(false));
        }
        if front.is_foreign() && !claim.reads_all {
            claim.reads_all = true;
            claim.stage = Stage::Unsent;
            return self.key_orders.join_first(&claim.terms.key, id);
        }
        let revision = marker.kvs.first().map(|marker| marker.mod_revision);
        // Otherwise the session has refused it, and not the queue.
        let is_on_session = revision == Some(claim.epoch);
        if claim.terms.wait.is_try() && is_on_session && !front.is_empty() {
            let holder = front.holder(0);
            return self.retire(Outcome::Busy { id, holder });
        }
        let (lock, ttl, lease) = (claim.terms.key.clone(), claim.ttl(), claim.lease);
        claim.stage = Stage::Unsent;
        self.key_orders.join_first(&lock, id);
        self.with_session(now, ttl, |session, _| {
            session.found_marker(now, lease, revision)
        });
    }

    fn not_entered(&mut self, now: Moment, id: LeaseId, trouble: &Trouble) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let (lock, ttl, lease) = (claim.terms.key.clone(), claim.ttl(), claim.lease);
        if let Trouble::Unknown(_) = trouble {
            claim.stage = Stage::Unsure;
            (claim.may_be_made, claim.may_come_late) = (true, true);
            self.trouble(id, trouble);
            return self.with_session(now, ttl, |session, around| session.move_on(now, around));
        }
        claim.may_be_made |= matches!(trouble, Trouble::NoSpace(_));
        if claim.leaving.is_some() {
            // An earlier call without an answer may have made the entry.
            return if claim.may_be_made {
                self.leave(now, id);
            } else {
                self.released(id, Ok(false));
            };
        }
        claim.stage = Stage::Unsent;
        match trouble {
            Trouble::Never(cause) => {
                let cause = cause.clone();
                self.refuse(now, id, cause);
            }
            // It may be that of the notes. That of the session has a marker, which the next call compares.
            Trouble::NoLease(_) if self.history.is_kept() => {
                self.history.forget_lease();
                self.key_orders.join_first(&lock, id);
            }
            Trouble::NoLease(_) => {
                self.key_orders.join_first(&lock, id);
                self.with_session(now, ttl, |session, _| session.ended(now, lease));
            }
            _ => {
                self.key_orders.join_first(&lock, id);
                self.key_orders.pause(&lock);
                self.claims.schedule(now.after(PAUSE), id);
                self.trouble(id, trouble);
            }
        }
    }

    fn looked(&mut self, now: Moment, id: LeaseId, txn: TxnResponse) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if !matches!(claim.stage, Stage::Waiting | Stage::Looking) {
            return;
        }
        let by_majority = std::mem::take(&mut claim.by_majority);
        let revision = txn.revision();
        let mut reads = txn.ranges();
        let own = reads.next().unwrap_or_default().kvs.pop();
        if own.is_none_or(|own| own.create_revision != claim.created) {
            if by_majority {
                return self.start_over(now, id);
            }
            // The member may be behind the others, and not know it yet.
            claim.by_majority = true;
            claim.stage = Stage::Looking;
            return self.go_on(now, id);
        }
        claim.seen = revision;
        // A member shows an event shortly before its reads have it. A read by a majority has it.
        if revision < claim.notified && !by_majority {
            claim.by_majority = true;
            claim.stage = Stage::Looking;
            return self.go_on(now, id);
        }
        let limited = !claim.reads_all;
        match Ahead::read(&self.keys, claim.terms.kind, &mut reads, limited) {
            Some(ahead) => self.find_position(now, id, ahead, true, revision),
            None => self.read_all(now, id),
        }
    }

    fn checked(&mut self, now: Moment, id: LeaseId, range: &RangeResponse) {
        let claim = self.claims.get_mut(&id);
        let Some(claim) = claim.filter(|it| it.is_held()) else {
            return;
        };
        let is_own = |kv: &&KeyValue| kv.create_revision == claim.created;
        let Some(own) = range.kvs.iter().find(is_own) else {
            return self.lose(id);
        };
        let is_asked = entry::is_asked(&own.value);
        claim.modified = own.mod_revision;
        claim.unwatched = false;
        let key = claim.key.clone();
        if is_asked {
            self.claims.report(Outcome::Wanted { id });
        }
        let (end, behind) = (Vec::new(), range.revision().saturating_add(1));
        self.watch(id, Span { key, end }, behind, true);
        self.settle(now, id);
    }

    /// Those behind have been notified, or the entry is gone.
    fn announced(&mut self, now: Moment, id: LeaseId, txn: TxnResponse) {
        let claim = self.claims.get_mut(&id);
        let Some(claim) = claim.filter(|it| it.is_held()) else {
            return;
        };
        claim.announces = false;
        claim.modified = txn.revision();
        if !txn.succeeded {
            let found = txn.ranges().next().unwrap_or_default().kvs.pop();
            let own = found.filter(|own| own.create_revision == claim.created);
            let Some(own) = own else {
                return self.lose(id);
            };
            // Waiters have seen that write: an announcement without an answer, or a request to
            // yield.
            claim.modified = own.mod_revision;
            if entry::is_asked(&own.value) {
                self.claims.report(Outcome::Wanted { id });
            }
        }
        self.settle(now, id);
    }

    fn moved(&mut self, now: Moment, id: LeaseId, txn: &TxnResponse) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let Stage::Moving { cools_until, .. } = claim.stage else {
            return;
        };
        let lock = claim.terms.key.clone();
        self.key_orders.end(&lock);
        if txn.succeeded {
            if let Some(noted) = &mut claim.noted {
                noted.is_ended = true;
            }
            claim.stage = Stage::CoolingDown { until: cools_until };
            self.claims.schedule(cools_until, id);
            let result = Ok(true);
            self.claims.report(Outcome::Released { id, result });
        } else {
            self.released(id, Ok(false));
        }
        self.pump(now, &lock);
    }

    fn deleted(&mut self, id: LeaseId, was_there: bool) {
        if let Some(claim) = self.claims.get(&id) {
            let held = claim.granted && (was_there || claim.may_be_deleted);
            if claim.takes_back {
                return self.retire(Outcome::NoTicket { id });
            }
            self.released(id, Ok(held));
        }
    }

    /// A call that has failed is sent again.
    fn try_again(&mut self, now: Moment, id: LeaseId, result: Result<Reply, Trouble>) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let mut pause = PAUSE;
        match (&mut claim.stage, &result) {
            // It has failed to read the queue.
            (stage @ Stage::Waiting, _) => *stage = Stage::Looking,
            (Stage::Leaving, Err(trouble @ (Trouble::Unknown(_) | Trouble::NoSpace(_)))) => {
                claim.may_be_deleted = true;
                claim.may_come_late |= matches!(trouble, Trouble::Unknown(_));
            }
            // The lease on which it was to cool down has ended before the entry was there.
            (
                Stage::Moving { lease, .. } | Stage::Issuing { lease, .. },
                Err(Trouble::NoLease(_)),
            ) => *lease = None,
            // Nobody takes back a lock twice.
            (Stage::Leaving, Err(Trouble::Never(_))) if claim.takes_back => {}
            (
                Stage::Leaving | Stage::Moving { .. } | Stage::Issuing { .. },
                Err(Trouble::Never(cause)),
            ) => {
                let result = Err(cause.clone());
                self.claims.report(Outcome::Released { id, result });
                self.uses_no_lease(id);
                pause = LONG_PAUSE;
            }
            _ => {}
        }
        self.claims.schedule(now.after(pause), id);
        if let Err(trouble) = result {
            self.trouble(id, &trouble);
        }
    }

    /// Whether the lease has been lost since the entry of a claim was asked for.
    fn is_outlived(&self, id: LeaseId) -> bool {
        let claim = self.claims.get(&id).filter(|it| it.leaving.is_none());
        claim.is_some_and(|claim| {
            let session = self.sessions.get(&claim.ttl());
            !session.is_some_and(|session| session.is_on(claim.lease))
        })
    }

    fn acquires(&self, id: LeaseId) -> bool {
        self.claims.get(&id).is_some_and(Claim::acquires)
    }

    /// A watch has seen something.
    pub(crate) fn seen(&mut self, now: Moment, watch: u64, seen: &Seen) {
        let Some(id) = self.watches.claim(watch) else {
            return;
        };
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if let Seen::Changed(at) | Seen::Deleted(at) = seen {
            claim.notified = claim.notified.max(*at);
        }
        match (seen, claim.stage) {
            (Seen::Deleted(_), Stage::Held { .. }) => self.lose(id),
            // Nobody comes to be ahead of it, so that nobody is by now. A member that is behind
            // the others shows deletions of earlier entries under the same key, too.
            (Seen::Deleted(at), Stage::Waiting | Stage::Looking)
                if claim.follows_one && *at > claim.known =>
            {
                claim.known = *at;
                claim.announces = true;
                // It may be reading the queue.
                claim.awaits = false;
                self.unwatch(id);
                self.enter(now, id);
            }
            // The last read saw everything before the start of the watch.
            (Seen::Begun(at), Stage::Waiting) if *at <= claim.known => {}
            (Seen::Begun(_) | Seen::Changed(_) | Seen::Deleted(_), Stage::Waiting) => {
                claim.stage = Stage::Looking;
                self.go_on(now, id);
            }
            // It has announced that it has entered, or somebody asks for the lock.
            (Seen::Changed(_), Stage::Held { .. }) => {
                claim.unwatched = true;
                let awaits = claim.awaits;
                self.unwatch(id);
                // An answer that is awaited settles it too.
                if !awaits {
                    self.settle(now, id);
                }
            }
            (Seen::Begun(_) | Seen::Changed(_) | Seen::Deleted(_), _) => {}
            (Seen::Ended, _) => {
                // It looks for itself, and watches from there.
                claim.unwatched = true;
                self.unwatch(id);
                self.claims.schedule(now.after(PAUSE), id);
            }
        }
    }

    /// Acts on what a session has learnt.
    pub(super) fn act_on(&mut self, now: Moment, ttl: Duration, event: SessionEvent) {
        match event {
            SessionEvent::Nothing => {}
            SessionEvent::Ready => self.each_user(ttl, |this, id| this.is_ready(now, id)),
            SessionEvent::Confirmed => self.are_confirmed(now, ttl),
            SessionEvent::Lost => {
                if let Some(session) = self.sessions.get_mut(&ttl) {
                    session.renewing.clear();
                }
                self.each_user(ttl, |this, id| this.is_lost(now, id));
            }
            SessionEvent::Failed(trouble) => self.are_unconfirmed(now, ttl, &trouble),
        }
    }

    /// All claims of a session, in the order in which they were asked for.
    fn each_user(&mut self, ttl: Duration, does: impl Fn(&mut Self, LeaseId)) {
        for id in self.claims.ids(|it| it.ttl() == ttl) {
            does(self, id);
        }
    }

    /// Entries can be made on the lease of a claim, and late calls make none.
    fn is_ready(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let lock = claim.terms.key.clone();
        match claim.stage {
            Stage::Unsent => self.pump(now, &lock),
            Stage::Unsure if claim.leaving.is_some() => self.leave(now, id),
            Stage::Adopting => self.go_on(now, id),
            Stage::Unsure => {
                claim.stage = Stage::Unsent;
                self.key_orders.join_first(&lock, id);
                self.pump(now, &lock);
            }
            _ => {}
        }
    }

    fn are_confirmed(&mut self, now: Moment, ttl: Duration) {
        let Some(session) = self.sessions.get_mut(&ttl) else {
            return;
        };
        let renewed = std::mem::take(&mut session.renewing);
        if let Some((since, ttl)) = session.confirmed() {
            for id in renewed {
                self.claims.report(Outcome::Renewed { id, since, ttl });
            }
        }
        self.each_user(ttl, |this, id| {
            if this.is_in(id, Stage::Confirming) {
                this.enter(now, id);
            }
        });
    }

    fn are_unconfirmed(&mut self, now: Moment, ttl: Duration, trouble: &Trouble) {
        let session = self.sessions.get_mut(&ttl);
        let renewing = session.map(|session| std::mem::take(&mut session.renewing));
        for id in renewing.unwrap_or_default() {
            let cause = trouble.cause();
            self.claims.report(Outcome::RenewFailed { id, cause });
        }
        self.each_user(ttl, |this, id| match trouble {
            Trouble::Never(cause) if this.is_in(id, Stage::Unsent) => {
                this.refuse_unsent(now, id, cause.clone());
            }
            _ => {
                let stages = [Stage::Confirming, Stage::Unsent, Stage::Adopting];
                if stages.iter().any(|stage| this.is_in(id, *stage)) {
                    this.trouble(id, trouble);
                }
            }
        });
    }

    /// The lease of a claim has ended, and its entry with it.
    fn is_lost(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        match claim.stage {
            Stage::Held { .. } => self.lose(id),
            Stage::Unsure if claim.leaving.is_some() => self.released(id, Ok(false)),
            Stage::Adopting | Stage::Confirming | Stage::Noting if claim.terms.adopts.is_some() => {
                self.adopt_again(now, id);
            }
            Stage::Waiting | Stage::Looking | Stage::Confirming | Stage::Noting | Stage::Unsure => {
                self.start_over(now, id);
            }
            Stage::Unsent => self.go_on(now, id),
            _ => {}
        }
    }
}
