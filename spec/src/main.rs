//! Searches each scenario to its end, and prints how many states it has: all of them, or with `--short` those that
//! take seconds.

use std::fmt::Debug;
use std::hash::Hash;
use std::num::NonZero;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Instant;

use spec::scenarios;
use stateright::{Checker, Model};

fn main() -> ExitCode {
    let short = std::env::args().any(|it| it == "--short");
    println!(
        "{:<8} {:<34} {:>6} {:>10} {:>6} {:>9}",
        "model", "scenario", "faults", "states", "depth", "time"
    );
    let mut held = true;
    for scenario in scenarios::queue(short) {
        held &= search("queue", scenario.name, scenario.faults, scenario);
    }
    for scenario in scenarios::ordered(short) {
        held &= search("ordered", scenario.name, scenario.faults, scenario);
    }
    if held {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Whether all properties hold in all states.
fn search<M>(model: &str, name: &str, faults: u8, scenario: M) -> bool
where
    M: Model + Send + Sync + 'static,
    M::State: Debug + Hash + Clone + PartialEq + Send + Sync,
    M::Action: Debug + Clone + PartialEq + Send + Sync,
{
    let start = Instant::now();
    let threads = available_parallelism().map_or(1, NonZero::get);
    let checker = scenario.checker().threads(threads).spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    let time = start.elapsed().as_secs_f32();
    println!("{model:<8} {name:<34} {faults:>6} {states:>10} {depth:>6} {time:>7.1} s");
    for (property, path) in checker.discoveries() {
        println!("NOT TRUE: {property}");
        for (world, action) in path.into_vec() {
            println!("    {world:?}");
            println!("    {action:?}");
        }
    }
    checker.discoveries().is_empty()
}
