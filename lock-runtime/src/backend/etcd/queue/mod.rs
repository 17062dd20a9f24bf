//! The stage and the next call of each acquisition: a state machine without I/O.

mod adopting;
mod batches;
mod claim;
mod downgrading;
mod history;
mod inspect;
mod issuing;
mod key_orders;
mod lease;
mod noted;
mod order;
mod replies;
mod requests;
mod session;
mod slots;
mod stages;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backend::Outcome;
use crate::backend::claims::Claims;
use crate::backend::etcd::protocol::call::{Call, Sent};
use crate::backend::etcd::protocol::keys::{Keys, Span};
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::base::clock::Moment;
use crate::base::numbers::Numbered;
use crate::types::terms::LeaseId;

use batches::Batches;
use claim::{Claim, Stage, call_timeout};
use key_orders::KeyOrders;
pub(crate) use lease::Quorum;
use lease::SessionEvent;
use noted::History;
pub(crate) use order::{AskedBy, Order, Recipient, Seen, Step, Watch};
use order::{LONG_PAUSE, LOOK_AGAIN, PAUSE};
use session::{Session, Surroundings};
use slots::Slots;
use watches::Watches;

/// A lock that is held no longer needs no watch of its own.
const SHORT: Duration = Duration::from_millis(50);

/// Everything that is asked for and held.
#[derive(Debug)]
pub(crate) struct Queue {
    keys: Keys,
    claims: Claims<Claim>,
    key_orders: KeyOrders,
    slots: Slots,
    /// By their ttl.
    sessions: BTreeMap<Duration, Session>,
    quorum: Quorum,
    watches: Watches,
    history: History,
    /// The queries that await the answers to these calls.
    asked: Numbered<u64, AskedBy>,
    last_asked: u64,
    calls: Vec<Sent<Recipient>>,
    batches: Batches,
    /// Why there is no connection, while there is none.
    down: Option<Trouble>,
}

impl Queue {
    /// Not connected yet; remembers so many grants of each lock.
    pub(crate) fn new(prefix: &str, history: usize) -> Self {
        Self {
            keys: Keys::new(prefix),
            claims: Claims::default(),
            key_orders: KeyOrders::default(),
            slots: Slots::default(),
            sessions: BTreeMap::new(),
            quorum: Quorum::of_one(),
            watches: Watches::default(),
            history: History::new(history),
            asked: Numbered::default(),
            last_asked: 0,
            calls: Vec::new(),
            batches: Batches::default(),
            down: Some(Trouble::said("not connected yet")),
        }
    }

    /// The next calls to send.
    pub(crate) fn orders(&mut self) -> Vec<Order> {
        let mut orders = self.watches.orders();
        let writes = std::iter::from_fn(|| self.batches.next(&self.keys));
        orders.extend(self.calls.drain(..).chain(writes).map(Order::Call));
        orders
    }

    pub(crate) fn next_outcome(&mut self) -> Option<Outcome> {
        self.claims.next_outcome()
    }

    /// When [`tick`](Self::tick) will next have something to do.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        let claim = self.claims.next_wakeup();
        let sessions = self.sessions.values().filter(|_| self.down.is_none());
        let session = sessions.filter_map(Session::next_wakeup).min();
        let history = self.history.next_wakeup().filter(|_| self.down.is_none());
        claim.into_iter().chain(session).chain(history).min()
    }

    /// Carries out due work.
    pub(crate) fn tick(&mut self, now: Moment) {
        while let Some(id) = self.claims.due(now) {
            self.go_on(now, id);
        }
        self.keep_history(now);
        if self.down.is_none() {
            self.each_session(now, |session, around| session.tick(now, around));
        }
    }

    /// A keep-alive counts once these members have answered.
    pub(crate) fn needs(&mut self, quorum: Quorum) {
        self.quorum = quorum;
    }

    /// Calls go to another member from here on. Calls in flight have been
    /// [`answered`](Self::answered) before.
    ///
    /// Watches do not go on where they were: a deletion that was compacted at its own
    /// revision may be shown to no watch, and etcd before 3.5.18 does not say so. Each watcher
    /// reads for itself, and watches from there.
    pub(crate) fn connected(&mut self, now: Moment) {
        self.down = None;
        self.claims.tokens.forget();
        self.slots.renew();
        self.each_session(now, |session, around| session.connected(now, around));
        self.watches.clear();
        for id in self.claims.ids(|_| true) {
            if let Some(claim) = self.claims.get_mut(&id) {
                claim.watch = None;
                claim.unwatched = claim.created != 0;
            }
            self.go_on(now, id);
        }
    }

    /// No member can be asked. Calls in flight have been [`answered`](Self::answered)
    /// before.
    pub(crate) fn disconnected(&mut self, now: Moment, trouble: &Trouble) {
        self.down = Some(trouble.clone());
        drop(self.watches.orders());
        let why = trouble.cause();
        self.each_session(now, |session, _| session.disconnected(now, &why));
        for id in self.claims.ids(Claim::acquires) {
            self.trouble(id, trouble);
        }
    }

    /// Lets each session do something, and acts on what it has learnt.
    fn each_session<E: Into<SessionEvent>>(
        &mut self,
        now: Moment,
        does: impl Fn(&mut Session, &mut Surroundings<'_>) -> E,
    ) {
        let ttls: Vec<_> = self.sessions.keys().copied().collect();
        for ttl in ttls {
            self.with_session(now, ttl, &does);
        }
    }

    fn with_session<E: Into<SessionEvent>>(
        &mut self,
        now: Moment,
        ttl: Duration,
        does: impl FnOnce(&mut Session, &mut Surroundings<'_>) -> E,
    ) {
        let mut around = Surroundings {
            keys: &self.keys,
            quorum: &self.quorum,
            calls: &mut self.calls,
        };
        if let Some(session) = self.sessions.get_mut(&ttl) {
            let event = does(session, &mut around).into();
            self.act_on(now, ttl, event);
        }
    }

    fn send(&mut self, at: Moment, id: LeaseId, step: Step, call: Call) {
        let turn = self.claims.next_turn(id);
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.awaits = true;
            let sent = Sent {
                to: Recipient::Claim(turn, step),
                call,
                at,
                call_timeout: call_timeout(claim.ttl()),
            };
            if step.is_write() {
                self.batches.push(sent);
            } else {
                self.calls.push(sent);
            }
        }
    }

    fn watch(&mut self, id: LeaseId, span: Span, from: i64, writes: bool) {
        self.unwatch(id);
        if let Some(claim) = self.claims.get_mut(&id) {
            let watch = self.watches.begin(id, span.clone(), from, writes);
            claim.watch = Some((watch, span));
        }
    }

    fn unwatch(&mut self, id: LeaseId) {
        let claim = self.claims.get_mut(&id);
        if let Some((watch, _)) = claim.and_then(|claim| claim.watch.take()) {
            self.watches.end(watch);
        }
    }

    fn is_in(&self, id: LeaseId, stage: Stage) -> bool {
        self.claims.get(&id).is_some_and(|it| it.stage == stage)
    }
}
