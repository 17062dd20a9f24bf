//! Which seeds are simulated, and what is printed of them.

use std::ops::Range;
use std::time::Instant;

use super::chains::Counts;
use super::failover::Safeguard;
use super::{Store, World};

/// Runs a world to its end; panics with its seed at the first fault.
pub(super) fn run(world: &mut World, seed: u64) {
    if let Err(fault) = world.run() {
        panic!("seed {seed}: {fault} (LOCK_SEED={seed} shows what happened)");
    }
}

fn simulate(seed: u64, store: Store, loud: bool) -> Counts {
    let mut world = World::new(seed, store, loud);
    run(&mut world, seed);
    world.count_steps();
    world.counts
}

#[test]
fn one_holder_at_a_time_and_everybody_is_served() {
    simulate_all("0..250", Store::One);
}

#[test]
fn a_majority_has_one_holder_at_a_time_and_serves_everybody() {
    simulate_all("0..50", Store::Majority);
}

#[test]
fn a_failover_makes_no_second_holder_where_replicas_confirm() {
    simulate_all("0..80", Store::Failing(Safeguard::Replicas));
}

#[test]
fn a_failover_makes_no_second_holder_with_a_quarantine() {
    simulate_all("0..80", Store::Failing(Safeguard::Quarantine));
}

#[test]
fn a_failover_makes_a_second_holder_where_nobody_does_anything_about_it() {
    let two_hold = |seed| {
        let outcome = World::new(seed, Store::Failing(Safeguard::Nothing), false).run();
        outcome.is_err_and(|fault| fault.contains("beside"))
    };
    assert!((0..200).any(two_hold));
}

#[test]
fn a_seed_shows_the_same_again() {
    for store in [Store::One, Store::Sharded, Store::Majority] {
        let [once, again] = [(); 2].map(|()| simulate(7, store, false).to_string());
        assert_eq!(once, again);
    }
}

/// Worlds of a store, each run to its end after it was prepared.
pub(super) fn worlds(
    seeds: impl Iterator<Item = u64>,
    store: Store,
    prepare: impl Fn(&mut World, u64),
) -> impl Iterator<Item = World> {
    seeds.map(move |seed| {
        let mut world = World::new(seed, store, is_loud());
        prepare(&mut world, seed);
        run(&mut world, seed);
        world
    })
}

/// Whether one seed is to be shown.
pub(super) fn is_loud() -> bool {
    std::env::var_os("LOCK_SEED").is_some()
}

/// The seeds that the environment names, else these.
pub(super) fn seeds(default: &str) -> Range<u64> {
    match std::env::var("LOCK_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("LOCK_SEED is a number");
            seed..seed + 1
        }
        Err(_) => range(default),
    }
}

fn range(default: &str) -> Range<u64> {
    let seeds = std::env::var("LOCK_SEEDS").unwrap_or_else(|_| default.into());
    let (from, to) = seeds.split_once("..").expect("LOCK_SEEDS is FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

pub(super) fn simulate_all(default: &str, store: Store) {
    if let Ok(seed) = std::env::var("LOCK_SEED") {
        let seed = seed.parse().expect("LOCK_SEED is a number");
        println!("{}", simulate(seed, store, true));
        return;
    }
    let Range {
        start: from,
        end: to,
    } = range(default);
    let started = Instant::now();
    let mut counts = Counts::default();
    for seed in from..to {
        counts.add(&simulate(seed, store, false));
    }
    let seconds = started.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = (to - from) as f64 / seconds;
    println!("simulated seeds {from}..{to} of {store:?}: {rate:.0} a second; {counts}");
}
