//! What each answer means for its claim.

use super::claim::{Claim, Stage};
use super::lease::News;
use super::{About, PAUSE, Queue, Step};
use crate::backend::Outcome;
use crate::backend::etcd::protocol::ahead::{Ahead, Front};
use crate::backend::etcd::protocol::call::{Reply, Sent};
use crate::backend::etcd::protocol::keys::Span;
use crate::backend::etcd::protocol::messages::{RangeResponse, TxnResponse};
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::base::clock::Moment;
use crate::types::terms::LeaseId;

impl Queue {
    /// The answer to a call; to a keep-alive, that of one member.
    pub(crate) fn answered(
        &mut self,
        now: Moment,
        sent: &Sent<About>,
        result: Result<Reply, Trouble>,
    ) {
        match sent.about {
            About::Session(ttl, step) => self.with_session(now, ttl, |session, around| {
                session.answered(now, sent.at, step, result, around)
            }),
            About::Claim(id, call, step) => {
                let claim = self.claims.get_mut(&id);
                let Some(claim) = claim.filter(|claim| claim.awaits == Some(call)) else {
                    return;
                };
                claim.awaits = None;
                let lock = claim.terms.key.clone();
                let frees_lane = matches!(step, Step::Enter | Step::Delete);
                if frees_lane {
                    self.lanes.end(&lock);
                }
                self.claim_answered(now, id, step, result);
                if frees_lane {
                    self.pump(now, &lock);
                }
            }
            About::Cluster => {}
            About::Query(number) => self.inspected(number, result),
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
            (Step::Announce, Ok(Reply::Txn(txn))) => self.announced(now, id, &txn),
            (Step::Lease, Ok(Reply::Lease(granted))) => {
                if let Some(claim) = self.claims.get_mut(&id)
                    && let Stage::Moving { lease, .. } = &mut claim.stage
                {
                    *lease = Some(granted.id);
                    self.go_on(now, id);
                }
            }
            (Step::Move, Ok(Reply::Txn(txn))) => self.moved(now, id, &txn),
            (Step::Delete, Ok(Reply::Txn(txn))) => self.deleted(id, &txn),
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
        let mut reads = txn.ranges();
        if succeeded {
            claim.created = revision;
        } else {
            let mine = reads.next().unwrap_or_default().kvs.pop();
            let Some(mine) = mine else {
                let marker = reads.next().unwrap_or_default();
                let line = Front::read(&self.keys, reads.next().unwrap_or_default());
                return self.refused(now, id, &line, &marker);
            };
            claim.created = mine.create_revision;
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
            Some(ahead) => self.find_place(now, id, ahead, false, revision),
            None => self.read_all(now, id),
        }
    }

    /// There is no entry, because a try has found the lock held, or since the session has
    /// ended or moved on meanwhile.
    fn refused(&mut self, now: Moment, id: LeaseId, line: &Front, marker: &RangeResponse) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if claim.leaving.is_some() {
            return self.retire(id, Ok(false));
        }
        if line.is_foreign() && !claim.reads_all {
            claim.reads_all = true;
            claim.stage = Stage::Unsent;
            return self.lanes.join_first(&claim.terms.key, id);
        }
        if claim.terms.wait.is_try() && !line.is_empty() {
            let holder = line.holder(0);
            self.outcomes.push_back(Outcome::Busy { id, holder });
            return self.forget(id);
        }
        let (lock, ttl) = (claim.terms.key.clone(), claim.ttl());
        claim.stage = Stage::Unsent;
        self.lanes.join_first(&lock, id);
        let revision = marker.kvs.first().map(|marker| marker.mod_revision);
        self.with_session(now, ttl, |session, _| match revision {
            Some(revision) => {
                session.found_marker(now, revision);
                News::Nothing
            }
            None => session.lost(now),
        });
    }

    fn not_entered(&mut self, now: Moment, id: LeaseId, trouble: &Trouble) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let (lock, ttl) = (claim.terms.key.clone(), claim.ttl());
        if let Trouble::Unknown(_) = trouble {
            claim.stage = Stage::Unsure;
            self.trouble(id, trouble);
            return self.with_session(now, ttl, |session, around| {
                session.move_on(now, around);
                News::Nothing
            });
        }
        if claim.leaving.is_some() {
            return self.retire(id, Ok(false));
        }
        claim.stage = Stage::Unsent;
        match trouble {
            Trouble::Never(cause) => {
                let cause = cause.clone();
                self.outcomes.push_back(Outcome::Failed { id, cause });
                self.forget(id);
            }
            Trouble::NoLease(_) => {
                self.lanes.join_first(&lock, id);
                self.with_session(now, ttl, |session, _| session.lost(now));
            }
            _ => {
                self.lanes.join_first(&lock, id);
                self.lanes.pause(&lock);
                self.go_on_at(now.after(PAUSE), id);
                self.trouble(id, trouble);
            }
        }
    }

    fn looked(&mut self, now: Moment, id: LeaseId, txn: TxnResponse) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        if !matches!(claim.stage, Stage::Waiting | Stage::Looking) {
            return;
        }
        let revision = txn.revision();
        let mut reads = txn.ranges();
        if reads.next().unwrap_or_default().kvs.is_empty() {
            return self.start_over(now, id);
        }
        let limited = !claim.reads_all;
        match Ahead::read(&self.keys, claim.terms.kind, &mut reads, limited) {
            Some(ahead) => self.find_place(now, id, ahead, true, revision),
            None => self.read_all(now, id),
        }
    }

    fn checked(&mut self, now: Moment, id: LeaseId, range: &RangeResponse) {
        let claim = self.claims.get_mut(&id);
        let Some(claim) = claim.filter(|it| it.is_held()) else {
            return;
        };
        if range.kvs.is_empty() {
            return self.lose(id);
        }
        claim.unwatched = false;
        let key = claim.key.clone();
        let end = Vec::new();
        self.watch(id, Span { key, end }, range.revision() + 1, false);
        self.settle(now, id);
    }

    /// Those behind have been told, or the entry is gone.
    fn announced(&mut self, now: Moment, id: LeaseId, txn: &TxnResponse) {
        let claim = self.claims.get_mut(&id);
        let Some(claim) = claim.filter(|it| it.is_held()) else {
            return;
        };
        if !txn.succeeded {
            return self.lose(id);
        }
        claim.announces = false;
        self.settle(now, id);
    }

    fn moved(&mut self, now: Moment, id: LeaseId, txn: &TxnResponse) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let Stage::Moving { rests, .. } = claim.stage else {
            return;
        };
        let lock = claim.terms.key.clone();
        self.lanes.end(&lock);
        if txn.succeeded {
            claim.stage = Stage::Resting { until: rests };
            self.go_on_at(rests, id);
            self.tell(id, Ok(true));
        } else {
            self.retire(id, Ok(false));
        }
        self.pump(now, &lock);
    }

    fn deleted(&mut self, id: LeaseId, txn: &TxnResponse) {
        if let Some(claim) = self.claims.get(&id) {
            let was_there = txn.deleted() > 0 || claim.unsure;
            self.retire(id, Ok(claim.granted && was_there));
        }
    }

    /// A call that has failed is sent again.
    fn try_again(&mut self, now: Moment, id: LeaseId, result: Result<Reply, Trouble>) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        match (&mut claim.stage, &result) {
            (Stage::Leaving, Err(Trouble::Unknown(_))) => claim.unsure = true,
            // The lease on which it was to rest has ended before the entry was there.
            (Stage::Moving { lease, .. }, Err(Trouble::NoLease(_))) => *lease = None,
            (Stage::Leaving | Stage::Moving { .. }, Err(Trouble::Never(cause))) => {
                let cause = cause.clone();
                self.tell(id, Err(cause));
            }
            _ => {}
        }
        self.go_on_at(now.after(PAUSE), id);
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
}
