//! Random operations on a real server, compared with a model of locks. The long run is `make model`.

use std::time::Duration;

use tests::{
    PostgresServer,
    model::{Report, Store, run},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_model");

#[tokio::test]
async fn fifteen_hundred_operations() {
    shows_all(Store::Redis, 1500).await;
}

#[tokio::test]
async fn two_thousand_operations_on_postgres() {
    if !PostgresServer::can_be_had("the model") {
        return;
    }
    shows_all(Store::Postgres, 2000).await;
}

/// Few operations, and so many that each kind of them and each fault is there. A busy machine lets
/// fewer of them succeed, and more runs follow.
async fn shows_all(store: Store, operations: usize) {
    let mut all = Report::default();
    for seed in 1..=5 {
        let (report, took) = run(store, seed, operations, PROGRAM).await;
        println!("{} in {took:?}\n{report}", Report::HEAD);
        for violation in &report.violations {
            println!("seed {seed}: {violation}");
        }
        assert!(report.violations.is_empty(), "make model SEED={seed}");
        all.add(report);
        if all.lacks(operations).is_empty() {
            return;
        }
    }
    panic!("too little in five runs: {:?}", all.lacks(operations));
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
