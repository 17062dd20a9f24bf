//! The order of calls about one lock that must not overtake each other. Members carry out
//! calls side by side, so an entry is made once no other one is being made or deleted: the
//! queue has the order of the requests, and a try finds earlier releases.

use std::collections::{HashMap, VecDeque};

use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

#[derive(Debug, Default)]
pub(super) struct KeyOrders(HashMap<LockKey, KeyOrder>);

#[derive(Debug, Default)]
struct KeyOrder {
    /// How many calls are in flight.
    busy: usize,
    unsent: VecDeque<LeaseId>,
    /// Whether the first one has to wait after a refusal.
    paused: bool,
}

impl KeyOrders {
    pub(super) fn join(&mut self, lock: &LockKey, id: LeaseId) {
        self.of(lock).unsent.push_back(id);
    }

    pub(super) fn join_first(&mut self, lock: &LockKey, id: LeaseId) {
        self.of(lock).unsent.push_front(id);
    }

    pub(super) fn quit(&mut self, lock: &LockKey, id: LeaseId) {
        if let Some(order) = self.0.get_mut(lock) {
            order.unsent.retain(|it| *it != id);
        }
        self.sweep(lock);
    }

    /// The acquisition that may make its entry now.
    pub(super) fn next(&self, lock: &LockKey) -> Option<LeaseId> {
        let order = self.0.get(lock)?;
        let first = order.unsent.front().copied();
        first.filter(|_| order.busy == 0 && !order.paused)
    }

    /// The call of the next one is sent.
    pub(super) fn take(&mut self, lock: &LockKey) {
        let order = self.of(lock);
        order.unsent.pop_front();
        order.busy += 1;
    }

    /// A deletion is sent.
    pub(super) fn begin(&mut self, lock: &LockKey) {
        self.of(lock).busy += 1;
    }

    /// A call was answered.
    pub(super) fn end(&mut self, lock: &LockKey) {
        self.of(lock).busy -= 1;
        self.sweep(lock);
    }

    pub(super) fn pause(&mut self, lock: &LockKey) {
        self.of(lock).paused = true;
    }

    pub(super) fn resume(&mut self, lock: &LockKey) {
        if let Some(order) = self.0.get_mut(lock) {
            order.paused = false;
        }
    }

    fn of(&mut self, lock: &LockKey) -> &mut KeyOrder {
        self.0.entry(lock.clone()).or_default()
    }

    fn sweep(&mut self, lock: &LockKey) {
        let is_idle = |order: &KeyOrder| order.busy == 0 && order.unsent.is_empty();
        if self.0.get(lock).is_some_and(is_idle) {
            self.0.remove(lock);
        }
    }
}
