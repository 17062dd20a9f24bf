//! Locks that go from client to client by tickets: exactly one request adopts each, it can be adopted for its time, and
//! nobody else holds its lock meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fastrand::Rng;

use super::failover::Safeguard;
use super::seeds::{seeds, worlds};
use super::{Event, Store, World};
use crate::backend::redis::protocol::call::Call;
use crate::backend::redis::protocol::reply::Reply;
use crate::base::clock::Moment;
use crate::held::guard::LockGuard;
use crate::types::error::LockError;
use crate::types::kind::Kind;
use crate::types::ticket::Ticket;
use crate::types::ticket_id::TicketId;

/// Of a ticket, in milliseconds.
const TIMES: std::ops::Range<u64> = 100..6_000;

/// The tickets that a client makes.
pub(super) struct Issuing {
    rng: Rng,
    asked: Vec<Asked>,
    got: Vec<Got>,
    /// For how many it has asked.
    pub(super) count: usize,
}

/// A ticket that has been asked for.
struct Asked {
    answer: Pin<Box<dyn Future<Output = Result<Ticket, LockError>>>>,
    lasts_until: Moment,
    gives_up: Option<Moment>,
}

struct Got {
    ticket: Ticket,
    /// How long it lasts at least.
    lasts_until: Moment,
}

impl Issuing {
    pub(super) fn new(rng: Rng) -> Self {
        Self {
            rng,
            asked: Vec::new(),
            got: Vec::new(),
            count: 0,
        }
    }

    /// Makes a ticket of some guards that would be released.
    pub(super) fn ask(&mut self, now: Moment, guard: LockGuard) {
        if self.rng.bool() {
            return;
        }
        self.count += 1;
        let time = Duration::from_millis(self.rng.u64(TIMES));
        let gives_up =
            (self.rng.u8(..) < 40).then(|| now.after(Duration::from_millis(self.rng.u64(0..20))));
        self.asked.push(Asked {
            answer: Box::pin(guard.into_ticket(time)),
            lasts_until: now.after(time),
            gives_up,
        });
        self.collect();
    }

    /// Drops what the program does not wait for any more.
    pub(super) fn give_up(&mut self, now: Moment) {
        self.asked
            .retain(|it| it.gives_up.is_none_or(|at| now < at));
    }

    /// Takes in the answers.
    pub(super) fn collect(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        self.asked
            .retain_mut(|it| match it.answer.as_mut().poll(&mut cx) {
                Poll::Pending => true,
                Poll::Ready(answer) => {
                    self.got.extend(answer.map(|ticket| Got {
                        ticket,
                        lasts_until: it.lasts_until,
                    }));
                    false
                }
            });
    }

    pub(super) fn next_wakeup(&self) -> Option<Moment> {
        self.asked.iter().filter_map(|it| it.gives_up).min()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.asked.is_empty()
    }
}

/// The tickets of a world, and what became of them.
#[derive(Default)]
pub(super) struct Tickets {
    /// Those that nobody has adopted.
    valid: Vec<Got>,
    /// Those that a server has written, and when it has said so last.
    written: BTreeMap<u128, Moment>,
    /// When locks were revoked or forgotten, which may have had tickets.
    forgotten_at: Option<Moment>,
    adopted: BTreeSet<u128>,
    refused: usize,
    /// How many were those of readers.
    pub(super) of_readers: usize,
    /// One that could not be adopted.
    lost: Option<Ticket>,
}

impl Tickets {
    /// Whether a ticket that a client has got is there.
    fn is_there(&self, ticket: &Ticket) -> bool {
        let written = self.written.get(&{ ticket.id.0 }).copied();
        written > self.forgotten_at
    }

    /// Somebody asks for a ticket that nobody has adopted, and does not get it.
    fn is_missed(&mut self, now: Moment, id: TicketId) {
        self.refused += 1;
        let mut valid = self.valid.iter().filter(|it| now < it.lasts_until);
        let lost = valid.find(|it| it.ticket.id == id);
        self.lost = lost.map(|it| it.ticket.clone());
    }
}

impl World {
    /// Some locks go from client to client.
    pub(super) fn transfer(&mut self) {
        for client in &mut self.clients {
            client.issuing = Some(Issuing::new(self.rng.fork()));
        }
        self.tickets = Some(Tickets::default());
    }

    /// Sends the tickets of a client to others: to one, to several, or to nobody.
    pub(super) fn hand_out(&mut self, client: usize) {
        let Some(issuing) = &mut self.clients[client].issuing else {
            return;
        };
        for got in std::mem::take(&mut issuing.got) {
            self.say(|| format!("client {client} has {}", got.ticket));
            for _ in 0..self.rng.usize(..4) {
                let delay = Duration::from_millis(self.rng.u64(0..TIMES.end));
                let to = self.rng.usize(..self.clients.len());
                self.after(delay, Event::Adopt(to, Arc::new(got.ticket.clone())));
            }
            if let Some(tickets) = &mut self.tickets {
                tickets.of_readers += usize::from(got.ticket.kind == Kind::Read);
                if tickets.is_there(&got.ticket) {
                    tickets.valid.push(got);
                }
            }
        }
    }

    pub(super) fn adopt(&mut self, client: usize, ticket: &Ticket) {
        if !self.clients[client].dead {
            let now = self.now;
            self.clients[client].adopt(now, ticket);
            self.turn(client);
        }
    }

    /// A server has carried out a call.
    pub(super) fn note_ticket(&mut self, call: &Call, reply: &Reply) {
        let now = self.now;
        let Some(tickets) = &mut self.tickets else {
            return;
        };
        match (call, reply) {
            (Call::Issue { ticket, .. }, Reply::Ours(true)) => {
                tickets.written.insert(ticket.0, now);
            }
            (Call::Acquire { bearer, .. }, reply) => match (bearer.terms.ticket(), reply) {
                (None, _) => {}
                (Some(id), Reply::Granted { .. }) => {
                    tickets.valid.retain(|it| it.ticket.id != id);
                }
                (Some(id), _) => tickets.is_missed(now, id),
            },
            _ => {}
        }
    }

    /// Locks are revoked or forgotten: tickets of any of them may be gone.
    pub(super) fn forget_tickets(&mut self) {
        if let Some(tickets) = &mut self.tickets {
            tickets.valid.clear();
            tickets.forgotten_at = Some(self.now);
        }
    }

    /// A ticket that is there can be adopted. Unless a failover may have forgotten something: nobody holds the lock of a
    /// ticket, and nobody has adopted one that somebody else has adopted.
    pub(super) fn check_tickets(&mut self) -> Result<(), String> {
        let Some(tickets) = &mut self.tickets else {
            return Ok(());
        };
        if let Some(ticket) = tickets.lost.take() {
            return Err(format!("{ticket} is nobody's, and cannot be adopted"));
        }
        tickets.valid.retain(|it| self.now < it.lasts_until);
        if self.replica.is_some() {
            return Ok(());
        }
        for (number, client) in self.clients.iter_mut().enumerate() {
            for id in client.adopted.drain(..) {
                if !tickets.adopted.insert(id.0) {
                    return Err(format!(
                        "client {number} has adopted {id:?} as a second one"
                    ));
                }
            }
        }
        self.check_closed()
    }

    fn check_closed(&self) -> Result<(), String> {
        let valid = self.tickets.iter().flat_map(|it| &it.valid);
        for Got { ticket, .. } in valid {
            for (number, client) in self.clients.iter().enumerate() {
                let mut held = client.holds();
                let intrudes = |(guard, kind): (&LockGuard, Kind)| {
                    let (key, fence) = (guard.key(), guard.fencing_token().get());
                    let shares = kind == ticket.kind && kind != Kind::Exclusive;
                    *key == ticket.key && !shares && !self.is_excused(number, key, fence)
                };
                if held.any(intrudes) {
                    return Err(format!("client {number} holds the lock of {ticket}"));
                }
            }
        }
        Ok(())
    }
}

/// How many tickets were adopted and how many adoptions were refused.
fn transfers(store: Store) -> (usize, usize) {
    let (mut adopted, mut refused) = (0, 0);
    let seeds = seeds("0..250").step_by(7);
    for world in worlds(seeds, store, |world, _| world.transfer()) {
        let tickets = world.tickets.unwrap_or_default();
        adopted += tickets.adopted.len();
        refused += tickets.refused;
    }
    (adopted, refused)
}

#[test]
fn exactly_one_adopts_each_ticket() {
    for store in [Store::One, Store::Knowing, Store::Sharded] {
        let (adopted, refused) = transfers(store);
        println!("{store:?}: {adopted} tickets adopted, {refused} adoptions refused");
        assert!(adopted > 0 && refused > 0);
    }
}

#[test]
fn a_failover_makes_no_second_holder_of_a_ticket() {
    for safeguard in [Safeguard::Replicas, Safeguard::Quarantine] {
        transfers(Store::Failing(safeguard));
    }
}
