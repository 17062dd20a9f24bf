//! Servers that forget scripts: a call is not carried out, those behind it are, and its client sends it again.

use fastrand::Rng;

use super::failover::Safeguard;
use super::refusals::Right;
use super::seeds::{seeds, worlds};
use super::{Store, Wire, World};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::protocol::call::Sent;

/// How often of 256 times a call finds its script forgotten.
const FORGOTTEN: u8 = 24;

impl World {
    /// Whether the script of a call is forgotten; its client hears so.
    pub(super) fn is_forgotten(&mut self, wire: Wire, sent: &Sent) -> bool {
        let faulty = self.faulty();
        let forgets = self.forgets.as_mut().filter(|_| faulty);
        let forgotten = forgets.is_some_and(|rng| rng.u8(..) < FORGOTTEN);
        // A query is asked again by itself.
        let forgotten = forgotten && Right::of(&sent.call).is_some();
        if forgotten {
            self.refuse(wire, sent, Trouble::NotRun);
        }
        forgotten
    }
}

#[test]
fn what_is_sent_again_since_a_script_was_forgotten_makes_no_second_holder() {
    for store in [
        Store::One,
        Store::Knowing,
        Store::Sharded,
        Store::Failing(Safeguard::Replicas),
    ] {
        let seeds = seeds("0..250").step_by(5);
        let forget = |world: &mut World, seed| world.forgets = Some(Rng::with_seed(seed));
        worlds(seeds, store, forget).for_each(drop);
    }
}
