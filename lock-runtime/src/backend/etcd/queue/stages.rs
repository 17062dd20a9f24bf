//! How a claim goes on: what its stage asks for, and the way from its entry to the lock.

use super::claim::{Stage, whole_seconds};
use super::inspect::CALL_TIMEOUT;
use super::{About, PAUSE, Queue, SHORT, Step};
use crate::backend::etcd::protocol::ahead::{Ahead, reads};
use crate::backend::etcd::protocol::call::{Call, Entering, Sent};
use crate::backend::etcd::protocol::entry;
use crate::backend::etcd::protocol::keys::Span;
use crate::backend::line::Place;
use crate::backend::{Outcome, name};
use crate::base::clock::Moment;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::terms::LeaseId;

use super::lease::News;
use super::session::Session;

impl Queue {
    /// Sends what the stage of a claim asks for.
    pub(super) fn go_on(&mut self, now: Moment, id: LeaseId) {
        self.tell_if_late(now, id);
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        if self.down.is_some() || claim.awaits.is_some() {
            return;
        }
        let terms = &claim.terms;
        let (step, call) = match claim.stage {
            Stage::Unsent => {
                let lock = terms.key.clone();
                self.lanes.resume(&lock);
                return self.pump(now, &lock);
            }
            Stage::Waiting if claim.watch.is_some() => return,
            Stage::Waiting | Stage::Looking => {
                let limited = !claim.reads_all;
                let before = Some(claim.created);
                let ahead = reads(&self.keys, &terms.key, terms.kind, before, limited);
                (Step::Look, Call::look(claim.key.clone(), ahead))
            }
            Stage::Held { .. } => return self.settle(now, id),
            Stage::Moving { rests, lease: None } => {
                let rest = whole_seconds(rests.since(now));
                (Step::Lease, Call::grant(rest))
            }
            Stage::Moving { rests, lease } => {
                let name = format!("-{}", name::name(claim.token, terms));
                let value = entry::value(rests.since(now), &name);
                let call = Call::rewrite(claim.key.clone(), claim.created, value, lease);
                (Step::Move, call)
            }
            Stage::Resting { until } if until <= now => return self.leave(now, id),
            Stage::Resting { until } => return self.go_on_at(until, id),
            Stage::Leaving => {
                self.lanes.begin(&terms.key);
                (Step::Delete, Call::delete(claim.key.clone()))
            }
            _ => return,
        };
        self.send(now, id, step, call);
    }

    /// Makes the entry that is next in its lane.
    pub(super) fn pump(&mut self, now: Moment, lock: &LockKey) {
        if self.down.is_some() {
            return;
        }
        let Some(id) = self.lanes.next(lock) else {
            return;
        };
        if let Some(cause) = self.quorum.too_few.clone() {
            self.outcomes.push_back(Outcome::Failed { id, cause });
            self.forget(id);
            self.look_for_members(now);
            return self.pump(now, lock);
        }
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let ttl = claim.ttl();
        let session = self.sessions.get(&ttl);
        let Some(base) = session.and_then(|session| session.base(&self.keys)) else {
            return self.with_session(now, ttl, |session, around| {
                session.open(now, around);
                News::Nothing
            });
        };
        claim.stage = Stage::Entering;
        claim.lease = base.lease;
        let terms = &claim.terms;
        let entering = Entering {
            key: claim.key.clone(),
            value: entry::value(claim.lasts(), &name::name(claim.token, terms)),
            line: self.keys.line(lock),
            ahead: reads(&self.keys, lock, terms.kind, None, !claim.reads_all),
            lease: base.lease,
            marker: base.marker,
            epoch: base.epoch,
            alone: terms.wait.is_try() && terms.kind == Kind::Exclusive && !claim.reads_all,
        };
        self.lanes.take(lock);
        self.send(now, id, Step::Enter, entering.call());
    }

    /// There may be fewer or others by now.
    fn look_for_members(&mut self, now: Moment) {
        self.calls.push(Sent {
            about: About::Cluster,
            call: Call::members(),
            at: now,
            patience: CALL_TIMEOUT,
        });
    }

    /// Acts on what stands ahead of an entry in a line that was read at a revision.
    /// `counted` says whether the line that was counted has the entry itself.
    pub(super) fn find_place(
        &mut self,
        now: Moment,
        id: LeaseId,
        ahead: Ahead,
        counted: bool,
        read_at: i64,
    ) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let mine = claim.terms.kind;
        let holder = ahead.front.holder(usize::from(counted));
        let after = read_at + 1;
        let watched = match ahead.place(mine, claim.holder.is_none()) {
            Place::Enter => {
                claim.entered = read_at;
                // Others may have come before it has read, and seen it wait.
                claim.announces = counted;
                return self.enter(now, id);
            }
            Place::OtherPermits(held) => {
                claim.told = true;
                self.outcomes
                    .push_back(Outcome::other_permits(id, mine, held));
                return self.leave(now, id);
            }
            Place::Behind(key) => {
                let end = Vec::new();
                Some(Span { key, end })
            }
            Place::Next => None,
        };
        if claim.terms.wait.is_try() {
            claim.told = true;
            self.outcomes.push_back(Outcome::Busy { id, holder });
            return self.leave(now, id);
        }
        claim.stage = Stage::Waiting;
        claim.holder.clone_from(&holder);
        let line = self.keys.line(&claim.terms.key);
        self.outcomes.push_back(Outcome::Waiting { id, holder });
        match watched {
            // It writes when it has entered, and when it begins to rest.
            Some(one) => self.watch(id, one, after, true),
            None => self.watch(id, line, after, false),
        }
    }

    /// Reports a grant, or confirms the lease first if little is left of it.
    ///
    /// The fence is the revision of the line that shows the lock to be its own. A release
    /// makes a revision too, so the fence is larger than those of all earlier holders and
    /// smaller than those of all later ones. The revision of its own entry would not do: a
    /// waiter's entry may be older than the last key of a holder of several.
    pub(super) fn enter(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let shared = claim.ttl();
        let is_enough = |session: &&Session| {
            if claim.terms.renew {
                session.left(now) >= claim.terms.ttl / 2
            } else {
                session.is_fresh(now)
            }
        };
        let session = self.sessions.get(&shared).filter(is_enough);
        let Some((since, ttl)) = session.and_then(Session::confirmed) else {
            claim.stage = Stage::Confirming;
            return self.with_session(now, shared, |session, around| {
                session.beat(now, around);
                News::Nothing
            });
        };
        claim.stage = Stage::Held { granted: now };
        claim.granted = true;
        self.outcomes.push_back(Outcome::Granted {
            id,
            fence: u64::try_from(claim.entered).unwrap_or(0),
            since,
            ttl,
        });
        if claim.announces && matches!(claim.terms.kind, Kind::Permits(_)) {
            self.settle(now, id);
        } else {
            self.go_on_at(now.after(SHORT), id);
        }
    }

    /// Watches the entry of a lock that is held for more than a short time; announces
    /// that it has entered, which those may watch who came while it waited, until that
    /// is answered.
    pub(super) fn settle(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id).filter(|it| it.is_held()) else {
            return;
        };
        let (key, created) = (claim.key.clone(), claim.created);
        if claim.unwatched {
            return self.send(now, id, Step::Check, Call::get(key));
        }
        let announcement = claim.announces.then(|| {
            let name = name::name(claim.token, &claim.terms);
            let value = entry::value(claim.lasts(), &name);
            Call::rewrite(key.clone(), created, value, None)
        });
        if claim.watch.is_none() {
            let end = Vec::new();
            self.watch(id, Span { key, end }, created + 1, false);
        }
        if let Some(call) = announcement {
            self.send(now, id, Step::Announce, call);
        }
    }

    /// Keys of others stand ahead of an entry: it reads all that are there.
    pub(super) fn read_all(&mut self, now: Moment, id: LeaseId) {
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.reads_all = true;
            claim.stage = Stage::Looking;
            self.go_on(now, id);
        }
    }

    /// The entry is gone, and a fresh one takes its place at the end of the line.
    pub(super) fn start_over(&mut self, now: Moment, id: LeaseId) {
        self.unwatch(id);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let Ok(token) = self.tokens.next() else {
            // It looks again, and finds that its entry is not there.
            claim.stage = Stage::Looking;
            self.go_on_at(now.after(PAUSE), id);
            return;
        };
        let terms = claim.terms.clone();
        claim.token = token;
        claim.key = self.keys.entry(&terms.key, terms.kind, token);
        claim.stage = Stage::Unsent;
        claim.awaits = None;
        self.lanes.join(&terms.key, id);
        self.pump(now, &terms.key);
    }
}
