//! Turns the entries of tickets into those of their adopters, which keep their positions.
//!
//! A ticket has a key of its own, which names the entry and was written together with it. An
//! adoption compares that revision with the entry's, so that one adopter alone succeeds.

use super::claim::{Downgrade, Stage};
use super::{PAUSE, Queue, Step};
use crate::backend::etcd::protocol::call::{Adopting, Call};
use crate::backend::etcd::protocol::entry;
use crate::backend::etcd::protocol::messages::{RangeResponse, TxnResponse};
use crate::backend::etcd::protocol::trouble::{Trouble, cause};
use crate::backend::{Outcome, name};
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::kind::Kind;
use crate::types::terms::LeaseId;

impl Queue {
    pub(super) fn go_on_adopting(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let Some(ticket) = claim.terms.ticket().map(|ticket| self.keys.ticket(ticket)) else {
            return;
        };
        if claim.stage == Stage::Seeking {
            return self.send(now, id, Step::Seek, Call::get(ticket));
        }
        let ttl = claim.ttl();
        let session = self.sessions.get(&ttl);
        // While there is none, calls without an answer may still come.
        let Some(base) = session.and_then(|session| session.base(&self.keys)) else {
            return self.with_session(now, ttl, |session, around| session.open(now, around));
        };
        if claim.leaving.is_some() {
            let call = Call::get(claim.key.clone());
            return self.send(now, id, Step::Seek, call);
        }
        if let Some(cause) = self.quorum.too_few.clone() {
            self.refuse_adoption(now, id, cause);
            return self.look_for_members(now);
        }
        let adopting = Adopting {
            key: claim.key.clone(),
            value: claim.as_held(entry::value(
                claim.lasts(),
                &name::name(claim.token, &claim.terms),
            )),
            modified: claim.modified,
            ticket,
            lease: base.lease,
            marker: base.marker,
            epoch: base.epoch,
        };
        if let Some(claim) = self.claims.get_mut(&id) {
            (claim.lease, claim.epoch) = (base.lease, base.epoch);
        }
        self.send(now, id, Step::Adopt, adopting.call());
    }

    /// The key of the ticket was read, or an entry that nobody wants and that may be somebody else's.
    pub(super) fn sought(&mut self, now: Moment, id: LeaseId, range: RangeResponse) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let found = range.kvs.into_iter().next();
        if claim.leaving.is_some() {
            return match found {
                Some(own) if entry::is_of(&own.value, claim.token) => {
                    claim.created = own.create_revision;
                    claim.stage = Stage::Leaving;
                    self.go_on(now, id);
                }
                _ => self.released(id, Ok(false)),
            };
        }
        let terms = &claim.terms;
        // The entry of a writer may be that of a reader by now.
        let named = |named: &[u8]| {
            let key = named.split(|it| *it == b'\n').next()?;
            let (lock, share, _) = self.keys.read(key)?;
            let reads = entry::is_downgraded(named);
            let kind = if reads { Kind::Read } else { share.kind };
            let is_it = lock == terms.key && kind == terms.kind;
            is_it.then(|| (key.to_vec(), reads))
        };
        let found = found.and_then(|it| Some((named(&it.value)?, it.mod_revision)));
        let Some(((key, reads), modified)) = found else {
            return self.retire(Outcome::NoTicket { id });
        };
        claim.key = key;
        claim.downgrade = reads.then_some(Downgrade::Done);
        claim.modified = modified;
        claim.stage = Stage::Adopting;
        self.go_on(now, id);
    }

    pub(super) fn adopted(&mut self, now: Moment, id: LeaseId, txn: TxnResponse) {
        let (succeeded, revision) = (txn.succeeded, txn.revision());
        let mut reads = txn.ranges();
        let found = reads.next().unwrap_or_default().kvs.pop();
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let Some(found) = found else {
            return self.no_ticket(id);
        };
        if succeeded {
            claim.adopted_on.get_or_insert(claim.lease);
            claim.created = found.create_revision;
            claim.modified = revision;
            claim.seen = revision;
            claim.known = revision;
            return self.has_adopted(now, id);
        }
        let is_own = entry::is_of(&found.value, claim.token);
        if claim.leaving.is_some() {
            claim.created = found.create_revision;
            return if is_own {
                self.leave(now, id);
            } else {
                self.released(id, Ok(false));
            };
        }
        if is_own {
            // It is written once more, on the present lease.
            claim.modified = found.mod_revision;
        } else if claim.modified != found.mod_revision {
            return self.no_ticket(id);
        }
        let marker = reads.next().unwrap_or_default().kvs.pop();
        let revision = marker.map(|it| it.mod_revision);
        if revision != Some(claim.epoch) {
            let (ttl, lease) = (claim.ttl(), claim.lease);
            self.with_session(now, ttl, |session, _| {
                session.found_marker(now, lease, revision)
            });
        }
        self.go_on(now, id);
    }

    /// The adoption is refused for good. An earlier call without an answer may have adopted the entry.
    fn refuse_adoption(&mut self, now: Moment, id: LeaseId, cause: Cause) {
        if self.claims.get(&id).is_some_and(|it| it.may_be_made) {
            self.claims.report(Outcome::Failed { id, cause });
            self.stop_adopting(now, id);
        } else {
            self.retire(Outcome::Failed { id, cause });
        }
    }

    fn has_adopted(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        if claim.leaving.is_some() {
            return self.leave(now, id);
        }
        let session = self.sessions.get(&claim.ttl());
        if session.is_some_and(|session| session.is_on(claim.lease)) {
            self.enter(now, id);
        } else {
            // That lease was lost meanwhile.
            self.go_on(now, id);
        }
    }

    /// The ticket keeps the entry no more: others have adopted it, or it has ended. Or it was adopted for this claim,
    /// which has not heard of that before its lease ended.
    fn no_ticket(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let session = self.sessions.get(&claim.ttl());
        let has_ended = |lease| !session.is_some_and(|session| session.is_on(lease));
        let is_lost = claim.leaving.is_none() && claim.adopted_on.is_some_and(has_ended);
        self.retire(if is_lost {
            let cause = cause("the lease ended while the ticket was being adopted");
            Outcome::Failed { id, cause }
        } else {
            Outcome::NoTicket { id }
        });
    }

    pub(super) fn not_adopted(&mut self, now: Moment, id: LeaseId, trouble: &Trouble) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let (ttl, lease) = (claim.ttl(), claim.lease);
        let may_be_adopted = claim.stage == Stage::Adopting
            && matches!(trouble, Trouble::Unknown(_) | Trouble::NoSpace(_));
        if may_be_adopted {
            claim.adopted_on.get_or_insert(claim.lease);
            claim.may_be_made = true;
            claim.may_come_late |= matches!(trouble, Trouble::Unknown(_));
        }
        match trouble {
            Trouble::Unknown(_) if may_be_adopted => {
                self.trouble(id, trouble);
                self.with_session(now, ttl, |session, around| session.move_on(now, around));
                self.claims.schedule(now.after(PAUSE), id);
            }
            _ if claim.leaving.is_some() && !claim.may_be_made => self.released(id, Ok(false)),
            Trouble::Never(cause) if claim.leaving.is_none() => {
                let cause = cause.clone();
                self.refuse_adoption(now, id, cause);
            }
            Trouble::NoLease(_) => {
                self.with_session(now, ttl, |session, _| session.ended(now, lease));
            }
            _ => {
                self.claims.schedule(now.after(PAUSE), id);
                self.trouble(id, trouble);
            }
        }
    }

    /// The lease has ended on which the entry is, if it has been adopted; a late call adopts nothing.
    pub(super) fn adopt_again(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if claim.leaving.is_some() && !claim.awaits {
            return self.released(id, Ok(false));
        }
        claim.stage = Stage::Adopting;
        self.go_on(now, id);
    }

    /// Nobody wants it any more. What was asked for before may be carried out yet.
    pub(super) fn stop_adopting(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if !claim.awaits && !claim.may_be_made {
            return self.released(id, Ok(false));
        }
        let until = now.after(claim.terms.ttl);
        claim.leaving = Some(until);
        self.claims.schedule(until, id);
        self.go_on(now, id);
    }
}
