//! What goes between the clients and the servers: calls, answers and messages, each after
//! its time.

use std::time::Duration;

use super::client::Link;
use super::{Event, Wire, World};
use crate::backend::queue::protocol::message::{Grant, Message};
use crate::backend::redis::protocol::call::Queue;
use crate::backend::redis::protocol::call::Sent;

impl World {
    /// A late command of an old connection runs too: its answer is not heard.
    pub(super) fn execute(&mut self, wire: Wire, sent: Sent) {
        if self.is_sent_elsewhere(wire, &sent)
            || self.is_forbidden(wire, &sent)
            || self.is_forgotten(wire, &sent)
            || self.is_refused_for_now(wire, &sent)
        {
            return;
        }
        self.counts.asks(wire.client, &sent.call);
        let waiting = self.count_waiters(wire.server, &sent.call);
        let server = &mut self.servers[wire.server];
        let reply = server.execute(self.now, wire.client, &sent.call);
        let published = std::mem::take(&mut server.published);
        self.note_ticket(&sent.call, &reply);
        self.note_limit(wire, &sent.call, waiting, &reply);
        self.note_call(wire.client, &sent.call, &reply, &published);
        self.say(|| format!("{wire} {:?} -> {reply:?}", sent.call));
        if self.replica.is_some() {
            self.replicate();
        }
        self.publish(wire.server, published);
        // Answers keep their order.
        let delay = self.latency();
        let at = self.now.after(delay).max(self.link(wire).answers_until);
        self.link(wire).answers_until = at;
        self.at(at, Event::Answer(wire, sent, reply));
    }

    pub(super) fn publish(&mut self, server: usize, published: Vec<(usize, Grant)>) {
        for (client, grant) in published {
            let generation = self.clients[client].links[server].generation;
            let to = Wire {
                client,
                server,
                generation,
            };
            if let Some(key) = grant.key() {
                self.counts
                    .chained(client, &key, grant.fence, &grant.followers);
            }
            if self.silent {
                continue;
            }
            // Push and reply take different ways through the client.
            let delay = self.latency() * self.rng.u32(1..4);
            let push = Event::Push(to, Message::Granted(grant));
            if self.faulty() && self.rng.u8(..) < 10 {
                continue;
            }
            self.after(delay, push);
        }
    }

    /// One turn of a client's driver, as `Driver::drain` does it.
    pub(super) fn turn(&mut self, client: usize) {
        let now = self.now;
        let asks = self.calm || self.faulty();
        let before = self.steps(client);
        let it = &mut self.clients[client];
        if it.dead {
            return;
        }
        if now < it.paused_until {
            let resumes = it.paused_until;
            self.at(resumes, Event::Wake(client));
            return;
        }
        it.act(now, asks);
        it.drive(now);
        self.may_forget_reader(before, client);
        self.note_polls(client);
        let it = &mut self.clients[client];
        let (entered, wakeup) = (std::mem::take(&mut it.entered), it.next_wakeup());
        let (missed, cooling) = (
            std::mem::take(&mut it.missed),
            std::mem::take(&mut it.cooling),
        );
        for (key, fence) in entered {
            self.note_entry(client, &key);
            self.counts.entered(&key, fence);
            self.note_leader(client, &key, fence);
        }
        for (key, fence) in missed {
            self.note_leader(client, &key, fence);
        }
        self.note_cooldowns(cooling);
        self.hand_out(client);
        self.send_looks(client);
        self.route(client);
        for server in 0..self.servers.len() {
            let link = &mut self.clients[client].links[server];
            let generation = link.generation;
            let wire = Wire {
                client,
                server,
                generation,
            };
            let calls = match self.shards {
                Some(_) => std::mem::take(&mut link.outbox),
                None if link.up => link.queue.calls(),
                None => Vec::new(),
            };
            for sent in calls {
                let delay = self.latency();
                // Requests keep their order.
                let at = now.after(delay).max(self.link(wire).requests_until);
                self.link(wire).requests_until = at;
                self.at(at, Event::Request(wire, sent));
            }
            self.ask_replica(wire);
        }
        if let Some(at) = wakeup.map(|at| at.max(now.after(Duration::from_micros(1)))) {
            let known = &mut self.clients[client].wakes_at;
            if known.is_none_or(|known| at < known) {
                *known = Some(at);
                self.at(at, Event::Wake(client));
            }
        }
    }

    pub(super) fn hears(&self, wire: Wire) -> bool {
        let client = &self.clients[wire.client];
        let link = &client.links[wire.server];
        link.up && link.generation == wire.generation && !client.dead
    }

    pub(super) fn link(&mut self, wire: Wire) -> &mut Link {
        &mut self.clients[wire.client].links[wire.server]
    }

    /// What takes in what comes over a connection.
    pub(super) fn queue(&mut self, wire: Wire) -> &mut Queue {
        let of_all = self.shards.is_some();
        let links = &mut self.clients[wire.client].links;
        &mut links[if of_all { 0 } else { wire.server }].queue
    }

    pub(super) fn latency(&mut self) -> Duration {
        if self.calm {
            return Duration::from_micros(self.rng.u64(50..150));
        }
        let slow = self.rng.u8(..) < 4;
        Duration::from_micros(self.rng.u64(if slow { 1..400_000 } else { 50..2_000 }))
    }
}
