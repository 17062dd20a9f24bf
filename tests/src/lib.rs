//! What the tests stand on: real servers, a faulty network, child processes and a witness of overlaps.
//!
//! Everything here panics with a clear message when it cannot do its work, since that fails the test that asked.
#![allow(
    clippy::missing_panics_doc,
    reason = "a panic is how test support reports"
)]

mod body;
mod chains;
mod compiler;
pub mod crashes;
mod disk;
pub mod documents;
mod etcd;
pub mod failovers;
mod fixtures;
pub mod floors;
mod histories;
pub mod kinds;
pub mod late_holders;
mod lock_state;
mod log;
/// The scripts as the library joins them.
#[allow(dead_code, reason = "tests by hand call some of them only")]
#[path = "../../lock-runtime/src/backend/redis/lua/mod.rs"]
mod lua;
pub mod model;
mod monitor;
mod mysql;
/// The script as the library joins it.
#[allow(
    dead_code,
    unreachable_pub,
    reason = "tests need its text alone, and the library exports it"
)]
#[path = "../../lock-runtime/src/backend/mysql/sql/mod.rs"]
mod mysql_sql;
mod namespace;
mod net;
mod node;
mod peer;
mod postgres;
/// The script as the library joins it.
#[allow(
    dead_code,
    unreachable_pub,
    reason = "tests need its text alone, and the library exports it"
)]
#[path = "../../lock-runtime/src/backend/postgres/sql/mod.rs"]
mod postgres_sql;
mod process;
mod protocol;
mod proxy;
mod python;
mod register;
mod scene;
mod server;
mod startup;
mod steps;
mod stop;
mod stores;
pub mod torture;
mod user;
mod woken;
mod worker;
mod zookeeper;

pub use body::{Polls, Pulse, begin, boottime};
pub use chains::{ChainWatch, Chains};
pub use compiler::is_pinned as compiler_is_pinned;
pub use etcd::{EtcdCluster, EtcdServer, Gateway};
pub use fixtures::{
    APART, LONG, TIME_LIMIT, aside, eventually, median, one_turn_within, poll_once, timed, unique,
    within,
};
pub use histories::{HistoryWatch, Verdict as HistoryVerdict, etcd_verdict, zookeeper_verdict};
#[doc(hidden)]
pub use lock_runtime::Capabilities;
pub use monitor::Monitor;
pub use mysql::{
    MysqlHome, MysqlPeer, MysqlServer, MysqlServerBuilder, mysql_script, mysql_statements,
};
pub use peer::{Peer, Step, script_text};
pub use postgres::{
    Backup, Fate, PgBouncer, PostgresHome, PostgresPair, PostgresPeer, PostgresServer,
    PostgresServerBuilder, Rows, SCHEMA, SqlError, postgres_script,
};
pub use protocol::{member, token, token_of};
pub use proxy::{Direction, Lost, Proxy, Verdict};
pub use register::{Register, Section};
pub use scene::Scene;
pub use server::{
    Authority, ClusterBuilder, ClusterFleet, FakeSentinel, Identity, RedisServer,
    RedisServerBuilder, RedlockFleet, SentinelBuilder, SentinelFleet, SharedCluster,
    SharedSentinels, Switches,
};
pub use steps::{
    all_get_it, connect, granted, leaves_nothing, queue, queued, release, settled, take, take_turn,
    unavailable_to_all, waits, wanted, work,
};
pub use stop::{Stop, StoppedManager};
pub use stores::{Home, Memory, SetnxServer, Store, Traces};
pub use user::User;
pub use worker::Worker;
pub use zookeeper::{
    ZooKeeperEnsemble, ZooKeeperHistory, ZooKeeperHome, ZooKeeperPeer, ZooKeeperServer,
    ZooKeeperTraffic,
};
