//! What servers keep for somebody who no longer wants it: not for long, even if they refuse calls for now.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;

use super::refusals::Right;
use super::seeds::{seeds, worlds};
use super::server::AHEAD;
use super::{Store, Wire, World};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::protocol::call::{Call, Sent};
use crate::base::clock::Moment;

/// How often of 256 times a call is refused for now.
const REFUSED: u8 = 12;
/// A refused call is repeated after a second at the latest, more than once if it is refused again, and each way takes up to
/// 400 ms.
const SOON: Duration = Duration::from_secs(4);

/// What the servers have for clients that do not know it.
pub(super) struct Leftovers {
    rng: Rng,
    refused: usize,
    /// With their servers, and since when.
    strays: BTreeMap<(usize, u128), Moment>,
    /// What a connection has brought after it broke.
    late: BTreeSet<u128>,
}

impl World {
    /// Servers refuse some calls for now, and nothing that nobody wants stays there for long.
    fn look_for_leftovers(&mut self) {
        self.leftovers = Some(Leftovers {
            rng: self.rng.fork(),
            refused: 0,
            strays: BTreeMap::new(),
            late: BTreeSet::new(),
        });
    }

    /// Whether a call is refused for now; its client hears so.
    pub(super) fn is_refused_for_now(&mut self, wire: Wire, sent: &Sent) -> bool {
        let faulty = self.faulty();
        let Some(leftovers) = self.leftovers.as_mut().filter(|_| faulty) else {
            return false;
        };
        // A query is asked again by itself.
        let refused = Right::of(&sent.call).is_some() && leftovers.rng.u8(..) < REFUSED;
        if refused {
            leftovers.refused += 1;
            self.refuse(wire, sent, Trouble::not_now("BUSY"));
        }
        refused
    }

    /// A call comes through although its connection is broken.
    pub(super) fn note_late(&mut self, call: &Call) {
        if let (Some(leftovers), Call::Acquire { bearer, .. }) = (&mut self.leftovers, call) {
            leftovers.late.insert(bearer.token.number());
        }
    }

    pub(super) fn check_leftovers(&mut self) -> Result<(), String> {
        let Some(leftovers) = &mut self.leftovers else {
            return Ok(());
        };
        let mut strays = BTreeMap::new();
        // Where the clock has gone back, leases end later by as much.
        let servers = self.servers.iter().enumerate();
        for (number, server) in servers.filter(|(_, it)| it.ahead >= AHEAD) {
            for (client, token) in server.tokens(self.now) {
                let client = &self.clients[client];
                let links = &client.links;
                let link = &links[if self.shards.is_some() { 0 } else { number }];
                let is_known = client.dead || link.queue.knows(token);
                if is_known || leftovers.late.contains(&token.number()) {
                    continue;
                }
                let reached =
                    links[number].up && client.paused_until.max(server.paused_until) <= self.now;
                let since = leftovers.strays.get(&(number, token.number()));
                let since = since.copied().filter(|_| reached).unwrap_or(self.now);
                if self.now.since(since) > SOON {
                    return Err(format!("{token} stays on server {number}"));
                }
                strays.insert((number, token.number()), since);
            }
        }
        leftovers.strays = strays;
        Ok(())
    }
}

#[test]
fn nothing_stays_that_nobody_wants() {
    for store in [Store::One, Store::Knowing, Store::Sharded, Store::Majority] {
        let seeds = seeds("0..250").step_by(10);
        let worlds = worlds(seeds, store, |world, _| world.look_for_leftovers());
        let leftovers = worlds.filter_map(|it| it.leftovers);
        let refused: usize = leftovers.map(|it| it.refused).sum();
        println!("{store:?}: {refused} calls refused for now");
        assert!(refused > 0);
    }
}
