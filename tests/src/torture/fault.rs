//! What is done to the processes, the server and the network, and how it is undone.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    HOT_KEY, LONG, Profile, SHORT, TTL, clock, crew::Crew, cut_off, limits, lock_name, majority,
    messages, mysql, postgres, stale, store::Store,
};
use crate::RedisServer;

impl Profile {
    /// Does one fault, undoes it, and says what it was.
    pub(super) async fn strike(self, crew: &mut Crew) -> &'static str {
        match self {
            Self::Clients => clients(crew).await,
            Self::Server => server(crew).await,
            Self::Network => network(crew).await,
            Self::Connections => match &mut crew.store {
                Store::Postgres(site) => postgres::connections(site).await,
                Store::Mysql(site) => mysql::connections(site).await,
                _ => connections(crew).await,
            },
            Self::Keys => keys(crew).await,
            Self::Pooler => postgres::pooler(crew.store.postgres()).await,
            Self::FullDisk => match &mut crew.store {
                Store::Mysql(site) => mysql::full_disk(site).await,
                store => postgres::full_disk(store.postgres()).await,
            },
            Self::Failover(protection) => match &mut crew.store {
                Store::Postgres(site) => postgres::fail_over(site, protection).await,
                store => store.redis().fail_over().await,
            },
            Self::Minority => majority::minority(crew).await,
            Self::Clocks => majority::clocks(crew).await,
            Self::Majority => majority::majority(crew).await,
            Self::CutOff(_) => cut_off::strike(crew).await,
            Self::Stale => stale::strike(crew).await,
            Self::Clock => clock::strike(crew).await,
            Self::ClockForward => clock::jump(crew).await,
            Self::Messages => messages::strike(crew).await,
            Self::Limits => limits::strike(crew).await,
            Self::Tickets => tickets(crew).await,
        }
    }
}

/// Longer than a lease lasts without a renewal, most of the time.
pub(super) fn about_a_lease() -> Duration {
    about(TTL)
}

/// Longer than that, most of the time.
pub(super) fn about(time: Duration) -> Duration {
    time.mul_f64(0.8 + fastrand::f64())
}

pub(super) async fn clients(crew: &mut Crew) -> &'static str {
    let first = fastrand::usize(..crew.workers.len());
    if fastrand::u8(..4) == 0 {
        crew.replace(first).await;
        return "killed";
    }
    let second = (first + 1) % crew.workers.len();
    for number in [first, second] {
        crew.workers[number].pause();
    }
    sleep(about(crew.servers.ttl())).await;
    for number in [first, second] {
        crew.workers[number].resume();
    }
    "stopped"
}

async fn server(crew: &mut Crew) -> &'static str {
    let time = about(crew.servers.ttl());
    let fleet = crew.store.fleet();
    let server = fleet.leader().await;
    fleet.halt(server, time).await
}

async fn network(crew: &mut Crew) -> &'static str {
    let way = fastrand::usize(..crew.ways.len());
    // A way that is closed strikes half of the processes: it has to last.
    let time = crew.servers.ttl().mul_f64(1.2 + 0.6 * fastrand::f64());
    crew.ways[way].strike(time).await
}

async fn connections(crew: &mut Crew) -> &'static str {
    let server = crew.store.redis().any_master().await;
    match fastrand::u8(..4) {
        0 => {
            server.cmd(&["SCRIPT", "FLUSH"]).await;
            "scripts flushed"
        }
        1 => {
            server.kill_all_clients().await;
            "connections killed"
        }
        2 => {
            let kill = ["CLIENT", "KILL", "TYPE", "pubsub"];
            server.cmd(&kill).await;
            "subscriptions killed"
        }
        _ => {
            let pause = about_a_lease();
            let millis = pause.as_millis().to_string();
            server.cmd(&["CLIENT", "PAUSE", &millis]).await;
            sleep(pause).await;
            "server paused"
        }
    }
}

/// Whatever may happen to a lock that is handed on.
async fn tickets(crew: &mut Crew) -> &'static str {
    match fastrand::u8(..8) {
        0 | 1 => clients(crew).await,
        2 => server(crew).await,
        3 if Profile::Network.suits(crew.servers) => network(crew).await,
        _ => messages::strike(crew).await,
    }
}

async fn keys(crew: &mut Crew) -> &'static str {
    // Every other time the one that is handed over in chains.
    let number = if fastrand::bool() {
        HOT_KEY
    } else {
        fastrand::usize(..LONG + SHORT)
    };
    let name = lock_name(number);
    let key = RedisServer::owner_key(&name);
    let server = crew.store.redis().master_of(&key).await;
    match fastrand::u8(..4) {
        0 | 1 => {
            server.cmd(&["DEL", &key]).await;
            sleep(Duration::from_millis(100)).await;
            return "deleted";
        }
        2 => {
            crew.force(&name).await;
            return "forced";
        }
        _ => {}
    }
    let steal = ["SET", &key, "thief", "PX", "60000"];
    server.cmd(&steal).await;
    // Nobody may delete what is not theirs.
    for _ in 0..20 {
        sleep(Duration::from_millis(10)).await;
        crew.check_thief(&key).await;
    }
    let server = crew.store.redis().master_of(&key).await;
    server.cmd(&["DEL", &key]).await;
    "stolen"
}
