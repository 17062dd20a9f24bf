//! What is held and who waits for it, shared by the managers of a process.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::backend::Outcome;
use crate::clock::Moment;
use crate::error::Holder;
use crate::key::LockKey;
use crate::request::{LeaseId, Terms};

/// Where a manager gets its outcomes.
pub(super) type Client = mpsc::UnboundedSender<Outcome>;

#[derive(Default)]
pub(super) struct Store {
    fence: u64,
    pub(super) slots: HashMap<LockKey, Slot>,
}

#[derive(Default)]
pub(super) struct Slot {
    pub(super) owner: Option<Owner>,
    pub(super) queue: VecDeque<Waiter>,
}

pub(super) struct Owner {
    client: Client,
    id: LeaseId,
    pub(super) expires: Moment,
}

pub(super) struct Waiter {
    pub(super) client: Client,
    pub(super) terms: Arc<Terms>,
}

impl Store {
    /// First come, first served: everybody goes through the line.
    pub(super) fn enqueue(&mut self, now: Moment, waiter: Waiter) {
        let (client, terms) = (waiter.client.clone(), Arc::clone(&waiter.terms));
        let slot = self.slots.entry(terms.key.clone()).or_default();
        slot.queue.push_back(waiter);
        self.dispatch(now, &terms.key);
        let Some(slot) = self.slots.get_mut(&terms.key) else {
            return;
        };
        if !slot.waits(&client, terms.id) {
            return;
        }
        let holder = slot.owner.as_ref().map(|owner| {
            Box::new(Holder {
                id: owner.id.0.to_string().into_boxed_str(),
                remaining: Some(owner.expires.since(now)),
            })
        });
        let id = terms.id;
        let outcome = if terms.wait.is_try() {
            slot.queue.pop_back();
            Outcome::Busy { id, holder }
        } else {
            Outcome::Waiting { id, holder }
        };
        let _ = client.send(outcome);
    }

    /// Grants a free lock to the first in line whose manager still lives.
    pub(super) fn dispatch(&mut self, now: Moment, key: &LockKey) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if slot.owner.as_ref().is_some_and(|it| now < it.expires) {
            return;
        }
        slot.owner = None;
        while let Some(Waiter { client, terms }) = slot.queue.pop_front() {
            self.fence += 1;
            let (id, ttl) = (terms.id, terms.ttl);
            let granted = Outcome::Granted {
                id,
                fence: self.fence,
                since: now,
                ttl,
            };
            if client.send(granted).is_ok() {
                let expires = now.after(ttl);
                slot.owner = Some(Owner {
                    client,
                    id,
                    expires,
                });
                return;
            }
        }
        self.slots.remove(key);
    }
}

impl Slot {
    pub(super) fn is_held_by(&self, client: &Client, id: LeaseId, now: Moment) -> bool {
        self.owner
            .as_ref()
            .is_some_and(|it| it.id == id && it.client.same_channel(client) && now < it.expires)
    }

    fn waits(&self, client: &Client, id: LeaseId) -> bool {
        self.queue
            .iter()
            .any(|it| it.terms.id == id && it.client.same_channel(client))
    }
}
