//! Witnesses that are slow, or out of date about who leads, beside a leader that was replaced.

use std::time::Duration;

use tokio::time::sleep;

use super::{Servers, crew::Crew, fault::about, history::monotonic, store::Fleet};

/// How late the answers of a slow server are: later than a client waits for the others' once one has answered.
fn lateness() -> Duration {
    Duration::from_millis(fastrand::u64(50..400))
}

/// One witness answers late, or stands still again and again; or the leader is replaced and some have not heard of it.
pub(super) async fn strike(crew: &mut Crew) -> &'static str {
    let fleet = crew.store.fleet();
    let leader = fleet.leader().await;
    let mut witnesses = fleet.witnesses(leader);
    fastrand::shuffle(&mut witnesses);
    let time = about(2 * crew.servers.ttl());
    match fastrand::u8(..4) {
        0 => {
            for way in &crew.ways {
                way.proxies().delay(witnesses[0], lateness());
            }
            sleep(time).await;
            pass(crew);
            "late witnesses"
        }
        1 => {
            halting(fleet, witnesses[0], time).await;
            "halting witnesses"
        }
        _ => {
            behind(crew, leader, &witnesses).await;
            "witnesses that are out of date"
        }
    }
}

/// Stops a server again and again.
async fn halting(fleet: &mut dyn Fleet, server: usize, time: Duration) {
    let end = monotonic() + time;
    while monotonic() < end {
        fleet.stop(server);
        sleep(lateness()).await;
        fleet.resume(server);
        sleep(Duration::from_millis(fastrand::u64(1..50))).await;
    }
}

/// Another one leads, which some have not heard of when they are asked, and those who have heard answer late. The
/// former leader still answers.
async fn behind(crew: &mut Crew, leader: usize, witnesses: &[usize]) {
    let ttl = crew.servers.ttl();
    let are_sentinels = crew.servers == Servers::Sentinel;
    // One sentinel that sees is enough to replace the master. Others keep locks, or copies of them.
    let blind = if are_sentinels {
        fastrand::usize(1..witnesses.len())
    } else {
        1
    };
    let (blind, seeing) = witnesses.split_at(blind);
    let seeing = if are_sentinels { seeing } else { &[] };
    let late = lateness();
    for way in &crew.ways {
        for server in seeing {
            way.proxies().delay(*server, late);
        }
    }
    let fleet = crew.store.fleet();
    for witness in blind {
        fleet.blind(*witness);
    }
    let replaced = crew.servers.replicas() > 0;
    if replaced {
        fleet.cut_off(&[leader]).await;
        fleet.replace(leader).await;
    }
    // About when clients ask them.
    sleep(late.mul_f64(2.0 * fastrand::f64())).await;
    let fleet = crew.store.fleet();
    if are_sentinels {
        for witness in blind {
            fleet.see(*witness);
        }
    }
    if fastrand::bool() {
        let processes = (0..crew.ways.len()).flat_map(|it| crew.processes(it));
        let fault = "some servers were slow or out of date";
        crew.serve(processes.collect(), fault).await;
    } else {
        sleep(about(2 * ttl)).await;
    }
    pass(crew);
    let fleet = crew.store.fleet();
    if !are_sentinels {
        for witness in blind {
            fleet.see(*witness);
        }
    }
    if replaced {
        fleet.rejoin(&[leader]).await;
    }
    crew.settle().await;
}

fn pass(crew: &Crew) {
    for way in &crew.ways {
        way.proxies().pass();
    }
}
