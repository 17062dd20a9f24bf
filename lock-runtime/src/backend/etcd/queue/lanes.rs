//! Lanes: calls about one lock that must not overtake each other. Members carry out
//! calls side by side, so an entry is made once no other one is being made or deleted:
//! whoever asks first stands first, and a try finds what was released before it.

use std::collections::{HashMap, VecDeque};

use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

#[derive(Debug, Default)]
pub(super) struct Lanes(HashMap<LockKey, Lane>);

#[derive(Debug, Default)]
struct Lane {
    /// How many calls are in flight.
    busy: usize,
    unsent: VecDeque<LeaseId>,
    /// Whether the first one has to wait after a refusal.
    paused: bool,
}

impl Lanes {
    pub(super) fn join(&mut self, lock: &LockKey, id: LeaseId) {
        self.lane(lock).unsent.push_back(id);
    }

    pub(super) fn join_first(&mut self, lock: &LockKey, id: LeaseId) {
        self.lane(lock).unsent.push_front(id);
    }

    pub(super) fn quit(&mut self, lock: &LockKey, id: LeaseId) {
        if let Some(lane) = self.0.get_mut(lock) {
            lane.unsent.retain(|it| *it != id);
        }
        self.sweep(lock);
    }

    /// Whose entry may be made now.
    pub(super) fn next(&self, lock: &LockKey) -> Option<LeaseId> {
        let lane = self.0.get(lock)?;
        let first = lane.unsent.front().copied();
        first.filter(|_| lane.busy == 0 && !lane.paused)
    }

    /// The call of the next one is sent.
    pub(super) fn take(&mut self, lock: &LockKey) {
        let lane = self.lane(lock);
        lane.unsent.pop_front();
        lane.busy += 1;
    }

    /// A deletion is sent.
    pub(super) fn begin(&mut self, lock: &LockKey) {
        self.lane(lock).busy += 1;
    }

    /// A call was answered.
    pub(super) fn end(&mut self, lock: &LockKey) {
        self.lane(lock).busy -= 1;
        self.sweep(lock);
    }

    pub(super) fn pause(&mut self, lock: &LockKey) {
        self.lane(lock).paused = true;
    }

    pub(super) fn resume(&mut self, lock: &LockKey) {
        if let Some(lane) = self.0.get_mut(lock) {
            lane.paused = false;
        }
    }

    fn lane(&mut self, lock: &LockKey) -> &mut Lane {
        self.0.entry(lock.clone()).or_default()
    }

    fn sweep(&mut self, lock: &LockKey) {
        let is_idle = |lane: &Lane| lane.busy == 0 && lane.unsent.is_empty();
        if self.0.get(lock).is_some_and(is_idle) {
            self.0.remove(lock);
        }
    }
}
