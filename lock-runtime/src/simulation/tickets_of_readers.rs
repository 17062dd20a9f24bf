//! Readers that were writers and become tickets, around failovers that forget that they are readers: whoever gets such a
//! ticket can adopt it.

use std::time::Duration;

use super::downgrades::Downgrading;
use super::failover::Safeguard;
use super::seeds::{seeds, worlds};
use super::{Event, Store, World};

/// How often of 256 times a failover comes soon after a downgrade, or after somebody asks for a ticket.
const FAILOVERS: u8 = 48;

impl World {
    /// Some writers go on as readers, and some readers become tickets.
    pub(super) fn transfer_readers(&mut self) {
        self.transfer();
        for client in &mut self.clients {
            client.downgrading = Some(Downgrading::new(self.rng.fork()));
        }
    }

    /// A client has taken more of these steps: the replica may not hear of the last ones any more.
    pub(super) fn may_forget_reader(&mut self, before: usize, client: usize) {
        let forgetful = self.replica.is_some() && self.faulty();
        if forgetful && self.steps(client) > before && self.rng.u8(..) < FAILOVERS {
            let most = [3_000, 100_000][self.rng.usize(..2)];
            let soon = Duration::from_micros(self.rng.u64(0..most));
            self.after(soon, Event::FailOver);
        }
    }

    /// How many writers of a client have gone on as readers, and for how many tickets it has asked; none where no reader
    /// becomes a ticket.
    pub(super) fn steps(&self, client: usize) -> usize {
        let client = &self.clients[client];
        let both = client.downgrading.as_ref().zip(client.issuing.as_ref());
        both.map_or(0, |(downgrading, issuing)| downgrading.done + issuing.count)
    }
}

/// How many tickets of readers there were.
fn transfers(store: Store) -> usize {
    let seeds = seeds("0..250").step_by(5);
    let worlds = worlds(seeds, store, |world, _| world.transfer_readers());
    worlds
        .map(|it| it.tickets.map_or(0, |it| it.of_readers))
        .sum()
}

#[test]
fn whoever_gets_the_ticket_of_a_reader_can_adopt_it() {
    let failing = [Safeguard::Replicas, Safeguard::Quarantine].map(Store::Failing);
    for store in [Store::One, Store::Knowing, Store::Sharded]
        .into_iter()
        .chain(failing)
    {
        let of_readers = transfers(store);
        println!("{store:?}: {of_readers} tickets of readers");
        assert!(of_readers > 0);
    }
}
