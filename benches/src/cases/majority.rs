//! Five servers of which a majority decides, beside other libraries on the same servers: cycles, a hot key, one server
//! that is late, and two that are dead.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use support::{Proxy, RedisServer, RedlockFleet};

use crate::bench::Bench;
use crate::fleet::Fleet;
use crate::hot::{Crowd, Hot, compete_at};
use crate::report::{Bound, Row, Unit};
use crate::server;
use crate::stats::{Sorted, median};
use crate::systems::System;
use crate::worker::{Spec, Work};

const CASE: &str = "five servers, a majority decides";
/// Processes of one task each on the hot key.
const PROCESSES: usize = 8;
const BODY: Duration = Duration::from_millis(1);
/// How much later the answers of one server come.
const LATE: Duration = Duration::from_millis(20);

/// A value for each system that could be measured.
type Values = BTreeMap<System, f64>;

/// What one system has done in one round.
struct Round {
    p50: f64,
    per_second: f64,
    /// Sent to all servers for one lock.
    commands: f64,
    /// Nanoseconds of all servers' processors for one lock.
    processors: f64,
}

type All = BTreeMap<System, Vec<Round>>;

pub(super) async fn run(bench: &mut Bench) {
    let mut fleet = RedlockFleet::start().await;
    let addresses: Vec<_> = fleet.servers.iter().map(RedisServer::addr).collect();
    let rounds = bench.pick(3, 5);

    let one = measure(bench, &fleet.servers, &addresses, 1, rounds).await;
    let all_up = medians(&one, |it| it.p50);
    add(bench, "1 task: p50 of a cycle", Unit::Nanoseconds, &all_up);
    cycles(bench, "1 task", &one, 0.9);
    let many = measure(bench, &fleet.servers, &addresses, 64, rounds).await;
    cycles(bench, "64 tasks", &many, 1.0);
    hot(bench, &addresses).await;

    let proxy = Proxy::start(addresses[0]);
    proxy.replies().delay(LATE);
    let mut with_proxy = addresses.clone();
    with_proxy[0] = proxy.addr();
    let rounds = bench.pick(1, 3);
    let late = measure(bench, &fleet.servers, &with_proxy, 1, rounds).await;
    against(
        bench,
        "one is 20 ms late, 1 task: p50 of a cycle",
        &medians(&late, |it| it.p50),
        &all_up,
    );

    // Last: a peer that waits for them is left out from then on.
    for server in &mut fleet.servers[3..] {
        server.kill().await;
    }
    let dead = measure(bench, &fleet.servers[..3], &addresses, 1, rounds).await;
    against(
        bench,
        "two are dead, 1 task: p50 of a cycle",
        &medians(&dead, |it| it.p50),
        &all_up,
    );
}

/// The systems that know several servers, as far as they are there.
fn systems(bench: &Bench) -> Vec<System> {
    let peers = [System::Rslock, System::Redlock];
    let there = peers.into_iter().filter(|peer| bench.peers.contains(peer));
    [System::Ours].into_iter().chain(there).collect()
}

/// How a system is given the servers.
fn url(system: System, addresses: &[SocketAddr]) -> String {
    if system == System::Ours {
        return RedlockFleet::url_of(addresses.iter().copied());
    }
    let urls: Vec<_> = addresses.iter().map(|it| format!("redis://{it}")).collect();
    urls.join(",")
}

/// Rounds in each of which every system has its turn, every other round backwards.
async fn measure(
    bench: &mut Bench,
    alive: &[RedisServer],
    addresses: &[SocketAddr],
    tasks: usize,
    rounds: usize,
) -> All {
    let time = Duration::from_millis(bench.pick(500, 1_000));
    let mut all = All::new();
    for number in 0..rounds {
        let mut systems = systems(bench);
        if number % 2 == 1 {
            systems.reverse();
        }
        for system in systems {
            let spec = Spec::new(system, Work::Free, url(system, addresses)).tasks(tasks);
            let round = bench.attempt(system, round(spec, alive, time)).await;
            all.entry(system).or_default().extend(round);
        }
    }
    all.retain(|_, rounds| !rounds.is_empty());
    all
}

async fn round(spec: Spec, alive: &[RedisServer], time: Duration) -> Round {
    let system = spec.system;
    let mut fleet = Fleet::start([spec]).await;
    for server in alive {
        server::reset(server).await;
    }
    let before = server::processor_seconds_of(alive).await;
    fleet.go(time).await;
    let mut commands = 0.0;
    for server in alive {
        commands += server::statistics(server).await.commands(system);
    }
    let busy = server::processor_seconds_of(alive).await - before;
    let outcome = fleet.stop().await.pop().expect("one worker");
    let seconds = outcome.elapsed_ns as f64 / 1e9;
    let latencies: Sorted = outcome.latencies.into_iter().collect();
    let cycles = latencies.count() as f64;
    Round {
        p50: latencies.quantile(0.5),
        per_second: cycles / seconds,
        commands: commands / cycles,
        processors: busy * 1e9 / cycles,
    }
}

fn medians(all: &All, value: fn(&Round) -> f64) -> Values {
    let middle = |rounds: &[Round]| median(&rounds.iter().map(value).collect::<Vec<_>>());
    all.iter()
        .map(|(system, rounds)| (*system, middle(rounds)))
        .collect()
}

/// Cycles, and what goes to the servers for them, beside the library that waits for all servers.
fn cycles(bench: &mut Bench, tasks: &str, all: &All, least: f64) {
    let ratio = |value: fn(&Round) -> f64| {
        let rounds = all[&System::Ours].iter().zip(all.get(&System::Rslock)?);
        let ratios = rounds.map(|(ours, theirs)| value(ours) / value(theirs));
        Some(median(&ratios.collect::<Vec<_>>()))
    };
    let mut add = |figure: &str, unit, value: fn(&Round) -> f64, bound: &dyn Fn(f64) -> Bound| {
        let row = row(&format!("{tasks}: {figure}"), unit, &medians(all, value));
        bench.report.add(match ratio(value) {
            Some(ratio) => row.bound(bound(ratio)),
            None => row,
        });
    };
    add("cycles", Unit::PerSecond, |it| it.per_second, &|ratio| {
        Bound::at_least(least, ratio, " x rslock")
    });
    add("commands a lock", Unit::Plain, |it| it.commands, &|ratio| {
        Bound::at_most(1.0, ratio, " x rslock")
    });
    let processors = medians(all, |it| it.processors);
    let figure = format!("{tasks}: servers' processors a cycle");
    bench
        .report
        .add(row(&figure, Unit::Nanoseconds, &processors));
}

async fn hot(bench: &mut Bench, addresses: &[SocketAddr]) {
    let time = Duration::from_millis(bench.pick(1_500, 4_000));
    let mut all: BTreeMap<System, Hot> = BTreeMap::new();
    for system in systems(bench) {
        let crowd = Crowd::of_ours(PROCESSES, 1, BODY).of(system);
        let url = url(system, addresses);
        let hot = bench.attempt(system, compete_at(&url, crowd, time)).await;
        if let Some(hot) = hot {
            all.insert(system, hot);
        }
    }
    let values = |figure: fn(&Hot) -> f64| -> Values {
        all.iter()
            .map(|(system, hot)| (*system, figure(hot)))
            .collect()
    };
    let fairness = values(|it| it.fairness);
    let bound = Bound::at_least(0.98, fairness[&System::Ours], "");
    let row = row(
        "hot key, 8 processes: Jain's fairness",
        Unit::Plain,
        &fairness,
    );
    bench.report.add(row.bound(bound));
    let wait = values(|it| it.waits.quantile(0.99));
    add(
        bench,
        "hot key, 8 processes: wait, p99",
        Unit::Nanoseconds,
        &wait,
    );
    let sections = values(|it| it.per_second);
    add(
        bench,
        "hot key, 8 processes: sections",
        Unit::PerSecond,
        &sections,
    );
}

/// Trouble with a minority must not be noticed.
fn against(bench: &mut Bench, figure: &str, now: &Values, before: &Values) {
    let ratio = now[&System::Ours] / before[&System::Ours];
    let row = row(figure, Unit::Nanoseconds, now);
    bench
        .report
        .add(row.bound(Bound::at_most(1.5, ratio, " x with all of them")));
}

fn add(bench: &mut Bench, figure: &str, unit: Unit, values: &Values) {
    bench.report.add(row(figure, unit, values));
}

fn row(figure: &str, unit: Unit, values: &Values) -> Row {
    let mut row = Row::new(CASE, figure, unit, values[&System::Ours]);
    for (system, value) in values.iter().filter(|(it, _)| **it != System::Ours) {
        row = row.beside(system, *value);
    }
    row
}
