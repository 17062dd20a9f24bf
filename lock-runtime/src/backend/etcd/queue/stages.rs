//! How a claim goes on: what its stage asks for, and the way from its entry to the lock.

use super::claim::{Claim, Downgrade, Stage, whole_seconds};
use super::inspect::CALL_TIMEOUT;
use super::{LOOK_AGAIN, PAUSE, Queue, Recipient, SHORT, Step};
use crate::backend::etcd::protocol::ahead::{Ahead, reads};
use crate::backend::etcd::protocol::call::{Call, Entering, Sent};
use crate::backend::etcd::protocol::entry;
use crate::backend::etcd::protocol::keys::Span;
use crate::backend::queue_order::Position;
use crate::backend::share::Share;
use crate::backend::{Outcome, name};
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::terms::LeaseId;

use super::session::Session;

/// Members serve events after the begin of a watch at once, and events before it every
/// 100 ms.
const FROM_NOW: i64 = 0;

impl Queue {
    /// Sends the call of a claim's stage.
    pub(super) fn go_on(&mut self, now: Moment, id: LeaseId) {
        self.report_if_late(now, id);
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        if self.down.is_some() || claim.awaits {
            return;
        }
        let terms = &claim.terms;
        let (step, call) = match claim.stage {
            Stage::Unsent => {
                let lock = terms.key.clone();
                self.key_orders.resume(&lock);
                return self.pump(now, &lock);
            }
            Stage::Waiting if claim.watch.is_some() && now < claim.look_at => {
                return self.claims.schedule(claim.look_at, id);
            }
            Stage::Waiting | Stage::Looking => return self.look(now, id),
            Stage::Held { .. } => return self.settle(now, id),
            // A cooldown that was refused until its end, as by members without room, keeps the lock no longer.
            Stage::Moving { cools_until, .. } if cools_until <= now => {
                let lock = terms.key.clone();
                self.key_orders.end(&lock);
                return self.leave(now, id);
            }
            Stage::Moving {
                cools_until,
                lease: None,
            } => {
                let cooldown = whole_seconds(cools_until.since(now));
                (Step::Lease, Call::grant(cooldown))
            }
            Stage::Moving { cools_until, lease } => {
                let name = format!("-{}", name::name(claim.token, terms));
                let value = claim.as_held(entry::value(cools_until.since(now), &name));
                let call = Call::rewrite(claim.key.clone(), claim.created, value, lease);
                (Step::Move, call.and(claim.end_of_grant()))
            }
            Stage::CoolingDown { until } if until <= now => return self.leave(now, id),
            Stage::CoolingDown { until } => return self.claims.schedule(until, id),
            Stage::Leaving if claim.created == 0 => (Step::Seek, Call::get(claim.key.clone())),
            Stage::Leaving => {
                self.key_orders.begin(&terms.key);
                (Step::Delete, claim.deletion())
            }
            Stage::Noting => return self.go_on_noting(now, id),
            Stage::Issuing { .. } => return self.go_on_issuing(now, id),
            Stage::Seeking | Stage::Adopting => return self.go_on_adopting(now, id),
            _ => return,
        };
        self.send(now, id, step, call);
    }

    /// Reads the entries ahead of an entry.
    ///
    /// One member's answer is enough if it contains the entry: the entries ahead were made before it, and
    /// no further one is added. At worst, the member still shows entries that were deleted, and shows their
    /// deletion later.
    fn look(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        // A change from here on makes it look again.
        claim.stage = Stage::Waiting;
        let (terms, limited) = (&claim.terms, !claim.reads_all);
        let before = Some(claim.created);
        let ahead = reads(&self.keys, &terms.key, terms.kind, before, limited);
        let call = Call::look(claim.key.clone(), ahead, claim.by_majority);
        self.send(now, id, Step::Look, call);
    }

    /// Too few members are asked to confirm a lease.
    fn refuse_all(&mut self, now: Moment, lock: &LockKey, cause: &Cause) {
        if self.key_orders.next(lock).is_some() {
            self.look_for_members(now);
        }
        while let Some(id) = self.key_orders.next(lock) {
            self.refuse_next(now, lock, id, cause.clone());
        }
    }

    /// Makes the entry of the claim that is next with this lock.
    pub(super) fn pump(&mut self, now: Moment, lock: &LockKey) {
        if self.down.is_some() {
            return;
        }
        if let Some(cause) = self.quorum.too_few.clone() {
            return self.refuse_all(now, lock, &cause);
        }
        let Some(id) = self.key_orders.next(lock) else {
            return;
        };
        let Some(ttl) = self.claims.get(&id).map(Claim::ttl) else {
            return;
        };
        let session = self.sessions.get(&ttl);
        let Some(base) = session.and_then(|session| session.base(&self.keys)) else {
            return self.with_session(now, ttl, |session, around| session.open(now, around));
        };
        if !self.can_note(now) {
            return;
        }
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        claim.stage = Stage::Entering;
        (claim.lease, claim.epoch) = (base.lease, base.epoch);
        let terms = &claim.terms;
        let slot = *claim.slot.get_or_insert_with(|| self.slots.take(lock));
        claim.key = self.keys.entry(lock, Share::of(terms), base.lease, slot);
        let entering = Entering {
            key: claim.key.clone(),
            value: entry::value(claim.lasts(), &name::name(claim.token, terms)),
            queue: self.keys.queue(lock),
            ahead: reads(&self.keys, lock, terms.kind, None, !claim.reads_all),
            lease: base.lease,
            marker: base.marker,
            epoch: base.epoch,
            alone: terms.wait.is_try() && terms.kind == Kind::Exclusive && !claim.reads_all,
        };
        self.key_orders.take(lock);
        let call = self.enter_noted(now, id, entering.call());
        self.send(now, id, Step::Enter, call);
    }

    /// There may be fewer or others by now.
    pub(super) fn look_for_members(&mut self, now: Moment) {
        self.calls.push(Sent {
            to: Recipient::Cluster,
            call: Call::members(),
            at: now,
            call_timeout: CALL_TIMEOUT,
        });
    }

    /// Acts on the entries ahead in a queue that was read at a revision.
    /// `counted` says whether the counted queue has the entry itself.
    pub(super) fn find_position(
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
        let mine = Share::of(&claim.terms);
        let holder = ahead.front.holder(usize::from(counted));
        let has_changed = claim.stage == Stage::Looking;
        claim.known = read_at;
        claim.follows_one = false;
        let is_one = ahead.is_one();
        let is_newcomer = claim.holder.is_none();
        let others = ahead.front.waiters(usize::from(counted));
        let (span, writes) = match ahead.position(mine) {
            Position::Enter => {
                // Others may have come before it has read, and seen it wait.
                claim.announces = counted;
                self.unwatch(id);
                return self.enter(now, id);
            }
            // It writes when it has entered, and when it begins to cool down.
            Position::Behind(key) => {
                claim.follows_one = is_one;
                let end = Vec::new();
                (Span { key, end }, true)
            }
            Position::Next => (self.keys.queue(&claim.terms.key), false),
        };
        if claim.terms.wait.is_try() || is_newcomer && claim.terms.is_full(others) {
            self.claims.report(Outcome::Busy { id, holder });
            return self.leave(now, id);
        }
        claim.stage = Stage::Waiting;
        claim.holder.clone_from(&holder);
        let look_at = now.after(LOOK_AGAIN);
        claim.look_at = look_at;
        let is_watched = claim.watch.as_ref().is_some_and(|(_, it)| *it == span);
        self.claims.schedule(look_at, id);
        self.claims.report(Outcome::Waiting { id, holder });
        if !is_watched {
            self.watch(id, span, FROM_NOW, writes);
        } else if has_changed {
            self.look(now, id);
        }
    }

    /// Reports a grant, or confirms the lease first if little is left of it.
    ///
    /// The fence is the revision of the queue that shows the lock to be its own. A release
    /// makes a revision too, so the fence is larger than those of all earlier holders and
    /// smaller than those of all later ones. The revision of its own entry would not do: a
    /// waiter's entry may be older than the last key of a holder of several.
    pub(super) fn enter(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let shared = claim.ttl();
        // A lease that is not renewed begins when it was confirmed. One that was confirmed for this grant is fresh enough,
        // however long that took.
        let is_enough = |session: &&Session| {
            if claim.terms.renew || claim.stage == Stage::Confirming {
                session.left(now) >= claim.terms.ttl / 2
            } else {
                session.is_fresh(now)
            }
        };
        let session = self.sessions.get(&shared).filter(is_enough);
        let Some((since, ttl)) = session.and_then(Session::confirmed) else {
            claim.stage = Stage::Confirming;
            return self.with_session(now, shared, |session, around| session.beat(now, around));
        };
        if claim.lacks_note(&self.history) {
            claim.stage = Stage::Noting;
            return self.go_on(now, id);
        }
        claim.stage = Stage::Held { granted: now };
        claim.granted = true;
        let fence = u64::try_from(claim.known).unwrap_or(0);
        let announces = claim.announces && matches!(claim.terms.kind, Kind::Permits(_));
        let token = Some(claim.token.number());
        self.claims.report(Outcome::Granted {
            id,
            fence,
            token,
            since,
            ttl,
        });
        if announces {
            self.settle(now, id);
        } else {
            self.claims.schedule(now.after(SHORT), id);
        }
    }

    /// Watches the entry of a lock that is held for more than a short time; announces
    /// that it has entered, which those may watch who came while it waited, until that
    /// is answered.
    pub(super) fn settle(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id).filter(|it| it.is_held()) else {
            return;
        };
        let (key, modified, seen) = (claim.key.clone(), claim.modified, claim.seen);
        if claim.unwatched {
            return self.send(now, id, Step::Check, Call::get(key));
        }
        let downgrades = claim.downgrade == Some(Downgrade::Asked);
        let announcement = claim.announces.then(|| {
            let name = name::name(claim.token, &claim.terms);
            let value = entry::value(claim.lasts(), &name);
            Call::rewrite_as_read(key.clone(), modified, value)
        });
        if claim.watch.is_none() {
            let end = Vec::new();
            self.watch(id, Span { key, end }, seen.saturating_add(1), true);
        }
        if downgrades {
            self.go_on_downgrading(now, id);
        } else if let Some(call) = announcement {
            self.send(now, id, Step::Announce, call);
        }
    }

    /// Keys of others are ahead of an entry: it reads all that are there.
    pub(super) fn read_all(&mut self, now: Moment, id: LeaseId) {
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.reads_all = true;
            claim.stage = Stage::Looking;
            self.go_on(now, id);
        }
    }

    /// The entry is gone, and a fresh one is made at the end of the queue.
    pub(super) fn start_over(&mut self, now: Moment, id: LeaseId) {
        self.unwatch(id);
        let token = self.claims.tokens.next();
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let Ok(token) = token else {
            // It looks again, and finds that its entry is not there.
            claim.stage = Stage::Looking;
            self.claims.schedule(now.after(PAUSE), id);
            return;
        };
        let lock = claim.terms.key.clone();
        claim.token = token;
        claim.created = 0;
        claim.noted = None;
        if let Some(slot) = claim.slot.take().filter(|_| !claim.may_come_late) {
            self.slots.free(&lock, slot);
        }
        (claim.may_be_made, claim.may_come_late) = (false, false);
        claim.stage = Stage::Unsent;
        claim.awaits = false;
        self.key_orders.join(&lock, id);
        self.pump(now, &lock);
    }
}
