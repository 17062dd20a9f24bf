//! Holders that do not look whether they still have their lock: nobody else has it in the margin after their deadline.

use std::time::Duration;

use super::client::Client;
use super::{Holders, World};
use crate::base::clock::Moment;
use crate::held::guard::LockGuard;
use crate::types::deadline::margin;
use crate::types::kind::Kind;

/// The ttl of a lease that was handed over by a push; its margin is the least.
const PUSHED: Duration = Duration::from_secs(3);

/// A lock whose holder lets go of it after some time, held or not.
pub(super) struct Overrunning {
    guard: LockGuard,
    kind: Kind,
    /// Its last deadline, unless it was lost before that.
    deadline: Option<Moment>,
    until: Moment,
}

impl Overrunning {
    pub(super) fn new(guard: LockGuard, kind: Kind, until: Moment) -> Self {
        Self {
            deadline: Some(guard.lease().deadline()),
            guard,
            kind,
            until,
        }
    }

    fn look(&mut self, now: Moment) {
        if self.guard.is_held() {
            self.deadline = Some(self.guard.lease().deadline());
        } else if self.deadline.is_some_and(|deadline| now < deadline) {
            self.deadline = None;
        }
    }

    /// Whether its deadline has passed, and its margin has not.
    fn is_in_margin(&self, now: Moment) -> bool {
        let terms = &self.guard.lease().terms;
        let longest = terms.max_hold.unwrap_or(terms.ttl).min(terms.ttl);
        let margin = margin(longest.min(PUSHED));
        self.deadline
            .is_some_and(|deadline| deadline <= now && now < deadline.after(margin))
    }

    pub(super) fn until(&self) -> Moment {
        self.until
    }

    pub(super) fn held(&self) -> Option<(&LockGuard, Kind)> {
        self.guard.is_held().then_some((&self.guard, self.kind))
    }
}

impl World {
    /// Nobody holds a lock in the margin of another one.
    pub(super) fn check_margins(&self, mut held: Holders) -> Result<(), String> {
        for (number, client) in self.clients.iter().enumerate() {
            for (guard, kind) in client.acts_under(self.now) {
                let (key, id) = (guard.key(), guard.lease().id);
                if !self.is_disputed(key) {
                    held.join(key, number, kind).map_err(|beside| {
                        format!(
                            "client {number} may still act under {key} as {id:?}, beside {beside}"
                        )
                    })?;
                }
            }
        }
        Ok(())
    }
}

impl Client {
    /// Lets go of what was held for long enough, and notes the deadlines of the others.
    pub(super) fn overrun(&mut self, now: Moment) {
        self.overrunning.retain(|it| now < it.until);
        self.overrunning.iter_mut().for_each(|it| it.look(now));
    }

    /// What it may still act under, since it has not looked again.
    fn acts_under(&self, now: Moment) -> impl Iterator<Item = (&LockGuard, Kind)> {
        let late = self.overrunning.iter();
        let late = late.filter(move |it| it.is_in_margin(now));
        late.map(|it| (&it.guard, it.kind))
    }
}
