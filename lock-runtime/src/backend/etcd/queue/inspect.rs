//! Calls of queries, which go out between those of claims.

use std::time::Duration;

use super::Queue;
use super::order::{AskedBy, Recipient};
use crate::backend::etcd::protocol::call::{Call, Reply, Sent};
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::base::clock::Moment;

/// How long a member may leave the call of a query unanswered.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(1);

impl Queue {
    pub(crate) fn inspect(&mut self, now: Moment, call: Call, by: AskedBy) {
        if let Some(trouble) = &self.down {
            drop(by.send(Err(trouble.clone())));
            return;
        }
        self.last_asked += 1;
        self.asked.insert(self.last_asked, by);
        self.calls.push(Sent {
            to: Recipient::Query(self.last_asked),
            call,
            at: now,
            call_timeout: CALL_TIMEOUT,
        });
    }

    pub(super) fn inspected(&mut self, number: u64, result: Result<Reply, Trouble>) {
        if let Some(by) = self.asked.remove(&number) {
            let _ = by.send(result);
        }
    }
}
