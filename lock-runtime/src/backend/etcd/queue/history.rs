//! Notes grants and their ends, where the manager keeps a history.

use std::time::Duration;

use super::claim::{Claim, Stage};
use super::noted::{DAY, History, Lease, Noted};
use super::order::{PAUSE, Recipient};
use super::{Queue, Step};
use crate::backend::etcd::protocol::call::{Call, Reply, Sent};
use crate::backend::etcd::protocol::messages::{RangeResponse, RequestOp, TxnResponse};
use crate::backend::etcd::protocol::notes::{self, Note};
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::backend::name;
use crate::base::clock::Moment;
use crate::types::history::{GrantEnd, REMEMBERED};
use crate::types::terms::LeaseId;

/// How long a member may leave the call for that lease unanswered.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);

impl Queue {
    /// Asks for a lease for notes, if that is due.
    pub(super) fn keep_history(&mut self, now: Moment) {
        if self.down.is_none() && self.history.next_wakeup().is_some_and(|at| at <= now) {
            self.history.lease = Lease::Asked;
            self.calls.push(Sent {
                to: Recipient::Notes,
                call: Call::grant(REMEMBERED),
                at: now,
                call_timeout: CALL_TIMEOUT,
            });
        }
    }

    /// Notes can be written from here on, or the lease is asked for again.
    pub(super) fn lease_of_notes(&mut self, now: Moment, result: Result<Reply, Trouble>) {
        let granted = match result {
            Ok(Reply::Lease(granted)) => granted,
            refused => {
                self.history.lease = Lease::Due(now.after(PAUSE));
                if let Err(trouble) = refused {
                    self.lacks_notes(&trouble);
                }
                return;
            }
        };
        self.history.lease = Lease::Granted {
            id: granted.id,
            until: now.after(DAY),
        };
        for id in self.claims.ids(Claim::acquires) {
            self.go_on(now, id);
        }
    }

    /// Those that enter wait for that lease.
    fn lacks_notes(&mut self, trouble: &Trouble) {
        let stages = [Stage::Unsent, Stage::Noting];
        let waits = |claim: &Claim| claim.acquires() && stages.contains(&claim.stage);
        for id in self.claims.ids(waits) {
            self.trouble(id, trouble);
        }
    }

    /// A note of a claim's grant, with this fence; zero stands for the revision that makes it.
    pub(super) fn note(&mut self, id: LeaseId, fence: i64) -> Option<&Note> {
        let most = self.history.most;
        let claim = self.claims.get_mut(&id)?;
        let key = self
            .keys
            .note(&claim.terms.key, claim.terms.kind, claim.token);
        let name = name::name(claim.token, &claim.terms);
        let noted = claim.noted.insert(Noted {
            note: Note::new(key, most, fence, &name),
            is_written: false,
            is_ended: false,
            surplus: Vec::new(),
        });
        Some(&noted.note)
    }

    /// Whether a claim whose grant is noted may make its entry.
    pub(super) fn can_note(&mut self, now: Moment) -> bool {
        !self.history.is_kept() || self.history.lease(now).is_some()
    }

    /// What makes a claim's entry also notes its grant, if nobody is ahead.
    pub(super) fn enter_noted(&mut self, now: Moment, id: LeaseId, call: Call) -> Call {
        let lock = self.claims.get(&id).map(|it| it.terms.key.clone());
        let Some(lock) = lock.filter(|_| self.history.is_kept()) else {
            return call;
        };
        let Some(lease) = self.history.lease(now) else {
            return call;
        };
        let queue = self.keys.queue(&lock);
        let oldest = notes::oldest(self.keys.notes(&lock));
        match self.note(id, 0) {
            Some(note) => call.and([oldest, note.write_if_alone(queue, lease)]),
            None => call,
        }
    }

    /// Notes the grant of a claim that has waited, before it counts.
    pub(super) fn go_on_noting(&mut self, now: Moment, id: LeaseId) {
        let Some(lease) = self.history.lease(now) else {
            return;
        };
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let (entry, created, known) = (claim.key.clone(), claim.created, claim.known);
        let oldest = notes::oldest(self.keys.notes(&claim.terms.key));
        let note = self.note(id, known);
        let call = note.map(|note| note.write(entry, created, oldest, lease));
        if let Some(call) = call {
            self.send(now, id, Step::Note, call);
        }
    }

    /// The note of its grant was written, if its entry is there.
    pub(super) fn has_noted(&mut self, now: Moment, id: LeaseId, txn: TxnResponse) {
        if txn.succeeded {
            self.is_noted(id, txn.ranges());
            return self.enter(now, id);
        }
        let adopts = |claim: &Claim| claim.terms.adopts.is_some();
        if self.claims.get(&id).is_some_and(adopts) {
            self.adopt_again(now, id);
        } else {
            self.start_over(now, id);
        }
    }

    /// The last read of a transaction that has written a note is that of the oldest notes.
    pub(super) fn is_noted(&mut self, id: LeaseId, reads: impl Iterator<Item = RangeResponse>) {
        let most = self.history.most;
        if let Some(claim) = self.claims.get_mut(&id)
            && let Some(noted) = &mut claim.noted
        {
            noted.is_written = true;
            noted.surplus = notes::surplus(reads.last().unwrap_or_default(), most);
        }
    }

    pub(super) fn not_noted(&mut self, now: Moment, id: LeaseId, trouble: &Trouble) {
        if let Trouble::NoLease(_) = trouble {
            self.history.forget_lease();
        }
        self.claims.schedule(now.after(PAUSE), id);
        self.trouble(id, trouble);
    }
}

impl Claim {
    /// Whether its grant has yet to be noted.
    pub(super) fn lacks_note(&self, history: &History) -> bool {
        history.is_kept() && !self.noted.as_ref().is_some_and(|it| it.is_written)
    }

    /// Notes that its grant has ended by a release, and deletes older notes.
    pub(super) fn end_of_grant(&self) -> Vec<RequestOp> {
        let noted = self.noted.as_ref().filter(|it| !it.is_ended);
        let Some(noted) = noted.filter(|_| self.granted) else {
            return Vec::new();
        };
        let older = noted.surplus.iter().cloned().map(notes::delete);
        older.chain([noted.note.end(GrantEnd::Released)]).collect()
    }

    /// The call that deletes its entry. The note of a grant that its caller never got goes with it.
    pub(super) fn deletion(&self) -> Call {
        let (key, created) = (self.key.clone(), self.created);
        let noted = self.noted.as_ref().filter(|it| !it.is_ended);
        let unheard = noted.filter(|_| !self.granted);
        let unheard = unheard.map(|noted| noted.note.key.clone());
        // The slot of an adopted entry belongs to another manager.
        if self.terms.adopts.is_some() || noted.is_some() && self.granted {
            let more = self.end_of_grant().into_iter();
            let more = more.chain(unheard.map(notes::delete));
            return Call::delete_entry(key, created).and(more);
        }
        match unheard {
            Some(note) => Call::all([key, note].map(Call::delete).into_iter()),
            None => Call::delete(key),
        }
    }
}
