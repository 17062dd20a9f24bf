//! The cost of more waiters on one key and of more held locks: the cost of each must not grow.

use std::time::{Duration, Instant};

use support::RedisServer;
use tokio::time::sleep;

use crate::bench::Bench;
use crate::fleet::Hand;
use crate::hot::{Crowd, compete};
use crate::plot::{Chart, Series};
use crate::report::{Bound, Row, Unit};
use crate::server;
use crate::stats::{growth, median};
use crate::systems::System;
use crate::worker::{Sample, Spec, Work};

const CASE: &str = "cost over size";
/// The exponent of growth: 1 is proportional, plus a tenth for noise.
const LINEAR: f64 = 1.1;

/// The cost at each size, in ns.
#[derive(Debug, Default)]
struct Costs {
    client: Vec<(f64, f64)>,
    server: Vec<(f64, f64)>,
}

pub(super) async fn run(bench: &mut Bench) {
    let server = bench.server().await;
    let waiters = waiters(bench, &server).await;
    report(bench, "a hand-off", "waiters", &waiters);
    drop(server);

    let mut held = Costs::default();
    for count in bench.pick(vec![10, 1_000, 10_000], vec![10, 1_000, 100_000]) {
        let server = bench.server().await;
        hold(bench, &server, count, &mut held).await;
    }
    report(bench, "a held lock and second", "held locks", &held);
}

/// Waiters are tasks of one process, besides the one that holds the lock. Medians of rounds.
async fn waiters(bench: &Bench, server: &RedisServer) -> Costs {
    const WAITERS: [usize; 4] = [1, 10, 100, 1_000];
    let mut rounds = WAITERS.map(|_| (Vec::new(), Vec::new()));
    for _ in 0..bench.pick(1, 3) {
        for (waiters, (client, server_ns)) in WAITERS.into_iter().zip(&mut rounds) {
            let crowd = Crowd::of_ours(1, waiters + 1, Duration::ZERO);
            // All queue up first, which must be short beside the rest.
            let time = Duration::from_millis(bench.pick(600, 1_000) + 2 * waiters as u64);
            let hot = compete(server, crowd, time).await;
            client.push(hot.each(hot.client_ns));
            server_ns.push(hot.each(hot.server.script_us * 1e3));
        }
    }
    let mut costs = Costs::default();
    for (waiters, (client, server_ns)) in WAITERS.into_iter().zip(&rounds) {
        costs.client.push((waiters as f64, median(client)));
        costs.server.push((waiters as f64, median(server_ns)));
    }
    costs
}

/// Renewals alone: the locks are held, and nothing else happens.
async fn hold(bench: &Bench, server: &RedisServer, count: usize, costs: &mut Costs) {
    let mut hand = Hand::start(&Spec::new(System::Ours, Work::Held, server.url())).await;
    let _: usize = hand.ask(&format!("take {count}")).await;
    server::reset(server).await;
    let before: Sample = hand.ask("sample").await;
    let started = Instant::now();
    // Longer than it takes until every lock has been renewed.
    sleep(Duration::from_secs(bench.pick(4, 10))).await;
    let after: Sample = hand.ask("sample").await;
    assert_eq!(after.lost, 0, "of {count} held locks");
    let each = count as f64 * started.elapsed().as_secs_f64();
    let script_ns = server::statistics(server).await.script_us * 1e3;
    let driver_ns = (after.driver_ns - before.driver_ns) as f64;
    costs.client.push((count as f64, driver_ns / each));
    costs.server.push((count as f64, script_ns / each));
}

fn report(bench: &mut Bench, of: &str, size: &str, costs: &Costs) {
    for (whose, points) in [("client", &costs.client), ("server", &costs.server)] {
        let [.., before, last] = points[..] else {
            continue;
        };
        // Of one each; all together grow by one power more.
        let together = growth(before, last) + 1.0;
        let figure = format!("{whose}'s processor {of}, {} {size}", last.0);
        let mut row = Row::new(CASE, &figure, Unit::Nanoseconds, last.1);
        for (count, cost) in &points[..points.len() - 1] {
            row = row.beside(format!("{count} {size}"), *cost);
        }
        bench
            .report
            .add(row.bound(Bound::at_most(LINEAR, together, " power of size, all")));
    }
    let line = |name: &str, color, points: &[(f64, f64)]| Series {
        name: name.into(),
        color,
        points: points.iter().map(|(x, ns)| (*x, ns / 1e3)).collect(),
    };
    bench.plot(
        &format!("size-{}", size.replace(' ', "-")),
        &Chart {
            title: &format!("What {of} costs, with more {size}"),
            x: size,
            y: "µs of processor",
            parts: false,
            series: vec![
                line("client", 0, &costs.client),
                line("server", 1, &costs.server),
            ],
        },
    );
}
