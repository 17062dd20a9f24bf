//! A long run under faults, and a checker of what happened in it: see `make torture`.

mod adoptions;
mod body;
mod check;
mod clock;
mod crew;
mod cut_off;
mod etcd;
mod fault;
mod history;
mod lateness;
mod library;
mod limits;
mod load;
mod majority;
mod messages;
mod mysql;
mod network;
mod outcome;
mod panics;
mod polls;
mod postgres;
mod probe;
mod profile;
mod proxies;
mod redis;
mod revision;
mod servers;
mod site;
mod soak;
mod stale;
mod store;
mod tested;
mod tickets;
mod transfers;
mod trap;
mod verdict;
mod work;
mod zookeeper;

use std::time::Duration;

use tokio::time::sleep;

pub use check::Report;
pub use library::Library;
pub use load::run as load;
pub use network::Medium;
pub use probe::reach;
pub use profile::{Profile, Protection};
pub use revision::{revision, today};
pub use servers::Servers;
pub(crate) use site::{Blow, Site};
pub use soak::{Soak, Tally};
pub use tested::{PAGE, Row, with_rows};
pub use work::run as work;

use crate::{Chains, HistoryVerdict};
use crew::Crew;
use lateness::Lateness;

/// How many processes take locks.
pub const PROCESSES: usize = 4;
/// How many locks have bodies that may outlast their leases, and how many tasks of each process take them.
pub const LONG: usize = 4;
/// How many locks, and tasks of each process, have short bodies: there are a hundred times as many of those.
pub const SHORT: usize = 8;
/// How many tasks of each process want one lock more, the last one, all the time: it is handed over among them.
pub const HOT: usize = 12;
/// How many tasks of each process want a lock that is shared.
const SHARED: usize = 2;
/// How many may have the lock that has permits.
const PERMITS: u32 = 3;
/// The lock of readers and writers.
const READERS_KEY: usize = LONG + SHORT;
/// That of so many at once.
const PERMITS_KEY: usize = READERS_KEY + 1;
/// The one that is handed over in chains.
const HOT_KEY: usize = PERMITS_KEY + 1;
/// The first of the locks that are handed on as tickets, and how many there are.
const HANDED_KEY: usize = HOT_KEY + 1;
const HANDED: usize = 16;
/// The one that is taken by whoever leads.
const LEADER_KEY: usize = HANDED_KEY + HANDED;
/// How many locks there are.
pub const KEYS: usize = LEADER_KEY + 1;
/// The lease of every lock, where the store grants such short ones.
pub const TTL: Duration = Duration::from_millis(600);

/// What a profile's run has shown.
#[derive(Debug)]
pub struct Outcome {
    /// What the history says.
    pub report: Report,
    /// What came of those to whom a lock was handed together with another one.
    pub chains: Chains,
    /// What the model says of what the server did, where it has all of it.
    pub model: Option<HistoryVerdict>,
    /// How often each fault struck.
    pub faults: std::collections::BTreeMap<&'static str, usize>,
    /// By how much this process woke up too late at the worst, since the machine was busy.
    pub lateness: Duration,
}

/// What is tortured.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The servers that keep the locks.
    pub servers: Servers,
    /// The network to them.
    pub medium: Medium,
    /// The program of which `program load …` is a worker.
    pub program: String,
    /// Whose locks are compared under less work; this project's under all work where nothing is named.
    pub library: Option<Library>,
}

/// Tortures with one profile for so long.
pub async fn torture(profile: Profile, setting: &Setting, time: Duration) -> Outcome {
    let recovery = setting.servers.recovery();
    let lateness = Lateness::watch();
    let mut crew = Crew::start(setting, profile).await;
    let mut faults = std::collections::BTreeMap::new();
    let mut healed = Vec::new();
    let end = history::monotonic() + time;
    while history::monotonic() < end {
        let began = history::monotonic();
        *faults.entry(profile.strike(&mut crew).await).or_default() += 1;
        let pause = profile.pause(history::monotonic().saturating_sub(began));
        crew.check_ttls().await;
        if fastrand::u8(..6) == 0 {
            // Every key goes on before the next fault, if it does at all.
            healed.push(history::monotonic());
            sleep(2 * recovery).await;
        } else {
            sleep(pause).await;
        }
    }
    healed.push(history::monotonic());
    sleep(2 * recovery).await;
    let (mut report, chains, model) = stop(&mut crew, &healed).await;
    report.violations.append(&mut crew.violations);
    let refused = model.iter().flat_map(|it| it.refused.clone());
    report.violations.extend(refused);
    Outcome {
        report,
        chains,
        model,
        faults,
        lateness: lateness.worst(),
    }
}

async fn stop(crew: &mut Crew, healed: &[Duration]) -> (Report, Chains, Option<HistoryVerdict>) {
    for worker in &mut crew.workers {
        worker.kill().await;
    }
    let events = history::read(crew.directory()).expect("the histories can be read");
    let promises = crew.promises();
    let mut report = check::check(&events, healed, promises);
    let panics = panics::read(crew.directory()).expect("the notes can be read");
    report.violations.extend(panics);
    report.check_closed(&events, &crew.closed);
    report.check_served(&events, &crew.served);
    report.check_tickets(&events, &crew.tickets(), promises);
    // A fence that was given twice does not tell whose a write is.
    for key in (0..KEYS).filter(|_| promises.fences) {
        let writes = crew.writes(key).await;
        report.check_writes(key, &writes, &events);
    }
    crew.check_ttls().await;
    crew.check_accounts().await;
    report.left_behind = crew.left_behind().await;
    let chains = crew.chains(&events).await;
    (report, chains, crew.model(&events).await)
}

/// What a lock is called.
fn lock_name(key: impl std::fmt::Display) -> String {
    format!("torture-{key}")
}
