//! Random operations on a real server, compared with a model of locks. The long run is `make model`.

use std::time::Duration;

use tests::model::{Report, run};
use tokio::join;

const PROGRAM: &str = env!("CARGO_BIN_EXE_model");

/// Few operations, and so many that each kind of them and each fault is there.
#[tokio::test]
async fn three_thousand_operations() {
    const OPERATIONS: usize = 1500;
    let runs = join!(run(1, OPERATIONS, PROGRAM), run(2, OPERATIONS, PROGRAM));
    pass(1, OPERATIONS, &runs.0);
    pass(2, OPERATIONS, &runs.1);
}

/// What only a few of the faults bring to light.
#[tokio::test]
#[ignore = "half a minute each; for `make mutants`"]
async fn ten_thousand_operations_a_few_times() {
    const OPERATIONS: usize = 10_000;
    for seed in 1..=5 {
        pass(seed, OPERATIONS, &run(seed, OPERATIONS, PROGRAM).await);
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
