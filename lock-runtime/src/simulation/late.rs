//! Callers that are not polled for a while: a lock that was not received lasts for about its ttl, and whoever comes later
//! asks again.

use std::time::Duration;

use fastrand::Rng;

use super::failover::Safeguard;
use super::seeds::{seeds, worlds};
use super::{FAULTS, Store, World};
use crate::base::clock::Moment;
use crate::held::lease::Lease;

/// How often of 256 times a caller that still waits is not polled when it is woken next.
const NAPS: u8 = 24;
/// The longest time that it is not polled, in ttls.
const LONGEST_NAP: u32 = 4;

/// How long the callers of one client are not polled.
pub(super) struct Naps {
    rng: Rng,
    /// From then on all are polled, so that the world comes to its end.
    ends: Moment,
    /// How many were polled again in time, and how many too late.
    in_time: usize,
    too_late: usize,
    fault: Option<String>,
}

impl Naps {
    fn new(rng: Rng, ends: Moment) -> Self {
        Self {
            rng,
            ends,
            in_time: 0,
            too_late: 0,
            fault: None,
        }
    }

    /// Until when the caller that waits for a lock of this ttl is not polled, if it is not.
    pub(super) fn begin(&mut self, now: Moment, ttl: Duration) -> Option<Moment> {
        let naps = now < self.ends && self.rng.u8(..) < NAPS;
        naps.then(|| now.after((LONGEST_NAP * ttl).mul_f64(self.rng.f64())))
    }

    /// A caller is about to receive a lock.
    pub(super) fn end(&mut self, now: Moment, lease: &Lease) {
        if !lease.is_held() {
            self.too_late += 1;
            return;
        }
        self.in_time += 1;
        // The last renewal is sent before nine tenths of the ttl, and gives the ttl once more.
        if now >= lease.granted.after(lease.terms.ttl.mul_f64(1.9)) {
            self.fault = Some(format!("{lease:?} was renewed for nobody"));
        }
    }
}

impl World {
    fn let_callers_nap(&mut self) {
        let ends = self.start.after(FAULTS);
        for client in &mut self.clients {
            client.naps = Some(Naps::new(self.rng.fork(), ends));
        }
    }

    /// No lock outlives its ttl by much before its caller has received it.
    pub(super) fn check_naps(&mut self) -> Result<(), String> {
        let mut naps = self.clients.iter_mut().filter_map(|it| it.naps.as_mut());
        naps.find_map(|it| it.fault.take()).map_or(Ok(()), Err)
    }
}

#[test]
fn a_lock_that_was_not_received_ends_and_is_asked_for_again() {
    for store in [
        Store::One,
        Store::Knowing,
        Store::Sharded,
        Store::Failing(Safeguard::Replicas),
        Store::Majority,
    ] {
        let (mut in_time, mut too_late) = (0, 0);
        let seeds = seeds("0..250").step_by(25);
        let worlds = worlds(seeds, store, |world, _| world.let_callers_nap());
        for naps in worlds.flat_map(|it| it.clients).filter_map(|it| it.naps) {
            in_time += naps.in_time;
            too_late += naps.too_late;
        }
        println!("{store:?}: {in_time} received in time, {too_late} too late");
        assert!(in_time > 0 && too_late > 0);
    }
}
