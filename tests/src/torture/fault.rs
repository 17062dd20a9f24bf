//! What is done to the processes, the server and the network, and how it is undone.

use std::time::Duration;

use tokio::time::sleep;

use super::{KEYS, TTL, check::Promises, crew::Crew, lock_name};
use crate::RedisServer;

/// A kind of fault, tortured with for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Processes are stopped past their leases, and killed.
    Clients,
    /// The server is stopped.
    Server,
    /// The network loses what goes one way or both ways, and breaks connections.
    Network,
    /// Scripts, subscriptions and connections are dropped, the server pauses.
    Connections,
    /// Keys are deleted and stolen.
    Keys,
}

impl Profile {
    /// All of them, by the names that the command line knows.
    pub const ALL: [(&str, Self); 5] = [
        ("clients", Self::Clients),
        ("server", Self::Server),
        ("network", Self::Network),
        ("connections", Self::Connections),
        ("keys", Self::Keys),
    ];

    /// What holds in spite of it.
    pub(super) fn promises(self) -> Promises {
        Promises {
            // Where somebody else meddles with the keys, bodies may overlap.
            exclusive: self != Self::Keys,
            fences: true,
        }
    }

    /// Does one fault, undoes it, and says what it was.
    pub async fn strike(self, crew: &mut Crew) -> &'static str {
        match self {
            Self::Clients => clients(crew).await,
            Self::Server => server(crew).await,
            Self::Network => network(crew).await,
            Self::Connections => connections(crew).await,
            Self::Keys => keys(crew).await,
        }
    }
}

/// Longer than a lease lasts without a renewal, most of the time.
fn about_a_lease() -> Duration {
    TTL.mul_f64(0.8 + fastrand::f64())
}

async fn clients(crew: &mut Crew) -> &'static str {
    let first = fastrand::usize(..crew.workers.len());
    if fastrand::u8(..4) == 0 {
        crew.replace(first).await;
        return "killed";
    }
    let second = (first + 1) % crew.workers.len();
    for number in [first, second] {
        crew.workers[number].pause();
    }
    sleep(about_a_lease()).await;
    for number in [first, second] {
        crew.workers[number].resume();
    }
    "stopped"
}

async fn server(crew: &mut Crew) -> &'static str {
    crew.server.stop();
    sleep(about_a_lease()).await;
    crew.server.resume();
    "server stopped"
}

async fn network(crew: &mut Crew) -> &'static str {
    let way = fastrand::usize(..crew.ways.len());
    // A way that is closed strikes half of the processes: it has to last.
    let time = TTL.mul_f64(1.2 + 0.6 * fastrand::f64());
    crew.ways[way].strike(time).await
}

async fn connections(crew: &mut Crew) -> &'static str {
    match fastrand::u8(..4) {
        0 => {
            crew.server.cmd(&["SCRIPT", "FLUSH"]).await;
            "scripts flushed"
        }
        1 => {
            crew.server.kill_all_clients().await;
            "connections killed"
        }
        2 => {
            let kill = ["CLIENT", "KILL", "TYPE", "pubsub"];
            crew.server.cmd(&kill).await;
            "subscriptions killed"
        }
        _ => {
            let pause = about_a_lease();
            let millis = pause.as_millis().to_string();
            crew.server.cmd(&["CLIENT", "PAUSE", &millis]).await;
            sleep(pause).await;
            "server paused"
        }
    }
}

async fn keys(crew: &mut Crew) -> &'static str {
    let key = RedisServer::owner_key(&lock_name(fastrand::usize(..KEYS)));
    if fastrand::bool() {
        crew.server.cmd(&["DEL", &key]).await;
        sleep(Duration::from_millis(100)).await;
        return "deleted";
    }
    let steal = ["SET", &key, "thief", "PX", "60000"];
    crew.server.cmd(&steal).await;
    // Nobody may delete what is not theirs.
    for _ in 0..20 {
        sleep(Duration::from_millis(10)).await;
        crew.check_thief(&key).await;
    }
    crew.server.cmd(&["DEL", &key]).await;
    "stolen"
}
