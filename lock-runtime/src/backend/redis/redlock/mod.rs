//! The store on several independent Redis servers, of which a majority decides.

mod claim;
pub(crate) mod clocks;
mod contending;
pub(crate) mod coordinator;
#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod holding;
mod member;
mod merging;
mod queries;
pub(crate) mod servers;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use super::Redis;
use super::connected::connect_failed;
use super::protocol::names::{KeyNames, Layout};
use crate::backend::queries::Queries;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::setup::Setup;
use crate::backend::transport::ready::{in_time, late};
use crate::backend::{Backend, Outcome, Request};
use crate::base::clock::{Clock, Moment, Sleep};
use crate::types::error::LockError;

use claim::majority;
use clocks::{Clocks, ahead};
use coordinator::Coordinator;
use member::Member;
use servers::Servers;

/// How long a manager waits for the other servers, once it is connected to a majority.
const LINGER: Duration = Duration::from_millis(50);

/// The backend for a majority of servers.
#[derive(Debug)]
pub(super) struct Redlock {
    servers: Vec<Member>,
    coordinator: Coordinator,
    /// They ask the servers, each of which has queries of its own.
    queries: Queries<Infallible>,
    clock: Clock,
    sleep: Sleep,
}

impl Redlock {
    /// Connects to a majority, or says why it cannot; the others are connected to while
    /// it works.
    pub(super) async fn connect(setup: &Setup, all: &Servers) -> Result<Self, LockError> {
        let name = Arc::from(all.to_string());
        // One channel on all servers, so that those with the same position are in the same
        // order everywhere.
        let names = KeyNames::of_pool(setup, Layout::Shared)
            .map_err(|error| LockError::unavailable_at(&name, error))?;
        let connections = all.ways(setup);
        let servers: Vec<_> = connections
            .map(|(way, login)| Member::new(Redis::unconnected(setup, way, login, &names)))
            .collect();
        let machine = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let machine = ahead(machine.unwrap_or_default(), setup.clock.now());
        let clocks = Clocks::new(servers.len(), machine);
        let mut this = Self {
            servers,
            coordinator: Coordinator::new(clocks),
            queries: Queries::new(),
            clock: setup.clock.clone(),
            sleep: Sleep::default(),
        };
        if setup.lazy {
            return Ok(this);
        }
        let mut last = Vec::new();
        last.resize_with(this.servers.len(), || None);
        let majority = majority(this.servers.len());
        let up = poll_fn(|cx| this.poll_up(cx, majority, &mut last));
        if let Err(failed) = in_time(setup, up).await {
            let last = || last.into_iter().flatten().next();
            let trouble = failed
                .or_else(last)
                .unwrap_or_else(|| Trouble::not_now(&late(setup)));
            return Err(connect_failed(&trouble, &name, all.database()));
        }
        let all = this.servers.len();
        let up = poll_fn(|cx| this.poll_up(cx, all, &mut last));
        // The others may take as long as they like.
        let _ = tokio::time::timeout(LINGER, up).await;
        // The first acquisition has its position by these clocks, too.
        (0..all).for_each(|server| this.learn_clock(server));
        Ok(this)
    }

    /// Ready when so many are connected to. Fails where too few are left for that;
    /// `last` keeps the latest error of each.
    fn poll_up(
        &mut self,
        cx: &mut Context<'_>,
        needed: usize,
        last: &mut [Option<Trouble>],
    ) -> Poll<Result<(), Trouble>> {
        let left = self.servers.len() - needed;
        let (mut up, mut refused) = (0, 0);
        for (server, last) in self.servers.iter_mut().zip(last) {
            match server.ask().poll_all_up(cx, last) {
                Poll::Ready(Ok(())) => up += 1,
                Poll::Ready(Err(trouble)) => {
                    *last = Some(trouble.clone());
                    refused += 1;
                    if refused > left {
                        return Poll::Ready(Err(trouble));
                    }
                }
                Poll::Pending => {}
            }
        }
        if up >= needed {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }

    /// Takes in what the servers have answered; `false` if none has.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut heard = false;
        for server in 0..self.servers.len() {
            while let Poll::Ready(outcome) = self.servers[server].poll_outcome(cx) {
                self.learn_clock(server);
                self.coordinator.settle(self.clock.now(), server, outcome);
                heard = true;
            }
            self.learn_clock(server);
        }
        heard
    }

    fn learn_clock(&mut self, server: usize) {
        if let Some((shows, at)) = self.servers[server].redis().clock() {
            self.coordinator.learn(server, ahead(shows, at));
        }
    }
}

impl Backend for Redlock {
    fn submit(&mut self, now: Moment, request: Request) {
        match request {
            Request::Query(query) => self.begin(query),
            request => self.coordinator.submit(now, request),
        }
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            let now = self.clock.now();
            self.coordinator.tick(now);
            for (server, order) in self.coordinator.orders() {
                self.servers[server].ask().obey(now, order);
            }
            let heard = self.receive(cx);
            self.queries.poll(cx);
            if let Some(outcome) = self.coordinator.next_outcome() {
                return Poll::Ready(outcome);
            }
            let wakeup = self.coordinator.next_wakeup();
            if !heard && self.sleep.poll_until(cx, &self.clock, wakeup).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn is_quiet(&self) -> bool {
        let quiet = self
            .servers
            .iter()
            .filter(|it| it.redis().is_quiet())
            .count();
        quiet >= majority(self.servers.len())
    }
}
