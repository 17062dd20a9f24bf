//! What is done to independent servers of which a majority decides.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    TTL,
    crew::Crew,
    fault::{about_a_lease, clients},
    history::monotonic,
};
use crate::RedlockFleet;

/// For how long a server that has started grants nothing at the most: it tells whole seconds.
const QUARANTINE: Duration = TTL.saturating_add(Duration::from_secs(2));

/// Two of five stop or start again empty, sometimes beside processes that stop.
pub(super) async fn minority(crew: &mut Crew) -> &'static str {
    let [first, second, ..] = shuffled();
    match fastrand::u8(..4) {
        0 => {
            clients(crew).await;
            "processes struck"
        }
        1 => {
            stop(crew.store.redis().independent(), &[first, second]).await;
            "two stopped"
        }
        2 => {
            restart(crew.store.redis().independent(), &[first, second]).await;
            "two restarted empty"
        }
        _ => {
            let fleet = crew.store.redis().independent();
            fleet.servers[first].stop();
            restart(fleet, &[second]).await;
            fleet.servers[first].resume();
            "one stopped, one restarted empty"
        }
    }
}

/// The clocks of two of five jump, by about a lease or by hours.
pub(super) async fn clocks(crew: &mut Crew) -> &'static str {
    let fleet = crew.store.redis().independent();
    if !fleet.has_clocks() {
        sleep(TTL).await;
        return "clocks that cannot be moved";
    }
    let (ahead, what) = match fastrand::u8(..4) {
        0 => (Duration::ZERO, "clocks set right"),
        1 => (about_a_lease(), "clocks moved by a lease"),
        _ => (
            Duration::from_secs(fastrand::u64(1..10_000)),
            "clocks moved by hours",
        ),
    };
    for server in 0..2 {
        fleet.set_clock(server, ahead).await;
    }
    what
}

/// Three of five stop or start again empty. Once the leases have ended that there were, nobody gets in.
pub(super) async fn majority(crew: &mut Crew) -> &'static str {
    let [first, second, third, ..] = shuffled();
    let down = [first, second, third];
    let fleet = crew.store.redis().independent();
    let kill = fastrand::bool();
    for server in down {
        if kill {
            fleet.servers[server].kill().await;
        } else {
            fleet.servers[server].stop();
        }
    }
    let nobody_from = monotonic() + TTL;
    sleep(TTL + about_a_lease()).await;
    let nobody_until = monotonic();
    for server in down {
        if kill {
            fleet.servers[server].restart().await;
        } else {
            fleet.servers[server].resume();
        }
    }
    crew.closed.push(nobody_from..nobody_until);
    if kill {
        sleep(QUARANTINE).await;
        return "three restarted empty";
    }
    "three stopped"
}

async fn stop(fleet: &RedlockFleet, servers: &[usize]) {
    for server in servers {
        fleet.servers[*server].stop();
    }
    sleep(about_a_lease()).await;
    for server in servers {
        fleet.servers[*server].resume();
    }
}

async fn restart(fleet: &mut RedlockFleet, servers: &[usize]) {
    for server in servers {
        fleet.servers[*server].kill().await;
    }
    sleep(about_a_lease().mul_f64(fastrand::f64())).await;
    for server in servers {
        fleet.servers[*server].restart().await;
    }
    sleep(QUARANTINE).await;
}

fn shuffled() -> [usize; 5] {
    let mut servers = [0, 1, 2, 3, 4];
    fastrand::shuffle(&mut servers);
    servers
}
