//! A replica that lags behind replaces the server, with and without the settings that keep
//! that from making a second holder.

use std::collections::VecDeque;
use std::time::Duration;

use super::client::LONGEST_TTL;
use super::server::Server;
use super::{CLIENTS, Event, Wire, World};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::base::clock::Moment;

/// By how much the clock of a replica is behind that of its master.
const BEHIND: Duration = Duration::from_secs(2);

/// What the clients do about failovers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Safeguard {
    Nothing,
    Replicas,
    Quarantine,
}

/// What a replica knows, and what is on its way to it.
pub(super) struct Replica {
    pub(super) safeguard: Safeguard,
    known: Server,
    coming: VecDeque<(Moment, Server)>,
    /// When it is noticed that it has taken over.
    noticed: Option<Moment>,
    promoted: bool,
}

impl Replica {
    pub(super) fn new(safeguard: Safeguard, now: Moment) -> Self {
        Self {
            safeguard,
            known: Server::new(now),
            coming: VecDeque::new(),
            noticed: None,
            promoted: false,
        }
    }

    /// The server has done something, of which this one hears later.
    fn follow(&mut self, now: Moment, arrives: Moment, server: &Server) {
        self.learn(now);
        // What is written first arrives first.
        let arrives = self.up_to_date().map_or(arrives, |last| last.max(arrives));
        self.coming.push_back((arrives, server.clone()));
    }

    /// When it will know all that has been done so far.
    fn up_to_date(&self) -> Option<Moment> {
        self.coming.back().map(|(at, _)| *at)
    }

    /// Takes in what has arrived.
    fn learn(&mut self, now: Moment) {
        while self.coming.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, state)) = self.coming.pop_front() {
                self.known = state;
            }
        }
    }

    /// What it knows now.
    fn take_over(&mut self, now: Moment) -> Server {
        self.learn(now);
        self.coming.clear();
        self.promoted = true;
        self.noticed = None;
        self.known.clone()
    }

    /// For how long a client that connects now must not be granted anything.
    fn quarantine(&mut self, now: Moment) -> Option<Duration> {
        if !self.promoted || self.safeguard != Safeguard::Quarantine {
            return None;
        }
        let noticed = *self.noticed.get_or_insert(now);
        LONGEST_TTL.checked_sub(now.since(noticed))
    }
}

impl World {
    /// A call has been carried out.
    pub(super) fn replicate(&mut self) {
        // Replicas are late more often than answers are.
        let late = self.rng.u8(..) < 64;
        let delay = if late {
            Duration::from_millis(self.rng.u64(1..500))
        } else {
            self.latency()
        };
        if let Some(replica) = &mut self.replica {
            replica.follow(self.now, self.now.after(delay), &self.servers[0]);
        }
    }

    /// The replica replaces the server, which is gone for good.
    pub(super) fn fail_over(&mut self) {
        let Some(replica) = &mut self.replica else {
            return;
        };
        // The counter is raised to the server's clock.
        let server = &mut self.servers[0];
        let fence = server.fence;
        *server = replica.take_over(self.now);
        server.fence = fence;
        server.ahead = server.ahead.saturating_sub(BEHIND);
        server.listeners.clear();
        server.published.clear();
        self.say(|| "a replica takes over".into());
        self.forget_tickets();
        for client in 0..CLIENTS {
            self.disconnect(client, 0);
        }
        let travels = |event: &Event| matches!(event, Event::Request(..) | Event::Wait(..));
        self.pending.retain(|_, event| !travels(event));
    }

    /// What a client learns about the server when it connects.
    pub(super) fn meet(&mut self, client: usize, server: usize) {
        let now = self.now;
        let replica = self.replica.as_mut();
        let promoted = replica.and_then(|replica| replica.quarantine(now));
        let restarted = self.servers[server].quarantined_until.since(now);
        let left = promoted.or(Some(restarted).filter(|left| !left.is_zero()));
        let queue = &mut self.clients[client].links[server].queue;
        queue.quarantined(now, left);
    }

    /// A client asks whether the replica has what the server has answered.
    pub(super) fn ask_replica(&mut self, wire: Wire) {
        let link = self.link(wire);
        if link.up
            && let Some((time, _)) = link.queue.ask_replicas()
        {
            let delay = self.latency();
            self.after(delay, Event::Wait(wire, time));
        }
    }

    /// The server answers once the replica has everything, or the time is over.
    pub(super) fn wait(&mut self, wire: Wire, time: Duration) {
        let (now, replica) = (self.now, self.replica.as_ref());
        let known = replica.and_then(Replica::up_to_date).unwrap_or(now);
        let ends = now.after(time);
        let answer = Event::Replicated(wire, known <= ends);
        let at = known.max(now).min(ends).after(self.latency());
        self.at(at, answer);
    }

    /// A client hears whether the replica has it.
    pub(super) fn replicated(&mut self, wire: Wire, enough: bool) {
        if self.hears(wire) {
            let few = || Trouble::not_now("the replica is late");
            let answer = enough.then_some(()).ok_or_else(few);
            let now = self.now;
            self.link(wire).queue.replicas_answered(now, &answer);
            self.turn(wire.client);
        }
    }
}
