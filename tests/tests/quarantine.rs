//! `quarantine`: a server that may have forgotten locks grants nothing until they have ended.
//!
//! Section: guarantees.md#when-a-replica-takes-over

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_runtime::{LockConfig, LockError, LockGuard, LockManager};
use redis::aio::MultiplexedConnection;
use tests::{
    Proxy, RedisServer, RedlockFleet, TIME_LIMIT, connect, eventually, queue, release, take, timed,
    within,
};
use tokio::task::JoinHandle;

const SECOND: Duration = Duration::from_secs(1);
/// The longest lease in these tests, but where one says so.
const LONGEST: Duration = Duration::from_secs(2);

/// Waits for as long as it takes.
fn config(url: impl AsRef<str>) -> LockConfig {
    let config = LockConfig::new(url).expect("a URL").quarantine(LONGEST);
    config.ttl(LONGEST).unavailable_wait_forever()
}

/// A server that has run for longer than any lease, and counts a second of lag.
async fn old_server() -> RedisServer {
    let server = RedisServer::builder()
        .append_only()
        .arg("--min-replicas-max-lag", "1")
        .arg("--repl-diskless-sync-delay", "0");
    let server = server.start().await;
    let locks = connect(config(server.url())).await;
    take_when_granted(&locks, LONGEST).await.release();
    // It says how long it has run in whole seconds, of which the first may have been short.
    let is_old = async || uptime(&server).await > LONGEST.as_secs();
    eventually(TIME_LIMIT, is_old).await;
    server
}

async fn uptime(server: &RedisServer) -> u64 {
    let info = server.cmd(&["INFO", "server"]).await;
    let info: String = redis::from_redis_value(info).expect("text");
    let seconds = info
        .lines()
        .find_map(|line| line.strip_prefix("uptime_in_seconds:"));
    seconds.expect("it says so").parse().expect("a number")
}

async fn take_when_granted(locks: &LockManager, ttl: Duration) -> LockGuard {
    let acquire = locks.lock("key").ttl(ttl).wait(TIME_LIMIT).acquire();
    within(TIME_LIMIT, acquire).await.expect("in time")
}

/// Whether a replica has the data of its master.
async fn is_synced(replica: &RedisServer) -> bool {
    let info = replica.cmd(&["INFO", "replication"]).await;
    let info: String = redis::from_redis_value(info).expect("text");
    info.contains("master_link_status:up")
}

/// Tries once, and returns what was said.
async fn refused(locks: &LockManager) -> String {
    let tried = locks.lock("key").wait(Duration::ZERO).acquire().await;
    match tried {
        Err(error @ LockError::Unavailable { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

// Section: guarantees.md#one-holder-at-a-time, guarantees.md#when-a-replica-takes-over
#[tokio::test]
async fn a_restart_without_the_data_makes_no_second_holder() {
    let mut server = RedisServer::start().await;
    let mut proxy = Proxy::start(server.addr());
    let holder = connect(config(proxy.url())).await;
    for _ in 0..3 {
        let guard = take_when_granted(&holder, LONGEST).await;
        proxy.refuse().await;
        proxy.cut().await;
        server.restart().await;
        let locks = connect(config(server.url())).await;
        let next = take_when_granted(&locks, LONGEST).await;
        assert!(!guard.is_held(), "two holders");
        proxy.admit();
        release(next).await;
    }
}

#[tokio::test]
async fn a_replica_that_takes_over_makes_no_second_holder() {
    for known in [true, false] {
        let (master, replica) = tokio::join!(old_server(), old_server());
        let port = master.port().to_string();
        replica.cmd(&["REPLICAOF", "127.0.0.1", &port]).await;
        eventually(TIME_LIMIT, async || is_synced(&replica).await).await;
        if !known {
            // Nobody had this setting before.
            master.cmd(&["DEL", "lock:run"]).await;
            eventually(TIME_LIMIT, async || {
                replica.keys("lock:run").await.is_empty()
            })
            .await;
        }
        replica.cmd(&["REPLICAOF", "NO", "ONE"]).await;
        let old = connect(LockConfig::new(master.url()).expect("a URL")).await;
        let guard = take(&old, "key", LONGEST).await;
        master.stop();
        let locks = connect(config(replica.url())).await;
        let said = refused(&locks).await;
        assert!(said.contains("no lock is granted until"), "{said}");
        let (took, next) = timed(take_when_granted(&locks, LONGEST)).await;
        assert!(!guard.is_held(), "two holders");
        assert!(took > LONGEST, "{took:?}, the lag comes on top");
        release(next).await;
        // Nobody waits twice.
        let again = connect(config(replica.url())).await;
        let tried = again.lock("key").wait(Duration::ZERO).acquire().await;
        release(tried.expect("it has been waited for")).await;
        master.resume();
    }
}

#[tokio::test]
async fn a_master_that_was_a_replica_for_a_while_makes_no_second_holder() {
    let (server, other) = tokio::join!(old_server(), old_server());
    let locks = connect(config(server.url())).await;
    let holder = connect(config(server.url())).await;
    let guard = take(&holder, "key", LONGEST).await;
    // The other one has the note, as a replica would, and not the lock; its data replaces that of this one.
    let note: String =
        redis::from_redis_value(server.cmd(&["GET", "lock:run"]).await).expect("text");
    other.cmd(&["SET", "lock:run", &note]).await;
    let port = other.port().to_string();
    server.cmd(&["REPLICAOF", "127.0.0.1", &port]).await;
    eventually(TIME_LIMIT, async || is_synced(&server).await).await;
    server.cmd(&["REPLICAOF", "NO", "ONE"]).await;
    // The connection has been open and silent all the time.
    refused(&locks).await;
    let next = take_when_granted(&locks, LONGEST).await;
    assert!(!guard.is_held(), "two holders");
    release(next).await;
    // Nobody waits twice.
    let again = connect(config(server.url())).await;
    let tried = again.lock("key").wait(Duration::ZERO).acquire().await;
    release(tried.expect("it has been waited for")).await;
}

#[tokio::test]
async fn what_was_noted_while_the_clock_was_ahead_counts_from_now_on() {
    let server = old_server().await;
    drop(connect(config(server.url())).await);
    let note: String =
        redis::from_redis_value(server.cmd(&["GET", "lock:run"]).await).expect("text");
    let (run, _) = note.split_once(' ').expect("a run and a time");
    let ahead = SystemTime::now() + Duration::from_secs(3600);
    let ahead = ahead
        .duration_since(UNIX_EPOCH)
        .expect("a time")
        .as_millis();
    server
        .cmd(&["SET", "lock:run", &format!("{run} {ahead}")])
        .await;
    let locks = connect(config(server.url())).await;
    refused(&locks).await;
    release(take_when_granted(&locks, LONGEST).await).await;
    // Nobody waits twice.
    let again = connect(config(server.url())).await;
    let tried = again.lock("key").wait(Duration::ZERO).acquire().await;
    release(tried.expect("it has been waited for")).await;
}

#[tokio::test]
async fn a_server_that_has_never_been_a_replica_grants_at_once() {
    let server = old_server().await;
    server.cmd(&["DEL", "lock:run"]).await;
    let locks = connect(config(server.url())).await;
    let tried = locks.lock("key").wait(Duration::ZERO).acquire().await;
    release(tried.expect("nothing was forgotten")).await;
}

#[tokio::test]
async fn what_is_held_is_renewed_and_what_is_released_is_not_handed_over() {
    let mut server = old_server().await;
    let locks = connect(config(server.url())).await;
    let other = connect(config(server.url())).await;
    // Somebody without the setting.
    let stranger = connect(LockConfig::new(server.url()).expect("a URL")).await;
    let guard = take_when_granted(&locks, LONGEST).await;
    let waiter = granted_at(queue(&server, &other, "key", LONGEST, 1).await);
    let handed_over = take(&stranger, "handed over", TIME_LIMIT).await;
    let believer = granted_at(queue(&server, &other, "handed over", LONGEST, 1).await);
    server.restart().await;
    let back = async || server.listeners().await == 3 && locks.health().await.connected;
    eventually(TIME_LIMIT, back).await;
    let until = until(&other).await;
    // The server tells the waiter that the lock is its own.
    release(handed_over).await;
    // Longer than its lease was when the server went.
    let work = guard.hold(tokio::time::sleep(LONGEST / 2 + SECOND / 2));
    within(TIME_LIMIT, work).await.expect("it is renewed");
    let forced = locks.force_release("key").await;
    assert!(
        matches!(forced, Err(LockError::Unavailable { .. })),
        "{forced:?}"
    );
    release(guard).await;
    for waiter in [waiter, believer] {
        let (at, next) = within(TIME_LIMIT, waiter).await.expect("no panic");
        assert!(at >= until, "{:?} too early", until.duration_since(at));
        release(next).await;
    }
}

/// Until when nothing is granted, once it is connected.
async fn until(locks: &LockManager) -> SystemTime {
    let connected = async || locks.health().await.connected;
    eventually(TIME_LIMIT, connected).await;
    let until = locks.health().await.quarantined_until;
    until.expect("it has just started")
}

/// The guard that a waiter gets, and when it got that.
fn granted_at(waiter: JoinHandle<LockGuard>) -> JoinHandle<(SystemTime, LockGuard)> {
    tokio::spawn(async {
        let guard = waiter.await.expect("no panic");
        (SystemTime::now(), guard)
    })
}

#[tokio::test]
async fn who_gives_up_meanwhile_leaves_the_queue() {
    let mut server = old_server().await;
    let locks = connect(config(server.url())).await;
    let other = connect(config(server.url())).await;
    let guard = take_when_granted(&locks, LONGEST).await;
    let waiter = queue(&server, &other, "key", LONGEST, 1).await;
    server.restart().await;
    eventually(TIME_LIMIT, async || server.listeners().await == 2).await;
    waiter.abort();
    // The lock is held on, so that no release takes it out of the queue.
    server.queued("key", 0).await;
    assert!(guard.is_held(), "{guard:?}");
    drop(guard);
    let next = take_when_granted(&locks, LONGEST).await;
    release(next).await;
}

#[tokio::test]
async fn callers_learn_until_when_or_wait() {
    let server = RedisServer::start().await;
    let limited = config(server.url()).unavailable_wait(SECOND / 2);
    let locks = connect(limited).await;
    let (took, outcome) = timed(locks.lock("key").wait(TIME_LIMIT).acquire()).await;
    let text = outcome.expect_err("in quarantine").to_string();
    assert!(
        text.contains("no lock is granted until") && text.contains("UTC"),
        "{text}"
    );
    assert!(took < LONGEST, "{took:?}");
    let patient = connect(config(server.url())).await;
    release(take_when_granted(&patient, LONGEST).await).await;
}

// Section: guarantees.md#watching-a-lock
#[tokio::test]
async fn a_probe_tells_until_when() {
    let server = RedisServer::start().await;
    let long = config(server.url()).quarantine(TIME_LIMIT);
    let health = connect(long).await.health().await;
    let until = health.quarantined_until.expect("it has just started");
    assert!(health.connected && !health.grants, "{health:?}");
    assert!(
        until > SystemTime::now() && until <= SystemTime::now() + TIME_LIMIT,
        "{health:?}"
    );

    let locks = connect(config(server.url())).await;
    release(take_when_granted(&locks, LONGEST).await).await;
    let health = locks.health().await;
    assert!(
        health.grants && health.quarantined_until.is_none(),
        "{health:?}"
    );
}

#[tokio::test]
async fn a_quarantine_may_end_before_all_connections_are_open() {
    let server = RedisServer::start().await;
    let mut keeper = server.connection().await;
    // The keeper's, and one of the two.
    set_most_clients(&mut keeper, 2).await;
    let config = config(server.url())
        .pool_size(2)
        .connect_timeout(TIME_LIMIT);
    // On a thread of its own: it must not take the time of the test, and could.
    let (sender, connected) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        let connected = runtime.block_on(LockManager::connect(config));
        let _ = sender.send(connected);
    });
    tokio::time::sleep(LONGEST + SECOND).await;
    set_most_clients(&mut keeper, 100).await;
    let connected = within(TIME_LIMIT / 2, connected).await.expect("no panic");
    let locks = connected.expect("there is room for both");
    release(take(&locks, "key", LONGEST).await).await;
}

async fn set_most_clients(connection: &mut MultiplexedConnection, most: u32) {
    let mut command = redis::cmd("CONFIG");
    command.arg("SET").arg("maxclients").arg(most);
    let set = command.query_async::<()>(connection).await;
    set.expect("it may be set");
}

#[tokio::test]
async fn a_server_whose_clock_went_back_past_its_start_may_have_started_just_now() {
    let Some(mut fleet) = RedlockFleet::with_clocks("a clock that went back").await else {
        return;
    };
    fleet.set_clock(0, 3_600 * SECOND).await;
    fleet.servers[0].restart().await;
    fleet.set_clock(0, Duration::ZERO).await;
    let locks = connect(config(fleet.servers[0].url())).await;
    let said = refused(&locks).await;
    assert!(said.contains("no lock is granted until"), "{said}");
    let (took, guard) = timed(take_when_granted(&locks, LONGEST)).await;
    assert!(took + SECOND > LONGEST, "{took:?}");
    release(guard).await;
}

#[tokio::test]
async fn a_ttl_above_it_is_refused() {
    let server = RedisServer::start().await;
    let text = connect(config(server.url())).await;
    let longer = text.lock("key").ttl(LONGEST + SECOND).acquire().await;
    let text = longer.expect_err("too long").to_string();
    assert_eq!(
        text,
        "invalid ttl: it is 3s, and `quarantine` allows 2s at most"
    );
    let default = LockConfig::new("redis://h?quarantine=9s").expect("a URL");
    let text = default.validate().expect_err("10 s").to_string();
    assert!(text.starts_with("invalid ttl: "), "{text}");
    let memory = LockConfig::new("memory:?quarantine=1m").expect("a URL");
    let text = memory.validate().expect_err("memory").to_string();
    assert!(text.starts_with("invalid quarantine: "), "{text}");
}

#[tokio::test]
async fn a_server_that_tells_nothing_of_itself_is_refused_with_a_sentence() {
    let server = old_server().await;
    let user = [
        "ACL", "SETUSER", "shop", "on", ">secret", "~*", "&*", "+@all", "-info",
    ];
    server.cmd(&user).await;
    let shop = config(server.url_with_user("shop", "secret")).connect_timeout(TIME_LIMIT);
    let (took, outcome) = timed(LockManager::connect(shop.clone())).await;
    let text = outcome.expect_err("no right").to_string();
    assert!(text.contains("`quarantine` needs INFO"), "{text}");
    assert!(took < TIME_LIMIT / 4, "{took:?}");
    // The lag may be unknown: it is taken to be the usual one.
    server
        .cmd(&["ACL", "SETUSER", "shop", "+info", "-config"])
        .await;
    let locks = connect(shop).await;
    let guard = take(&locks, "key", LONGEST).await;
    release(guard).await;
}
