//! Redlock: a majority of independent servers holds a lock, whatever happens to the others.
//!
//! Section: guarantees.md#when-a-majority-decides

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{
    Authority, Proxy, RedisServer, RedlockFleet, StoppedManager, TIME_LIMIT, connect, eventually,
    poll_once, queued, release, take, unique, within,
};
use tokio::{sync::watch, task::JoinSet};

const TTL: Duration = Duration::from_secs(3);
/// Short, where a test waits for its end, and long enough for a busy machine to renew it.
const SHORT: Duration = Duration::from_millis(1_500);
const HOUR: Duration = Duration::from_secs(3600);

async fn manager(url: &str) -> LockManager {
    connect(LockConfig::new(url).expect("a URL").ttl(TTL)).await
}

/// One for servers that are quarantined after their start, which is waited for.
async fn careful_manager(fleet: &RedlockFleet) -> LockManager {
    let url = fleet.url().replace("quarantine=0s", "quarantine=1500ms");
    let config = LockConfig::new(&url).expect("a URL").ttl(SHORT);
    connect(config.wait_forever().unavailable_wait(TIME_LIMIT)).await
}

/// On how many servers the lock is held.
async fn servers(locks: &LockManager, key: &str) -> Option<usize> {
    let status = within(TIME_LIMIT, locks.status(key))
        .await
        .expect("an answer");
    status.holders.first()?.servers
}

/// Waits until all five servers have it.
async fn is_held_by_all(locks: &LockManager, key: &str) {
    eventually(TIME_LIMIT, async || servers(locks, key).await == Some(5)).await;
}

/// How many turns have been taken.
struct Turns(watch::Receiver<usize>);

impl Turns {
    /// Waits for so many more.
    async fn more(&mut self, count: usize) {
        let wanted = *self.0.borrow() + count;
        let taken = within(TIME_LIMIT, self.0.wait_for(|taken| *taken >= wanted)).await;
        drop(taken.expect("turns are taken"));
    }
}

/// Many take turns for the lock while `trouble` happens: never two at once, with growing fences, and all are served.
async fn share(url: &str, trouble: impl AsyncFnOnce(&mut Turns)) {
    let entered = Arc::new(Mutex::new((false, 0)));
    let over = Arc::new(AtomicBool::new(false));
    let (turn, turns) = watch::channel(0);
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let locks = manager(url).await;
        let (entered, over, turn) = (entered.clone(), over.clone(), turn.clone());
        workers.spawn(async move {
            let mut own = 0;
            while !over.load(Ordering::Relaxed) {
                let guard = match locks.lock("key").wait_forever().acquire().await {
                    Ok(guard) => guard,
                    Err(error) => {
                        assert!(error.is_retryable(), "{error}");
                        continue;
                    }
                };
                let fence = guard.fencing_token().get();
                {
                    let mut entered = entered.lock().expect("nobody panics with it");
                    assert!(!entered.0, "somebody else is in");
                    assert!(fence > entered.1, "fence {fence} after {}", entered.1);
                    *entered = (true, fence);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
                let held = guard.is_held();
                entered.lock().expect("nobody panics with it").0 = false;
                assert!(held, "a lease of {TTL:?} was lost in 2 ms");
                guard.release();
                turn.send_modify(|taken| *taken += 1);
                own += 1;
            }
            own
        });
    }
    trouble(&mut Turns(turns)).await;
    over.store(true, Ordering::Relaxed);
    let all = within(2 * TIME_LIMIT, workers.join_all()).await;
    assert!(all.iter().all(|own| *own > 0), "{all:?} turns");
}

#[tokio::test]
async fn two_of_five_may_be_killed() {
    let mut fleet = RedlockFleet::start().await;
    let url = fleet.url();
    let trouble = async |turns: &mut Turns| {
        for server in [1, 3] {
            turns.more(20).await;
            fleet.servers[server].kill().await;
        }
        turns.more(40).await;
    };
    share(&url, trouble).await;
}

#[tokio::test]
async fn two_of_five_may_hang() {
    let fleet = RedlockFleet::start().await;
    let trouble = async |turns: &mut Turns| {
        turns.more(20).await;
        for server in [0, 4] {
            fleet.servers[server].stop();
        }
        turns.more(40).await;
        for server in [0, 4] {
            fleet.servers[server].resume();
        }
        turns.more(20).await;
    };
    share(&fleet.url(), trouble).await;
}

#[tokio::test]
async fn the_clocks_of_two_of_five_may_jump() {
    let test = "redlock: the_clocks_of_two_of_five_may_jump";
    let Some(fleet) = RedlockFleet::with_clocks(test).await else {
        return;
    };
    let url = fleet.url();
    let locks = manager(&url).await;
    let guard = take(&locks, "held", TTL).await;
    is_held_by_all(&locks, "held").await;
    for server in [1, 3] {
        fleet.set_clock(server, HOUR).await;
    }
    // By their clocks its lease has ended.
    let others = manager(&url).await;
    let refused = within(TIME_LIMIT, others.lock("held").try_once().acquire()).await;
    let refused = refused.expect_err("a majority of the others has it");
    assert!(matches!(refused, LockError::Contended { .. }), "{refused}");
    // The holder takes it there again.
    is_held_by_all(&locks, "held").await;
    release(guard).await;

    let trouble = async |turns: &mut Turns| {
        for ahead in [2 * HOUR, Duration::ZERO, HOUR] {
            turns.more(10).await;
            for server in [1, 3] {
                fleet.set_clock(server, ahead).await;
            }
        }
        turns.more(20).await;
    };
    share(&url, trouble).await;
}

#[tokio::test]
async fn a_holder_takes_servers_again_before_those_who_wait() {
    let test = "redlock: a_holder_takes_servers_again_before_those_who_wait";
    let Some(fleet) = RedlockFleet::with_clocks(test).await else {
        return;
    };
    let url = fleet.url();
    let (locks, others) = (manager(&url).await, manager(&url).await);
    let guard = take(&locks, "held", TTL).await;
    let waiter = queued(&others, others.lock("held").wait_forever()).await;
    let waiter = tokio::spawn(waiter);
    // With those that the waiter kept, three were a majority.
    for server in 0..3 {
        is_held_by_all(&locks, "held").await;
        fleet.set_clock(server, HOUR).await;
    }
    is_held_by_all(&locks, "held").await;
    assert!(guard.is_held() && !waiter.is_finished());
    release(guard).await;
    let next = within(TIME_LIMIT, waiter).await.expect("it does not panic");
    release(next.expect("it is free")).await;
}

#[tokio::test]
async fn where_the_clocks_of_a_majority_jump_a_second_one_gets_in() {
    let test = "redlock: where_the_clocks_of_a_majority_jump_a_second_one_gets_in";
    let Some(fleet) = RedlockFleet::with_clocks(test).await else {
        return;
    };
    let url = fleet.url();
    let (locks, others) = (manager(&url).await, manager(&url).await);
    let first = within(TIME_LIMIT, locks.lock("key").ttl(20 * TTL).acquire()).await;
    let first = first.expect("it is free");
    is_held_by_all(&locks, "key").await;
    for server in [0, 2, 4] {
        fleet.set_clock(server, HOUR).await;
    }
    let second = take(&others, "key", TTL).await;
    assert!(first.is_held(), "nobody has notified it");
    assert!(
        second.fencing_token() > first.fencing_token(),
        "a resource can tell who is late"
    );
}

/// The clocks of all servers are ahead of the machine's.
#[tokio::test]
async fn a_manager_that_has_just_connected_waits_behind_those_who_came_before() {
    let test = "a_manager_that_has_just_connected_waits_behind_those_who_came_before";
    let Some(fleet) = RedlockFleet::with_clocks(test).await else {
        return;
    };
    for server in 0..fleet.servers.len() {
        fleet.set_clock(server, HOUR).await;
    }
    let locks = manager(&fleet.url()).await;
    release(take(&locks, "key", TTL).await).await;
    for round in 0..20 {
        let guard = take(&locks, "key", TTL).await;
        let mut earlier = Box::pin(locks.lock("key").wait_forever().acquire());
        assert!(poll_once(&mut earlier).await.is_pending());
        tokio::time::sleep(Duration::from_millis(30)).await;
        let newcomer = manager(&fleet.url()).await;
        let mut later = Box::pin(newcomer.lock("key").wait_forever().acquire());
        assert!(poll_once(&mut later).await.is_pending());
        tokio::time::sleep(Duration::from_millis(30)).await;
        guard.release();
        let first = within(TIME_LIMIT, async {
            tokio::select! {
                guard = &mut earlier => guard,
                _ = &mut later => panic!("round {round}: the newcomer has overtaken a waiter"),
            }
        });
        release(first.await.expect("its turn")).await;
        release(within(TIME_LIMIT, later).await.expect("its turn")).await;
    }
}

#[tokio::test]
async fn a_try_is_unavailable_while_three_of_five_hang() {
    let fleet = RedlockFleet::start().await;
    let locks = manager(&fleet.url()).await;
    fleet.servers[..3].iter().for_each(RedisServer::stop);
    let refused = within(TIME_LIMIT, locks.lock("key").try_once().acquire()).await;
    fleet.servers[..3].iter().for_each(RedisServer::resume);
    let error = refused.expect_err("two of five are no majority");
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
}

/// Two of five servers have granted a part, which is to be let go of while they cannot be reached.
#[tokio::test]
async fn a_part_of_a_lock_is_not_left_on_servers_that_can_be_reached_again() {
    let fleet = RedlockFleet::start().await;
    let proxies = fleet.servers.iter().map(|it| Proxy::start(it.addr()));
    let mut proxies: Vec<_> = proxies.collect();
    let url = RedlockFleet::url_of(proxies.iter().map(Proxy::addr));
    let config = LockConfig::new(&url).expect("a URL").ttl(HOUR);
    let locks = connect(config.unavailable_wait(TIME_LIMIT)).await;
    for (server, proxy) in fleet.servers.iter().zip(&proxies).skip(2) {
        server.cmd(&["SET", "lock:{key}", "somebody"]).await;
        proxy.requests().hold();
    }
    let request = locks.lock("key").wait_forever();
    let waiting = tokio::spawn(async move { request.acquire().await });
    let have_it = async |count: usize| {
        let mut keys = Vec::new();
        for server in &fleet.servers[..2] {
            keys.extend(server.keys("lock:{key}").await);
        }
        keys.len() == count
    };
    eventually(TIME_LIMIT, async || have_it(2).await).await;
    for proxy in &mut proxies[..2] {
        proxy.refuse().await;
        proxy.cut().await;
    }
    // Longer than the parts are kept for servers that do not answer.
    tokio::time::sleep(Duration::from_millis(300)).await;
    proxies[..2].iter_mut().for_each(Proxy::admit);
    proxies[2..].iter().for_each(|it| it.requests().pass());
    // It stands in the queues again.
    tokio::time::sleep(Duration::from_millis(500)).await;
    waiting.abort();
    eventually(TIME_LIMIT, async || have_it(0).await).await;
}

#[tokio::test]
async fn a_lease_outlives_servers_that_start_again_empty_one_after_the_other() {
    let mut fleet = RedlockFleet::start().await;
    let locks = careful_manager(&fleet).await;
    let guard = within(TIME_LIMIT, locks.lock("key").acquire()).await;
    let guard = guard.expect("once the servers have been up for long enough");
    for server in 0..3 {
        is_held_by_all(&locks, "key").await;
        fleet.servers[server].restart().await;
    }
    is_held_by_all(&locks, "key").await;
    assert!(guard.is_held());
}

#[tokio::test]
async fn a_server_that_has_forgotten_a_lock_grants_none_until_its_lease_has_ended() {
    let mut fleet = RedlockFleet::start().await;
    let locks = careful_manager(&fleet).await;
    let first = within(TIME_LIMIT, locks.lock("key").renew(false).acquire()).await;
    let first = first.expect("once the servers have been up for long enough");
    for server in &mut fleet.servers[..3] {
        server.restart().await;
    }
    let others = careful_manager(&fleet).await;
    let second = within(TIME_LIMIT, others.lock("key").acquire()).await;
    assert!(second.expect("later").is_held() && !first.is_held());
}

#[tokio::test]
async fn with_three_of_five_down_nobody_gets_in_and_everybody_comes_back() {
    let fleet = RedlockFleet::start().await;
    let locks = manager(&fleet.url()).await;
    for server in &fleet.servers[2..] {
        server.stop();
    }
    let error = within(TIME_LIMIT, locks.lock("key").acquire()).await;
    let error = error.expect_err("no majority");
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    for server in &fleet.servers[2..] {
        server.resume();
    }
    take(&locks, "key", TTL).await.release();
}

#[tokio::test]
async fn one_server_that_is_late_costs_nothing() {
    const LATE: Duration = Duration::from_millis(300);
    let fleet = RedlockFleet::start().await;
    let proxy = Proxy::start(fleet.servers[0].addr());
    let mut addresses: Vec<_> = fleet.servers.iter().map(RedisServer::addr).collect();
    addresses[0] = proxy.addr();
    let locks = manager(&RedlockFleet::url_of(addresses)).await;
    take(&locks, "key", TTL).await.release();
    proxy.replies().delay(LATE);
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let started = Instant::now();
        let guard = take(&locks, &unique("key"), TTL).await;
        assert!(guard.release_confirmed().await.unwrap());
        fastest = fastest.min(started.elapsed());
    }
    assert!(fastest < LATE, "{fastest:?}");
}

#[tokio::test]
async fn a_status_tells_on_how_many_servers_a_lock_is_held() {
    let mut fleet = RedlockFleet::start().await;
    let locks = manager(&fleet.url()).await;
    fleet.servers[2].kill().await;
    let guard = take(&locks, "key", TTL).await;
    eventually(TIME_LIMIT, async || servers(&locks, "key").await == Some(4)).await;
    let status = within(TIME_LIMIT, locks.status("key")).await.unwrap();
    assert_eq!(status.holders[0].fencing_token, Some(guard.fencing_token()));
}

#[tokio::test]
async fn every_connection_may_be_encrypted() {
    let authority = Authority::new();
    let directory = tempfile::tempdir().expect("a directory");
    let ca = directory.path().join("ca.pem");
    std::fs::write(&ca, authority.pem()).expect("a file");
    let mut servers = Vec::new();
    for _ in 0..3 {
        let server = RedisServer::builder().tls(authority.issue_for_loopback());
        servers.push(server.start().await);
    }
    let hosts: Vec<_> = servers.iter().map(|it| it.tls_addr().to_string()).collect();
    let url = format!("rediss+redlock://{}?quarantine=0s", hosts.join(","));

    let error = within(TIME_LIMIT, LockManager::connect(&url)).await;
    let text = error.expect_err("of an unknown authority").to_string();
    assert!(text.contains("unknown authority"), "{text}");

    let locks = manager(&format!("{url}&ca={}", ca.display())).await;
    let guard = take(&locks, "key", TTL).await;
    let all_have_it = async || {
        let mut keys = 0;
        for server in &servers {
            keys += server.keys("lock:{key}").await.len();
        }
        keys == 3
    };
    eventually(TIME_LIMIT, all_have_it).await;
    release(guard).await;
}

#[tokio::test]
async fn each_server_may_have_a_password_of_its_own() {
    let (mut servers, mut urls) = (Vec::new(), Vec::new());
    for number in 0..3 {
        let password = format!("secret{number}");
        let server = RedisServer::builder().password(&password).start().await;
        urls.push(server.url_with_user("", &password));
        servers.push(server);
    }
    let config = || LockConfig::redlock(&urls).expect("three URLs");
    let locks = connect(config().quarantine(Duration::ZERO)).await;
    release(take(&locks, "key", TTL).await).await;

    // Which of them is wrong does not matter, as long as there is a majority.
    urls[1] = servers[1].url_with_user("", "wrong");
    let config = LockConfig::redlock(&urls).expect("three URLs");
    let locks = connect(config.quarantine(Duration::ZERO)).await;
    release(take(&locks, "key", TTL).await).await;
}

#[test]
fn what_names_no_single_server_is_refused_with_a_sentence() {
    for (urls, says) in [
        (
            ["redis://a", "redis://b", "redis://a:6379"],
            "names a:6379 twice",
        ),
        (
            ["redis://a", "redis://b", "redis://c?ttl=3s"],
            "`LockConfig::redlock(",
        ),
        (
            ["redis://a", "redis://b", "redis+cluster://c"],
            "`redis+unix://`",
        ),
        (
            ["redis://a", "redis://b", "redis://:hunter2@c,d"],
            "several hosts",
        ),
    ] {
        let error = LockConfig::redlock(urls).expect_err("refused");
        let text = format!("{error} {error:?}");
        assert!(text.contains(says) && !text.contains("hunter2"), "{text}");
    }
    let error = LockConfig::redlock(["redis://a"]).expect_err("refused");
    assert!(error.to_string().contains("names 1"), "{error}");
}

#[tokio::test]
async fn permits_are_refused() {
    let locks = manager(&RedlockFleet::start().await.url()).await;
    let error = locks
        .lock("key")
        .permits(2)
        .acquire()
        .await
        .expect_err("refused");
    assert!(
        error.to_string().starts_with("invalid permits: "),
        "{error}"
    );
}

#[test]
fn even_numbers_and_one_are_refused_with_a_sentence() {
    for hosts in ["a", "a,b", "a,b,c,d", "a,b,c,d,e,f"] {
        let error = LockConfig::new(format!("redis+redlock://{hosts}")).expect_err("refused");
        let text = error.to_string();
        assert!(
            text.contains("a majority of 3, 5 or 7 independent servers"),
            "{text}"
        );
    }
}

/// The counters of all servers stand at one number, as they do once all have given out a number for one lock.
async fn with_equal_counters(fleet: &RedlockFleet) -> LockManager {
    let locks = manager(&fleet.url()).await;
    // Far ahead of their clocks, so that no connection raises them.
    for server in &fleet.servers {
        server
            .cmd(&["SET", RedisServer::FENCE_KEY, "9000000000000000"])
            .await;
    }
    locks
}

/// How many scripts each server has run.
async fn scripts(fleet: &RedlockFleet) -> Vec<u64> {
    let mut scripts = Vec::new();
    for server in &fleet.servers {
        scripts.push(server.calls("evalsha").await);
    }
    scripts
}

/// What goes to each server for a lock that is free is one call to take it and one to release it.
#[tokio::test]
async fn a_free_lock_costs_two_calls_on_each_server() {
    const CYCLES: u64 = 20;

    let fleet = RedlockFleet::start().await;
    let locks = with_equal_counters(&fleet).await;
    let before = scripts(&fleet).await;
    for _ in 0..CYCLES {
        release(take(&locks, "key", TTL).await).await;
    }
    eventually(TIME_LIMIT, async || fleet.traces().await.is_empty()).await;
    let wanted: Vec<_> = before.iter().map(|it| it + 2 * CYCLES).collect();
    assert_eq!(scripts(&fleet).await, wanted);
}

/// Calls that go to a server at once are one call of a script there, as on one server.
#[tokio::test]
async fn what_comes_at_once_goes_together_to_each_server() {
    const CROWD: u64 = 512;
    const IN_ONE: u64 = 64;

    let fleet = RedlockFleet::start().await;
    let locks = with_equal_counters(&fleet).await;
    let stopped = StoppedManager::new(&locks);
    let request = |number: u64| locks.lock(number.to_string()).wait_forever().ttl(HOUR);
    let crowd = (0..CROWD).map(|number| Box::pin(request(number).acquire()));
    let mut crowd: Vec<_> = crowd.collect();
    for acquire in &mut crowd {
        assert!(poll_once(acquire).await.is_pending());
    }
    let before = scripts(&fleet).await;
    drop(stopped);
    let mut guards = Vec::new();
    for acquire in crowd {
        guards.push(within(TIME_LIMIT, acquire).await.expect("a free lock"));
    }
    for (after, before) in scripts(&fleet).await.iter().zip(before) {
        // The release of the first lock is one more.
        let calls = after - before;
        assert!(
            calls <= CROWD / IN_ONE + 2,
            "{calls} calls for {CROWD} locks"
        );
    }
}
