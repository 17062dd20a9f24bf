//! Random operations on a real server, compared with a model of locks. The long run is `make model`.

use std::time::Duration;

use tests::{
    PostgresServer,
    model::{Report, Store, run},
};
use tokio::join;

const PROGRAM: &str = env!("CARGO_BIN_EXE_model");

/// Few operations, and so many that each kind of them and each fault is there.
#[tokio::test]
async fn three_thousand_operations() {
    const OPERATIONS: usize = 1500;
    let run = |seed| run(Store::Redis, seed, OPERATIONS, PROGRAM);
    let runs = join!(run(1), run(2));
    pass(1, OPERATIONS, &runs.0);
    pass(2, OPERATIONS, &runs.1);
}

#[tokio::test]
async fn two_thousand_operations_on_postgres() {
    const OPERATIONS: usize = 2000;
    if !PostgresServer::can_be_had("the model") {
        return;
    }
    let report = run(Store::Postgres, 1, OPERATIONS, PROGRAM).await;
    pass(1, OPERATIONS, &report);
}

/// What only a few of the faults bring to light.
#[tokio::test]
#[ignore = "half a minute each; for `make mutants`"]
async fn ten_thousand_operations_a_few_times() {
    const OPERATIONS: usize = 10_000;
    for seed in 1..=5 {
        pass(
            seed,
            OPERATIONS,
            &run(Store::Redis, seed, OPERATIONS, PROGRAM).await,
        );
    }
}

fn pass(seed: u64, operations: usize, (report, took): &(Report, Duration)) {
    println!("{} in {took:?}\n{report}", Report::HEAD);
    let complaints = report.complaints(operations);
    for complaint in &complaints {
        println!("seed {seed}: {complaint}");
    }
    assert!(complaints.is_empty(), "make model SEED={seed}");
}
