//! Gathers the calls that make and delete entries into transactions. Each of them costs the
//! members an entry in their logs, and so does a transaction of many.
//!
//! No two entries of one lock are made by one transaction, which compares before it writes:
//! both would be made, at one revision. The order of calls about a lock sees to that.

use std::collections::VecDeque;

use super::order::Recipient;
use crate::backend::etcd::protocol::call::{Call, Reply, Sent};
use crate::backend::etcd::protocol::keys::Keys;
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::base::numbers::Numbered;

/// How many calls a transaction has at first. A member takes 128 operations unless it is
/// configured otherwise, and does not say how many.
const MOST: usize = 64;
/// So many calls go out at once, each by itself.
const FEW: usize = 4;

type Write = Sent<Recipient>;

#[derive(Debug)]
pub(super) struct Batches {
    waiting: VecDeque<Write>,
    /// Those of transactions that were refused.
    singly: VecDeque<Write>,
    /// By the numbers of their transactions.
    together: Numbered<u64, Vec<Write>>,
    last: u64,
    /// How many calls are on their way, in transactions and by themselves.
    in_flight: usize,
    most: usize,
}

impl Default for Batches {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            singly: VecDeque::new(),
            together: Numbered::default(),
            last: 0,
            in_flight: 0,
            most: MOST,
        }
    }
}

impl Batches {
    pub(super) fn push(&mut self, write: Write) {
        self.waiting.push_back(write);
    }

    /// The next calls to send: a single call as it is, and several in one transaction.
    pub(super) fn next(&mut self, keys: &Keys) -> Option<Write> {
        if let Some(write) = self.singly.pop_front() {
            self.in_flight += 1;
            return Some(write);
        }
        // As many as are on their way, so that transactions are neither small nor late.
        let is_time = self.in_flight < FEW || self.waiting.len() >= self.in_flight;
        let mut writes = if is_time { self.gather() } else { Vec::new() };
        self.in_flight += writes.len();
        if writes.len() < 2 {
            return writes.pop();
        }
        // An entry is made at the revision of the transaction, and has to read its queue at
        // that revision: without the entries that the same transaction deletes.
        writes.sort_by_key(|write| write.call.lease().is_some());
        let mut call = Call::all(writes.iter().map(|write| write.call.clone()));
        if writes.iter().any(|write| write.call.lease().is_some()) {
            call = call.needing_room(keys.nothing());
        }
        self.last += 1;
        let together = Sent {
            to: Recipient::Batch(self.last),
            call,
            at: writes.iter().map(|write| write.at).max()?,
            call_timeout: writes.iter().map(|write| write.call_timeout).min()?,
        };
        self.together.insert(self.last, writes);
        Some(together)
    }

    /// Takes as many as one transaction may have. Its entries are on one lease, since a lease
    /// that has ended refuses the whole transaction.
    fn gather(&mut self) -> Vec<Write> {
        let mut lease = None;
        let (mut taken, mut left) = (Vec::new(), Vec::new());
        while taken.len() < self.most
            && let Some(write) = self.waiting.pop_front()
        {
            let own = write.call.lease();
            if own.is_none_or(|own| *lease.get_or_insert(own) == own) {
                taken.push(write);
            } else {
                left.push(write);
            }
        }
        self.put_back(left);
        taken
    }

    /// A call that went by itself was answered.
    pub(super) fn landed(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Those who wait for the answer to a transaction.
    pub(super) fn recipients(&self, transaction: u64) -> impl Iterator<Item = &Recipient> {
        let writes = self.together.get(&transaction).into_iter().flatten();
        writes.map(|write| &write.to)
    }

    /// Takes in the answer to a transaction: what it says about each of its calls. A refusal
    /// says nothing about any of them, so each is sent again by itself.
    pub(super) fn answered(
        &mut self,
        number: u64,
        result: Result<Reply, Trouble>,
    ) -> Vec<(Write, Result<Reply, Trouble>)> {
        let Some(writes) = self.together.remove(&number) else {
            return Vec::new();
        };
        self.in_flight = self.in_flight.saturating_sub(writes.len());
        let trouble = match result {
            Ok(Reply::Txn(txn)) => {
                let short = || Err(Trouble::unknown("the answer lacks a part"));
                let mut parts = txn.parts().map(Ok);
                let answer = |write| (write, parts.next().unwrap_or_else(short));
                return writes.into_iter().map(answer).collect();
            }
            Ok(_) => Trouble::unknown("the answer belongs to another call"),
            Err(trouble) => trouble,
        };
        match trouble {
            Trouble::Unknown(_) | Trouble::LoggedOut(_) => {
                let answer = |write| (write, Err(trouble.clone()));
                return writes.into_iter().map(answer).collect();
            }
            _ if trouble.is_of_size() => {
                self.most = self.most.min(writes.len() / 2).max(1);
                self.put_back(writes);
            }
            _ => self.singly.extend(writes),
        }
        Vec::new()
    }

    /// They go before all others.
    fn put_back(&mut self, writes: Vec<Write>) {
        for write in writes.into_iter().rev() {
            self.waiting.push_front(write);
        }
    }
}
