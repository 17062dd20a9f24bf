//! Held locks and their waiters, shared by the managers of a process.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;

use crate::backend::Outcome;

use crate::base::agenda::Agenda;
use crate::base::clock::Moment;
use crate::types;
use crate::types::crowd::Crowd;
use crate::types::fence::FencingToken;
use crate::types::history::{Grant, GrantEnd};
use crate::types::holder::{Holder, Status};
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::overview::{Count, MOST_HOLDERS, Overview, Summary};
use crate::types::query::Pattern;
use crate::types::terms::{LeaseId, Terms};
use crate::types::ticket_id::TicketId;

use super::log::Logs;

/// How many waiters of one lock a status names.
const MOST_WAITERS: usize = 1_000;

/// Where a manager gets its outcomes.
pub(super) type Client = mpsc::UnboundedSender<Outcome>;

#[derive(Default)]
pub(super) struct Store {
    fence: u64,
    /// When cooldowns and tickets end. Nobody else may ever touch these locks again.
    unowned: Agenda<LockKey>,
    logs: Logs,
    pub(super) slots: HashMap<LockKey, Slot>,
}

/// One lock. All its holders are of one kind.
#[derive(Default)]
pub(super) struct Slot {
    holders: Vec<Owner>,
    queue: VecDeque<Waiter>,
}

struct Owner {
    client: Client,
    terms: Arc<Terms>,
    fence: u64,
    since: Moment,
    expires: Moment,
    state: State,
}

/// What becomes of the lock of an owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Held,
    /// Released, but the lock still cools down.
    CoolingDown,
    /// A ticket keeps it closed.
    Issued(TicketId),
}

pub(super) struct Waiter {
    pub(super) client: Client,
    pub(super) terms: Arc<Terms>,
    pub(super) since: Moment,
    /// How many grants of the lock to remember.
    pub(super) keep: usize,
}

impl Store {
    /// First come, first served: everybody goes through the queue.
    pub(super) fn enqueue(&mut self, now: Moment, waiter: Waiter) {
        self.open_unowned(now);
        if let Some(ticket) = waiter.terms.ticket() {
            return self.adopt(now, ticket, waiter);
        }
        let (client, terms) = (waiter.client.clone(), Arc::clone(&waiter.terms));
        let id = terms.id;
        let slot = self.slots.entry(terms.key.clone()).or_default();
        slot.sweep(now);
        slot.queue.push_back(waiter);
        self.dispatch(now, &terms.key);
        let Some(slot) = self.slots.get_mut(&terms.key) else {
            return;
        };
        if !slot.queue.back().is_some_and(|it| it.is(&client, id)) {
            return;
        }
        let holder = slot.first_to_end(now);
        let others = slot.queue.len() - 1;
        let outcome = if terms.wait.is_try() || terms.is_full(others) {
            slot.queue.pop_back();
            Outcome::Busy { id, holder }
        } else {
            Outcome::Waiting { id, holder }
        };
        let _ = client.send(outcome);
    }

    /// Grants the lock to as many at the head of the queue as may hold it, if their
    /// managers still live.
    pub(super) fn dispatch(&mut self, now: Moment, key: &LockKey) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        slot.sweep(now);
        while slot.queue.front().is_some_and(|it| slot.admits(&it.terms)) {
            let Some(Waiter {
                client,
                terms,
                keep,
                ..
            }) = slot.queue.pop_front()
            else {
                break;
            };
            self.fence += 1;
            let ttl = terms.ttl;
            let granted = Outcome::Granted {
                id: terms.id,
                fence: self.fence,
                token: Some(terms.id.0.into()),
                since: now,
                ttl,
            };
            if client.send(granted).is_ok() {
                self.logs.granted(now, &terms, self.fence, keep);
                slot.holders.push(Owner {
                    client,
                    terms,
                    fence: self.fence,
                    since: now,
                    expires: now.after(ttl),
                    state: State::Held,
                });
            }
        }
        if slot.holders.is_empty() && slot.queue.is_empty() {
            self.slots.remove(key);
        }
    }

    /// Leaves the queue or releases the lock, which may then cool down; `true` if it was held.
    pub(super) fn leave(
        &mut self,
        now: Moment,
        key: &LockKey,
        client: &Client,
        id: LeaseId,
        cools_down: bool,
    ) -> bool {
        let Some(slot) = self.slots.get_mut(key) else {
            return false;
        };
        slot.sweep(now);
        let index = slot.holders.iter().position(|it| it.is(client, id));
        if let Some(index) = index {
            let fence = slot.holders[index].fence;
            self.logs.ended(now, key, fence, GrantEnd::Released);
            let owner = &mut slot.holders[index];
            let cooldown = owner.terms.cooldown(owner.since, now);
            if !cools_down || cooldown.is_zero() {
                slot.holders.remove(index);
            } else {
                owner.state = State::CoolingDown;
                owner.expires = now.after(cooldown);
                self.unowned.insert(owner.expires, key.clone());
                slot.tell_waiters(now);
            }
        } else {
            slot.queue.retain(|it| !it.is(client, id));
        }
        self.dispatch(now, key);
        index.is_some()
    }

    pub(super) fn renew(
        &mut self,
        now: Moment,
        key: &LockKey,
        client: &Client,
        id: LeaseId,
    ) -> bool {
        let Some(slot) = self.slots.get_mut(key) else {
            return false;
        };
        slot.sweep(now);
        let owner = slot.holders.iter_mut().find(|it| it.is(client, id));
        if let Some(owner) = owner {
            owner.expires = now.after(owner.terms.ttl);
            return true;
        }
        false
    }

    /// Lets a writer go on under the terms of a reader; `true` if it holds the lock.
    pub(super) fn downgrade(&mut self, now: Moment, terms: &Arc<Terms>, client: &Client) -> bool {
        let Some(slot) = self.slots.get_mut(&terms.key) else {
            return false;
        };
        slot.sweep(now);
        let Some(owner) = slot.holders.iter_mut().find(|it| it.is(client, terms.id)) else {
            return false;
        };
        owner.terms = Arc::clone(terms);
        self.dispatch(now, &terms.key);
        true
    }

    /// Lets a ticket take the place of a holder; `true` if it held the lock until now.
    pub(super) fn issue(
        &mut self,
        now: Moment,
        key: &LockKey,
        client: &Client,
        id: LeaseId,
        (ticket, time): (TicketId, Duration),
    ) -> bool {
        let Some(slot) = self.slots.get_mut(key) else {
            return false;
        };
        slot.sweep(now);
        let Some(owner) = slot.holders.iter_mut().find(|it| it.is(client, id)) else {
            return false;
        };
        self.logs.ended(now, key, owner.fence, GrantEnd::Released);
        owner.state = State::Issued(ticket);
        owner.expires = now.after(time);
        self.unowned.insert(owner.expires, key.clone());
        slot.tell_waiters(now);
        true
    }

    /// Gives the lock of a ticket to this client.
    fn adopt(&mut self, now: Moment, ticket: TicketId, adopter: Waiter) {
        let Waiter {
            client,
            terms,
            keep,
            ..
        } = adopter;
        let is_issued =
            |it: &Owner| it.state == State::Issued(ticket) && it.terms.kind == terms.kind;
        let issued = self.slots.get_mut(&terms.key).and_then(|slot| {
            slot.sweep(now);
            let index = slot.holders.iter().position(is_issued)?;
            Some((slot, index))
        });
        let Some((slot, index)) = issued else {
            let _ = client.send(Outcome::NoTicket { id: terms.id });
            return;
        };
        self.fence += 1;
        let granted = Outcome::Granted {
            id: terms.id,
            fence: self.fence,
            token: Some(terms.id.0.into()),
            since: now,
            ttl: terms.ttl,
        };
        if client.send(granted).is_ok() {
            self.logs.granted(now, &terms, self.fence, keep);
            let ends = slot.holders[index].expires;
            if slot.holders.iter().filter(|it| it.expires == ends).count() == 1 {
                self.unowned.remove(ends, terms.key.clone());
            }
            slot.holders[index] = Owner {
                client,
                fence: self.fence,
                since: now,
                expires: now.after(terms.ttl),
                state: State::Held,
                terms,
            };
        }
    }

    fn open_unowned(&mut self, now: Moment) {
        while let Some(key) = self.unowned.due(now) {
            self.dispatch(now, &key);
        }
    }

    /// When the first lease of a lock ends.
    pub(super) fn next_end(&self, key: &LockKey) -> Option<Moment> {
        let slot = self.slots.get(key)?;
        slot.holders.iter().map(|it| it.expires).min()
    }

    /// Nobody of this client waits for the lock any more.
    pub(super) fn forget(&mut self, key: &LockKey, client: &Client) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.queue.retain(|it| !it.client.same_channel(client));
        }
    }

    pub(super) fn status(&mut self, now: Moment, key: &LockKey) -> Status {
        let mut status = Status::free(key.clone());
        if let Some(slot) = self.slots.get_mut(key) {
            slot.sweep(now);
            status.kind = slot.kind();
            status.holders = slot.holders.iter().map(|it| it.report(now)).collect();
            status.waiting = slot.queue.len();
            let first = slot.queue.iter().take(MOST_WAITERS);
            status.waiters = first.map(|it| it.describe(now)).collect();
        }
        status
    }

    pub(super) fn history(&mut self, now: Moment, key: &LockKey) -> Vec<Grant> {
        let slot = self.slots.get_mut(key);
        let holders = slot.map_or_else(Vec::new, |slot| {
            slot.sweep(now);
            slot.holders.iter().map(|it| it.fence).collect()
        });
        self.logs.history(key, &holders)
    }

    pub(super) fn overview(&mut self, now: Moment, pattern: &Pattern) -> Overview {
        let slots = self.slots.iter_mut();
        let matching = slots.filter(|(key, _)| pattern.matches(key));
        let locks = matching.filter_map(|(key, slot)| {
            slot.sweep(now);
            let is_used = !slot.holders.is_empty() || !slot.queue.is_empty();
            is_used.then(|| slot.summarize(now, key))
        });
        let count = Count {
            fence: self.fence,
            raised_to: u64::MAX,
        };
        Overview::new(locks.collect(), Some(count))
    }

    pub(super) fn list(&mut self, now: Moment, pattern: &Pattern) -> Vec<LockKey> {
        let held = self.slots.iter_mut().filter_map(|(key, slot)| {
            slot.sweep(now);
            (!slot.holders.is_empty() && pattern.matches(key)).then(|| key.clone())
        });
        let mut keys: Vec<_> = held.collect();
        keys.sort_unstable();
        keys
    }

    /// How many holders have heard that somebody would like to have the lock.
    pub(super) fn ask(&mut self, now: Moment, key: &LockKey) -> usize {
        let Some(slot) = self.slots.get_mut(key) else {
            return 0;
        };
        slot.sweep(now);
        let held = slot.holders.iter().filter(|it| it.state == State::Held);
        let told = held.filter(|owner| {
            let id = owner.terms.id;
            owner.client.send(Outcome::Wanted { id }).is_ok()
        });
        told.count()
    }

    pub(super) fn force_release(&mut self, now: Moment, key: &LockKey) -> usize {
        let Some(slot) = self.slots.get_mut(key) else {
            return 0;
        };
        slot.sweep(now);
        let holders = std::mem::take(&mut slot.holders);
        for owner in &holders {
            let id = owner.terms.id;
            if owner.state == State::Held {
                self.logs.ended(now, key, owner.fence, GrantEnd::Revoked);
            } else {
                self.unowned.remove(owner.expires, key.clone());
            }
            let _ = owner.client.send(Outcome::NotHeld { id });
        }
        self.dispatch(now, key);
        holders.len()
    }
}

impl Slot {
    fn sweep(&mut self, now: Moment) {
        self.holders.retain(|it| now < it.expires);
    }

    /// For one of the waiters.
    fn first_to_end(&self, now: Moment) -> Option<Box<Holder>> {
        let first = self.holders.iter().min_by_key(|it| it.expires)?;
        Some(Box::new(Holder {
            crowd: self.crowd(now),
            ..first.describe(now)
        }))
    }

    /// Who waits, without one of them.
    fn crowd(&self, now: Moment) -> Crowd {
        let others = self.queue.len().saturating_sub(1);
        let first = self.queue.front().filter(|_| others > 0);
        Crowd {
            waiting: u32::try_from(others).unwrap_or(u32::MAX),
            longest: first.map_or(Duration::ZERO, |first| now.since(first.since)),
            ..Crowd::default()
        }
    }

    fn summarize(&self, now: Moment, key: &LockKey) -> Summary {
        let named = self.holders.iter().take(MOST_HOLDERS);
        Summary {
            key: key.clone(),
            kind: self.kind(),
            holders: named.map(|it| it.report(now)).collect(),
            held_by: self.holders.len(),
            waiting: self.queue.len(),
            longest_wait: self.queue.front().map(|it| now.since(it.since)),
        }
    }

    /// The kind in which it is held, unless it is free or cools down.
    fn kind(&self) -> Option<Kind> {
        let mut holders = self.holders.iter();
        let working = holders.find(|it| it.state != State::CoolingDown);
        working.map(|it| it.terms.kind)
    }

    fn tell_waiters(&self, now: Moment) {
        for waiter in &self.queue {
            let _ = waiter.client.send(Outcome::Waiting {
                id: waiter.terms.id,
                holder: self.first_to_end(now),
            });
        }
    }

    fn admits(&self, terms: &Terms) -> bool {
        let Some(owner) = self.holders.first() else {
            return true;
        };
        let taken: usize = self.holders.iter().map(|it| it.terms.permits()).sum();
        let beside = taken + (terms.permits() - 1);
        owner.terms.kind == terms.kind && terms.kind.admits(beside)
    }
}

impl Waiter {
    fn describe(&self, now: Moment) -> types::holder::Waiter {
        let who = Holder::here(&self.terms, Duration::ZERO);
        types::holder::Waiter::new(who, self.terms.kind, Some(now.since(self.since)))
    }

    fn is(&self, client: &Client, id: LeaseId) -> bool {
        self.terms.id == id && self.client.same_channel(client)
    }
}

impl Owner {
    fn is(&self, client: &Client, id: LeaseId) -> bool {
        self.state == State::Held && self.terms.id == id && self.client.same_channel(client)
    }

    fn describe(&self, now: Moment) -> Holder {
        Holder {
            cooling_down: self.state == State::CoolingDown,
            ticket: matches!(self.state, State::Issued(_)),
            ..Holder::here(&self.terms, self.expires.since(now))
        }
    }

    fn report(&self, now: Moment) -> Holder {
        let mut holder = self.describe(now);
        if self.state == State::Held {
            let held: Duration = now.since(self.since);
            holder.since = SystemTime::now().checked_sub(held);
            holder.fencing_token = Some(FencingToken::new(self.fence));
        }
        holder
    }
}
