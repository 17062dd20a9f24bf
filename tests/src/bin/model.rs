//! `model [--store STORE] [--operations N] [SEED | FROM..TO]`: compares random operations with a model of locks, and prints a table.

use std::{env, ops::Range, path::Path, process::ExitCode, time::Duration};

use tests::model::{Report, Share, Store, run, work};
use tokio::task::{JoinSet, LocalSet};

/// How many seeds run side by side: they wait more than they compute.
const AT_ONCE: usize = 2;

/// One thread: see [`work`].
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["work", locks, directory, seed, operations, process] => {
            let share = Share {
                seed: seed.parse().expect("a number"),
                operations: operations.parse().expect("a number"),
                process: process.parse().expect("a number"),
            };
            work(share, locks, Path::new(directory)).await;
            ExitCode::SUCCESS
        }
        ["--store", store, words @ ..] => {
            let store = Store::named(store).expect("redis or postgres");
            run_model(store, words).await
        }
        words => run_model(Store::Redis, words).await,
    }
}

async fn run_model(store: Store, words: &[&str]) -> ExitCode {
    let (operations, seeds) = match words {
        ["--operations", operations, seeds @ ..] => (operations.parse().expect("a number"), seeds),
        seeds => (10_000, seeds),
    };
    let model = model(store, operations, seeds);
    LocalSet::new().run_until(model).await
}

async fn model(store: Store, operations: usize, seeds: &[&str]) -> ExitCode {
    let seeds = match seeds {
        [] => 1..21,
        [seeds] => range(seeds).expect("SEED or FROM..TO"),
        other => panic!("what is {other:?}?"),
    };
    let program = env::current_exe().expect("this program has a path");
    println!("  seed seconds {} violations", Report::HEAD);
    let mut failed = false;
    for seeds in seeds.collect::<Vec<_>>().chunks(AT_ONCE) {
        let mut runs = JoinSet::new();
        for seed in seeds.iter().copied() {
            let program = program.to_string_lossy().into_owned();
            runs.spawn_local(async move { (seed, run(store, seed, operations, &program).await) });
        }
        let mut runs = runs.join_all().await;
        runs.sort_by_key(|(seed, _)| *seed);
        for (seed, (report, took)) in runs {
            failed |= print(seed, operations, &report, took);
        }
    }
    ExitCode::from(u8::from(failed))
}

/// Prints the line of a seed, and whether it has failed.
fn print(seed: u64, operations: usize, report: &Report, took: Duration) -> bool {
    println!(
        "{seed:>6} {:>7.1} {report} {:>10}",
        took.as_secs_f64(),
        report.violations.len()
    );
    let complaints = report.complaints(operations);
    for complaint in &complaints {
        println!("  seed {seed}: {complaint}");
    }
    !complaints.is_empty()
}

fn range(words: &str) -> Option<Range<u64>> {
    match words.split_once("..") {
        Some((from, to)) => Some(from.parse().ok()?..to.parse().ok()?),
        None => words.parse().ok().map(|seed| seed..seed + 1),
    }
}
