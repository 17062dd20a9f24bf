//! What each acquisition waits for and what to send next: a state machine without I/O.

mod claim;
mod endings;
mod inspect;
mod lanes;
mod lease;
mod news;
mod order;
mod replies;
mod requests;
mod session;
mod stages;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::backend::Outcome;
use crate::backend::etcd::protocol::call::{Call, Sent};
use crate::backend::etcd::protocol::keys::{Keys, Span};
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::backend::token::Tokens;
use crate::base::clock::Moment;
use crate::base::numbers::Numbered;
use crate::types::terms::LeaseId;

pub(crate) use claim::Watch;
use claim::{Claim, Stage, patience};
use lanes::Lanes;
use lease::News;
pub(crate) use lease::Quorum;
use order::PAUSE;
pub(crate) use order::{About, AskedBy, Order, Seen, Step};
use session::{Session, Surroundings};

/// A lock that is held no longer needs no watch of its own.
const SHORT: Duration = Duration::from_millis(50);

/// Everything that is asked for and held.
#[derive(Debug)]
pub(crate) struct Queue {
    keys: Keys,
    claims: Numbered<LeaseId, Claim>,
    lanes: Lanes,
    /// By their ttl.
    sessions: BTreeMap<Duration, Session>,
    quorum: Quorum,
    /// Which claim each watch is for.
    watches: Numbered<u64, LeaseId>,
    last_watch: u64,
    /// When to go on with which claim.
    agenda: BTreeSet<(Moment, LeaseId)>,
    /// The queries that await the answers to these calls.
    asked: Numbered<u64, AskedBy>,
    tokens: Tokens,
    calls: Vec<Sent<About>>,
    last_call: u64,
    watching: Vec<Order>,
    outcomes: VecDeque<Outcome>,
    /// Why there is no connection, while there is none.
    down: Option<Trouble>,
}

impl Queue {
    /// Not connected yet.
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            keys: Keys::new(prefix),
            claims: Numbered::default(),
            lanes: Lanes::default(),
            sessions: BTreeMap::new(),
            quorum: Quorum::of_one(),
            watches: Numbered::default(),
            last_watch: 0,
            agenda: BTreeSet::new(),
            asked: Numbered::default(),
            tokens: Tokens::default(),
            calls: Vec::new(),
            last_call: 0,
            watching: Vec::new(),
            outcomes: VecDeque::new(),
            down: Some(Trouble::said("not connected yet")),
        }
    }

    /// What to send now.
    pub(crate) fn orders(&mut self) -> Vec<Order> {
        let mut orders = std::mem::take(&mut self.watching);
        orders.extend(self.calls.drain(..).map(Order::Call));
        orders
    }

    pub(crate) fn next_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// When [`tick`](Self::tick) will next have something to do.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        let claim = self.agenda.first().map(|(at, _)| *at);
        let sessions = self.sessions.values().filter(|_| self.down.is_none());
        let session = sessions.filter_map(Session::next_wakeup).min();
        claim.into_iter().chain(session).min()
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Moment) {
        while let Some(&(at, id)) = self.agenda.first().filter(|(at, _)| *at <= now) {
            self.agenda.remove(&(at, id));
            if let Some(claim) = self.claims.get_mut(&id) {
                claim.due = None;
            }
            self.go_on(now, id);
        }
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
    /// revision may be shown to nobody, and etcd before 3.5.18 does not say so. Whoever
    /// watched looks for itself, and watches from there.
    pub(crate) fn connected(&mut self, now: Moment) {
        self.down = None;
        self.tokens.forget();
        self.watching.clear();
        self.each_session(now, |session, around| {
            session.connected(now, around);
            News::Nothing
        });
        self.watches.clear();
        for id in self.in_order() {
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
        self.watching.clear();
        let why = trouble.cause();
        self.each_session(now, |session, _| session.disconnected(now, &why));
        for id in self.in_order() {
            self.trouble(id, trouble);
        }
    }

    /// All claims, in the order in which they were asked for.
    fn in_order(&self) -> Vec<LeaseId> {
        let mut ids: Vec<_> = self.claims.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Lets each session do something, and acts on what it has learnt.
    fn each_session(
        &mut self,
        now: Moment,
        does: impl Fn(&mut Session, &mut Surroundings<'_>) -> News,
    ) {
        let ttls: Vec<_> = self.sessions.keys().copied().collect();
        for ttl in ttls {
            self.with_session(now, ttl, &does);
        }
    }

    fn with_session(
        &mut self,
        now: Moment,
        ttl: Duration,
        does: impl FnOnce(&mut Session, &mut Surroundings<'_>) -> News,
    ) {
        let mut around = Surroundings {
            keys: &self.keys,
            quorum: &self.quorum,
            calls: &mut self.calls,
        };
        if let Some(session) = self.sessions.get_mut(&ttl) {
            let news = does(session, &mut around);
            self.heed(now, ttl, news);
        }
    }

    fn send(&mut self, at: Moment, id: LeaseId, step: Step, call: Call) {
        if let Some(claim) = self.claims.get_mut(&id) {
            self.last_call += 1;
            claim.awaits = Some(self.last_call);
            self.calls.push(Sent {
                about: About::Claim(id, self.last_call, step),
                call,
                at,
                patience: patience(claim.ttl()),
            });
        }
    }

    /// Goes on with a claim at `at` or before.
    fn go_on_at(&mut self, at: Moment, id: LeaseId) {
        if let Some(claim) = self.claims.get_mut(&id)
            && claim.due.is_none_or(|due| at < due)
        {
            if let Some(due) = claim.due.replace(at) {
                self.agenda.remove(&(due, id));
            }
            self.agenda.insert((at, id));
        }
    }

    fn watch(&mut self, id: LeaseId, span: Span, from: i64, writes: bool) {
        self.unwatch(id);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        self.last_watch += 1;
        let watch = Watch {
            id: self.last_watch,
            span,
            from,
            writes,
        };
        self.watches.insert(watch.id, id);
        self.watching.push(Order::Watch(watch.clone()));
        claim.watch = Some(watch);
    }

    fn unwatch(&mut self, id: LeaseId) {
        let claim = self.claims.get_mut(&id);
        if let Some(watch) = claim.and_then(|claim| claim.watch.take()) {
            self.watches.remove(&watch.id);
            self.watching.push(Order::Unwatch(watch.id));
        }
    }

    fn is_in(&self, id: LeaseId, stage: Stage) -> bool {
        self.claims.get(&id).is_some_and(|it| it.stage == stage)
    }
}
