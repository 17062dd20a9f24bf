//! The store on one Redis server: a pool of connections, each with the queues of the
//! keys that are bound to it.

mod address;
pub(crate) mod cluster;
mod connected;
mod findings;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod inspect;
mod lua;
mod opening;
pub(crate) mod protocol;
mod queries;
pub(crate) mod redlock;
mod sentinel;
pub(crate) mod target;
mod transport;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::RedisConnectionInfo;
use tokio::sync::mpsc;

use crate::backend::queries::Queries;
use crate::backend::setup::Setup;
use crate::backend::transport::ready::{in_time, late};
use crate::backend::{Backend, Outcome, Request};
use crate::base::clock::{Clock, Moment, Sleep};
use crate::base::numbers::Numbered;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

use crate::backend::queue::order::Order;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::queue::{Rules, connection_of};
use connected::connect_failed;
use inspect::Asked;
use protocol::call::Queue;
use protocol::names::{KeyNames, Layout};
use sentinel::Watch;
use transport::connect::{Dialer, Push};
use transport::link::Link;
use transport::way::Way;

/// The backend for one server, or for the one that is the master at the time.
#[derive(Debug)]
struct Redis {
    links: Vec<Link>,
    /// Tells of a new master, where sentinels name it.
    watch: Option<Watch>,
    /// The connection that each acquisition went to.
    bound: Numbered<LeaseId, usize>,
    layout: Layout,
    /// Each step goes over the connection of this number.
    queries: Queries<Asked<usize>, usize>,
    /// Counts probes: each goes over another connection.
    probes: usize,
    pushes: mpsc::UnboundedReceiver<Push>,
    clock: Clock,
    sleep: Sleep,
}

impl Redis {
    /// Not connected yet; the polls that follow open a connection of each of these names.
    fn unconnected(
        setup: &Setup,
        way: Way,
        login: RedisConnectionInfo,
        names: &[KeyNames],
    ) -> Self {
        let watch = match &way {
            Way::Known(_) => None,
            Way::Sentinels(sentinels) => Some(Watch::new(sentinels)),
        };
        let (sender, pushes) = mpsc::unbounded_channel();
        let dialer = Dialer::new(way, login, setup, sender);
        let now = setup.clock.now();
        let link = |(number, names): (usize, &KeyNames)| {
            let rules = Rules {
                replicated: setup.replicas > 0,
                ..Rules::default()
            };
            let mut queue = Queue::new(rules);
            queue.poll_waiters(names.layout.is_polled());
            Link::new(number, queue, names.clone(), dialer.clone(), now)
        };
        Self {
            links: names.iter().enumerate().map(link).collect(),
            watch,
            bound: Numbered::default(),
            layout: names[0].layout,
            queries: Queries::new(),
            probes: 0,
            pushes,
            clock: setup.clock.clone(),
            sleep: Sleep::default(),
        }
    }

    /// Opens every connection, or says why it cannot; a lazy manager leaves that to the
    /// polls that follow.
    async fn connect(
        setup: &Setup,
        server: &Arc<str>,
        way: Way,
        login: RedisConnectionInfo,
        layout: Layout,
    ) -> Result<Self, LockError> {
        let database = login.db();
        let names = KeyNames::of_pool(setup, layout)
            .map_err(|error| LockError::unavailable_at(server, error))?;
        let mut this = Self::unconnected(setup, way, login, &names);
        let mut last = None;
        let all_up = poll_fn(|cx| this.poll_all_up(cx, &mut last));
        match in_time(setup, all_up).await {
            Ok(()) => Ok(this),
            Err(failed) => {
                let trouble = failed
                    .or(last)
                    .unwrap_or_else(|| Trouble::not_now(&late(setup)));
                Err(connect_failed(&trouble, server, database))
            }
        }
    }

    /// Fails at an error that will not go away by itself; `last` keeps the latest other
    /// one.
    fn poll_all_up(
        &mut self,
        cx: &mut Context<'_>,
        last: &mut Option<Trouble>,
    ) -> Poll<Result<(), Trouble>> {
        loop {
            self.follow(cx);
            let now = self.clock.now();
            for link in &mut self.links {
                match link.poll_connection(cx, now) {
                    Ok(()) => {}
                    Err(trouble @ Trouble::Never(_)) => return Poll::Ready(Err(trouble)),
                    Err(trouble) => *last = Some(trouble),
                }
                // A quarantine may end while others connect.
                link.queue.tick(now);
            }
            if self.links.iter().all(Link::is_up) {
                return Poll::Ready(Ok(()));
            }
            if self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// The time of the server's clock, since 1970, and the moment at which it was read, as far as known.
    fn clock(&self) -> Option<(Duration, Moment)> {
        self.links.iter().find_map(Link::clock)
    }

    /// Takes note of one server's part of what several decide.
    fn obey(&mut self, now: Moment, order: Order) {
        let id = match order {
            Order::Plain(request) => return self.submit(now, request),
            Order::Acquire { ref terms, .. } => {
                self.bound.insert(terms.id, self.link_of(&terms.key));
                terms.id
            }
            Order::Yield { id, .. }
            | Order::Raise { id, .. }
            | Order::Number { id, .. }
            | Order::Release { id, .. } => id,
        };
        let link = self.bound.get(&id).copied().unwrap_or(0);
        self.links[link].queue.obey(now, order);
    }

    /// Commands about one key stay in order, since they share a connection.
    fn link_of(&self, key: &LockKey) -> usize {
        connection_of(key, self.links.len())
    }

    /// Compares each connection with the answers of the sentinels, after each new answer.
    fn follow(&mut self, cx: &mut Context<'_>) {
        let Some(watch) = &mut self.watch else {
            return;
        };
        while let Poll::Ready(master) = watch.poll_master(cx) {
            let now = self.clock.now();
            for link in &mut self.links {
                link.named(now, &master);
            }
        }
    }

    /// Takes in everything that has arrived, pushes before the replies that arrived with
    /// them. The end of a connection is one of them: the replies of one that has ended would
    /// count as those of the next one, which may lead to another server.
    fn receive(&mut self, cx: &mut Context<'_>) {
        for link in &mut self.links {
            link.poll_io(cx);
        }
        let now = self.clock.now();
        // They arrive while a connection is polled, and wake nobody else.
        while let Ok(push) = self.pushes.try_recv() {
            self.links[push.connection].pushed(now, push.generation, &push.event);
        }
        for link in &mut self.links {
            while let Some(answered) = link.next_answer() {
                link.settle(now, answered);
            }
            link.settle_replicas(now);
        }
    }

    fn next_outcome(&mut self) -> Option<Outcome> {
        let mut links = self.links.iter_mut();
        let outcome = links.find_map(|it| it.queue.next_outcome())?;
        if let Some(id) = outcome.ended() {
            self.bound.remove(&id);
        }
        Some(outcome)
    }

    /// Ready when something is due that no event announces.
    fn poll_sleep(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let wakeup = self.links.iter().filter_map(Link::next_wakeup).min();
        self.sleep.poll_until(cx, &self.clock, wakeup)
    }
}

impl Backend for Redis {
    fn submit(&mut self, now: Moment, request: Request) {
        let link = match request {
            Request::Query(query) => return self.begin(query),
            Request::Acquire(ref terms) => {
                let link = self.link_of(&terms.key);
                self.bound.insert(terms.id, link);
                link
            }
            Request::Abandon(id)
            | Request::Renew(id)
            | Request::Release(id)
            | Request::Downgrade(id)
            | Request::Issue { id, .. } => self.bound.get(&id).copied().unwrap_or(0),
        };
        self.links[link].queue.submit(now, request);
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            if let Some(outcome) = self.next_outcome() {
                return Poll::Ready(outcome);
            }
            self.receive(cx);
            self.follow(cx);
            let now = self.clock.now();
            self.go_on_with_queries(cx, now);
            let mut unread = false;
            for link in &mut self.links {
                let was_up = link.is_up();
                // The link tells its waiters of a failed attempt.
                let _ = link.poll_connection(cx, now);
                link.queue.tick(now);
                unread |= link.flush(now) || link.is_up() != was_up;
                unread |= link.ask_replicas(now);
            }
            if let Some(outcome) = self.next_outcome() {
                return Poll::Ready(outcome);
            }
            if !unread && self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn chained_keys(&self) -> u64 {
        let marks = self.links.iter().map(|it| it.queue.chained_keys());
        marks.fold(0, |all, marks| all | marks)
    }

    fn is_quiet(&self) -> bool {
        self.links.iter().all(Link::is_quiet)
    }
}
