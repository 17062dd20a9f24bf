//! Writers that go on as readers.

use super::Operations;
use crate::backend::Request;
use crate::base::clock::Moment;
use crate::driver::delivery::send;
use crate::held::lease::{InUse, Lease};
use crate::telemetry::events;
use crate::types::answer::Answer;
use crate::types::error::{Cause, LockError};
use crate::types::terms::LeaseId;

impl Operations {
    /// Lets a writer go on as a reader, unless a poll runs under its lease, which nobody could stop.
    /// From here on the lease is that of a reader, whatever the store has heard: so no poll of the
    /// writer meets a reader.
    pub(super) fn downgrade(&mut self, now: Moment, id: LeaseId, answer: Answer<bool>) {
        let Some(writer) = self.watchdog.replace(id, Lease::downgraded) else {
            return self.release(now, id, Some(answer));
        };
        if writer.in_use() == InUse::ByPoll {
            let why = "a body runs under the lock at this moment";
            send(answer, Err(LockError::invalid("downgrade", why)));
            return self.release(now, id, None);
        }
        self.requests.push(Request::Downgrade(id));
        self.downgrading.insert(id, answer);
    }

    /// The store knows that it is a reader, or refuses to.
    pub(super) fn downgraded(&mut self, id: LeaseId, result: Result<(), Cause>) {
        let Some(answer) = self.downgrading.remove(&id) else {
            return;
        };
        let Some(lease) = self.watchdog.lease(id) else {
            return;
        };
        if result.is_ok() {
            events::downgraded(&lease.terms, lease.fence);
        }
        let result = result.map(|()| true).map_err(|it| self.unavailable(it));
        self.answers.release(answer, lease.terms.clone(), result);
    }

    /// The lease has ended before.
    pub(super) fn give_up_downgrade(&mut self, lease: &Lease) {
        if let Some(answer) = self.downgrading.remove(&lease.id) {
            self.answers.release(answer, lease.terms.clone(), Ok(false));
        }
    }
}
