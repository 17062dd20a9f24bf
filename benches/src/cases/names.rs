//! A million different names, each locked once: none of them leaves anything behind.

use std::time::Duration;

use tokio::time::sleep;

use crate::bench::Bench;
use crate::fleet::Hand;
use crate::report::{Bound, Row, Unit};
use crate::server;
use crate::systems::System;
use crate::worker::{Sample, Spec, Work};

const CASE: &str = "different keys, once each";
/// The number of names between two samples.
const STEP: usize = 50_000;
const MIB: f64 = 1_048_576.0;
/// How long the memory may take to be freed.
const TIME_LIMIT: Duration = Duration::from_secs(5);

pub(super) async fn run(bench: &mut Bench) {
    let server = bench.server().await;
    let mut hand = Hand::start(&Spec::new(System::Ours, Work::Keys, server.url())).await;
    let memory_before = server::memory(&server).await;
    let before: Sample = hand.ask("sample").await;
    let count = bench.pick(50_000, 1_000_000);
    for first in (0..count).step_by(STEP) {
        let _: String = hand.ask(&format!("keys {first} {}", first + STEP)).await;
    }
    let mut waited = Duration::ZERO;
    let (heap, memory) = loop {
        let after: Sample = hand.ask("sample").await;
        let heap = (after.heap_bytes - before.heap_bytes) as f64;
        let memory = server::memory(&server).await - memory_before;
        if heap.max(memory) <= MIB || waited >= TIME_LIMIT {
            break (heap, memory);
        }
        let pause = Duration::from_millis(250);
        sleep(pause).await;
        waited += pause;
    };
    for (whose, left) in [("client heap", heap), ("server's memory", memory)] {
        let figure = format!("{whose}, more than before {count} keys");
        bench.report.add(
            Row::new(CASE, &figure, Unit::Bytes, left).bound(Bound::at_most(
                1.0,
                left / MIB,
                " MiB",
            )),
        );
    }
}
