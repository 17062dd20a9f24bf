//! What goes wrong in the simulation: connections break, processes stop and die.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use super::client::LONGEST_TTL;
use super::server::{AHEAD, Server};
use super::{CLIENTS, Event, Wire, World};
use crate::backend::queue::protocol::trouble::{ServerSaid, Trouble};
use crate::backend::redis::protocol::call::Sent;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::key::LockKey;

/// Nobody works until the last moment of a lease.
const MARGIN: Duration = Duration::from_millis(20);

impl World {
    pub(super) fn connect(&mut self, client: usize, server: usize) {
        let now = self.now;
        let link = &mut self.clients[client].links[server];
        if link.up || self.clients[client].dead {
            return;
        }
        let silent = self.silent;
        let link = &mut self.clients[client].links[server];
        link.up = true;
        link.generation += 1;
        link.queue.poll_waiters(silent);
        self.servers[server].listeners.insert(client);
        self.note_listens(client, true);
        self.meet(client, server);
        let ahead = self.servers[server].ahead.as_micros();
        if let Some(coordinator) = &mut self.clients[client].coordinator {
            coordinator.learn(server, i64::try_from(ahead).unwrap_or(i64::MAX));
        }
        if self.shards.is_some() {
            self.node_is_up(client, server);
        } else {
            self.clients[client].links[server].queue.connected(now);
        }
        self.say(|| format!("client {client} connects to server {server}"));
        self.turn(client);
    }

    pub(super) fn disconnect(&mut self, client: usize, server: usize) {
        let now = self.now;
        let link = &mut self.clients[client].links[server];
        if !link.up {
            return;
        }
        link.up = false;
        let wire = Wire {
            client,
            server,
            generation: link.generation,
        };
        self.servers[server].listeners.remove(&client);
        self.note_listens(client, false);
        self.say(|| format!("client {client} loses its connection to server {server}"));
        let mut lost = self.cut(wire);
        let cause: Cause = Arc::new(ServerSaid("cut".into()));
        if self.shards.is_some() {
            self.node_is_down(wire, lost, &cause);
        } else {
            let trouble = Trouble::Unknown(cause);
            let queue = &mut self.link(wire).queue;
            lost.extend(queue.calls());
            for sent in lost {
                queue.replied(now, sent, Err(trouble.clone()));
            }
            queue.disconnected(trouble);
        }
        let delay = Duration::from_millis(self.rng.u64(1..2000));
        self.after(delay, Event::Connect { client, server });
        self.turn(client);
    }

    /// Takes what travels over a connection off the wire. Some requests come
    /// through all the same, late; nobody hears the answers.
    fn cut(&mut self, wire: Wire) -> Vec<Sent> {
        let pending = self.pending.iter();
        let mut numbers: Vec<_> = pending
            .filter(|(_, event)| event.connection() == Some(wire))
            .map(|(number, _)| *number)
            .collect();
        numbers.sort_unstable();
        let mut lost = Vec::new();
        for number in numbers {
            match self.pending.remove(&number) {
                Some(Event::Answer(_, sent, _) | Event::Refused(_, sent, _)) => lost.push(sent),
                Some(Event::Request(_, sent)) => {
                    if self.rng.u8(..) < 40 {
                        self.note_late(&sent.call);
                        let (call, at) = (sent.call.clone(), sent.at);
                        let late = Event::Request(wire, Sent::new(call, at));
                        let delay = Duration::from_millis(self.rng.u64(1..3000));
                        self.after(delay, late);
                    }
                    lost.push(sent);
                }
                _ => {}
            }
        }
        lost
    }

    pub(super) fn fault(&mut self) {
        if !self.faulty() {
            return;
        }
        let client = self.rng.usize(..CLIENTS);
        let server = self.rng.usize(..self.servers.len());
        // Leases of a majority outlast the clock of one server.
        let clocks = self.servers.len() > 1 && self.shards.is_none();
        match self.rng.u8(..if clocks { 9 } else { 8 }) {
            0..3 => self.disconnect(client, server),
            3..6 => {
                let pause = Duration::from_millis(self.rng.u64(1..12_000));
                self.say(|| format!("client {client} stops for {pause:?}"));
                // It stays stopped until the last of several stops has ended.
                let resumes = self.clients[client].paused_until;
                self.clients[client].paused_until = resumes.max(self.now.after(pause));
                self.after(pause, Event::Wake(client));
            }
            6 if self.clients.iter().filter(|it| !it.dead).count() > 2 => {
                self.say(|| format!("client {client} dies"));
                for server in 0..self.servers.len() {
                    self.disconnect(client, server);
                }
                self.clients[client].die();
                self.counts.dies(client);
            }
            7 if self.shards.is_some() => self.begin_move(),
            7 if self.servers.len() > 1 => self.server_fails(server),
            7 => self.fail_over(),
            8 => self.clock_jumps(server),
            _ => {}
        }
        let pause = Duration::from_millis(self.rng.u64(10..1500));
        self.after(pause, Event::Fault);
    }

    /// The clock of one of several servers jumps, backward or forward: it ends every lease
    /// late or early. It does not jump forward where that makes a second holder, as it may
    /// where no more than a majority has granted a lock.
    fn clock_jumps(&mut self, server: usize) {
        let jump = Duration::from_millis(self.rng.u64(1..20_000));
        let before = self.servers[server].ahead;
        let after = AHEAD.saturating_sub(Duration::from_secs(10)) + jump;
        // What a server in quarantine has forgotten is not to be seen.
        let forgotten = self
            .servers
            .iter()
            .any(|it| self.now < it.quarantined_until);
        if after > before && (forgotten || !self.others_suffice(server)) {
            return;
        }
        self.say(|| format!("the clock of server {server} jumps from {before:?} to {after:?}"));
        if after > before {
            self.servers[server].hasty_until = self.now.after(LONGEST_TTL);
        }
        self.servers[server].ahead = after;
    }

    /// Whether those who have a lease on a server have it for as long from a majority without
    /// it, and without those that may end it early too.
    fn others_suffice(&self, server: usize) -> bool {
        let servers = 0..self.servers.len();
        let all: Vec<_> = servers.map(|it| self.counted_leases(it)).collect();
        let ends = |key: &LockKey, family: &str, with: &dyn Fn(usize) -> bool| {
            let servers = (0..all.len()).filter(|number| with(*number));
            let leases = servers.flat_map(|number| &all[number]);
            let same = leases.filter(|(of, whose, _)| of == key && whose == family);
            let mut ends: Vec<_> = same.map(|(_, _, ends)| *ends).collect();
            ends.sort_by_key(|it| Reverse(*it));
            ends.get(self.servers.len() / 2).copied()
        };
        let sure = |other: usize| other != server && self.servers[other].hasty_until <= self.now;
        all[server].iter().all(|(key, family, _)| {
            let without = ends(key, family, &sure).map(|it| it.after(MARGIN));
            without.is_some() && without >= ends(key, family, &|_| true)
        })
    }

    /// The leases on a server that their clients count or may still count, by key and by what the tokens of an acquisition
    /// have in common. One that is yielded counts no more, though the server has not heard of that.
    fn counted_leases(&self, server: usize) -> Vec<(LockKey, String, Moment)> {
        let mut leases = self.servers[server].leases(self.now);
        leases.retain(|(_, token, _)| {
            let mut queues = self.clients.iter().map(|it| &it.links[server].queue);
            queues.any(|queue| queue.knows(*token))
        });
        let by_family = leases.into_iter().map(|(key, token, ends)| {
            let token = token.to_string();
            (key, Token::family(&token).to_owned(), ends)
        });
        by_family.collect()
    }

    /// One of several servers stops for a while, or starts again without its data and with
    /// its clock set right; a minority has forgotten locks that may still be held.
    fn server_fails(&mut self, server: usize) {
        let now = self.now;
        let away = self
            .servers
            .iter()
            .filter(|it| now < it.quarantined_until)
            .count();
        if self.rng.bool() || away >= (self.servers.len() - 1) / 2 {
            let pause = Duration::from_millis(self.rng.u64(1..900));
            self.say(|| format!("server {server} stops for {pause:?}"));
            let resumes = self.servers[server].paused_until;
            self.servers[server].paused_until = resumes.max(now.after(pause));
            return;
        }
        self.say(|| format!("server {server} starts again, empty"));
        let clients = self.clients.len();
        self.servers[server] = Server::new(now);
        self.servers[server].quarantined_until = now.after(LONGEST_TTL);
        for client in 0..clients {
            self.disconnect(client, server);
        }
    }
}

impl Event {
    /// The connection over which a call or its answer travels. Messages that
    /// were published may still be heard.
    fn connection(&self) -> Option<Wire> {
        match self {
            Self::Request(wire, _) | Self::Answer(wire, ..) | Self::Refused(wire, ..) => {
                Some(*wire)
            }
            _ => None,
        }
    }
}
