//! What is said of a holder that does not answer, of locks that nobody works under, and of patterns without a match.

use lock_runtime::LockManager;
use nix::sys::signal::Signal;
use tests::{LONG, RedisServer, TIME_LIMIT, connect, eventually, queued, release, take, within};

use crate::http::get;
use crate::screen::Screen;
use crate::serving::serve;
use crate::support::{LOCKCTL, Running, ran};

/// A process that holds the lock, and is stopped.
async fn stopped_holder(server: &RedisServer, key: &str) -> Running {
    let mut holder = Running::script(server, &["--ttl", "60s", key], "echo held; sleep 60");
    assert_eq!(holder.line().await, "held");
    holder.signal(Signal::SIGSTOP);
    holder
}

#[tokio::test]
async fn a_holder_that_is_stopped_is_called_silent() {
    let server = RedisServer::start().await;
    let _holder = stopped_holder(&server, "key").await;
    let awake = connect(server.url()).await;
    let request = awake.lock("other").ttl(LONG).function("shop::buy");
    let _awake = within(TIME_LIMIT, request.acquire()).await.unwrap();

    let object = ran(&server, &["status", "key", "--json"]).await.object();
    let holder = &object["holders"][0];
    assert_eq!(holder["answers"], false, "{object}");
    let text = ran(&server, &["status", "key"]).await.stdout;
    for part in [
        "no answer",
        "did not answer for 300 ms",
        "frees itself in",
        "unless it is renewed",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let text = ran(&server, &["status", "other"]).await.stdout;
    assert!(!text.contains("answer") && text.contains("SINCE"), "{text}");

    let list = ran(&server, &["ls"]).await.stdout;
    let line = |key: &str| {
        list.lines()
            .find(|it| it.starts_with(key))
            .unwrap()
            .to_owned()
    };
    assert!(line("key").contains("no answer"), "{list}");
    assert!(
        line("other").contains("shop::buy") && !line("other").contains("answer"),
        "{list}"
    );
    assert!(list.starts_with("KEY") && list.contains("HELD FOR") && list.contains("LONGEST WAIT"));

    let done = ran(&server, &["release", "--force", "--yes", "key"])
        .await
        .stdout;
    assert!(done.contains("did not answer"), "{done}");
    let done = ran(&server, &["release", "--force", "--yes", "other"])
        .await
        .stdout;
    assert!(
        done.contains("Its process answers") && done.contains("fencing token"),
        "{done}"
    );
}

/// A process that holds the lock, and has renewed its lease; and its fencing token.
async fn renewing_holder(server: &RedisServer, key: &str) -> (Running, u64) {
    let script = "echo $LOCK_FENCE; sleep 60";
    let mut holder = Running::script(server, &["--ttl", "9s", key], script);
    let fence = holder.line().await.parse().unwrap();
    let is_noted = async || !server.keys("*:n:*").await.is_empty();
    eventually(TIME_LIMIT, is_noted).await;
    (holder, fence)
}

/// Stops it, and lets its lock last as long as the test needs it.
async fn stop(server: &RedisServer, holder: &Running) {
    holder.signal(Signal::SIGSTOP);
    for key in server.keys("lock:{*").await {
        server.cmd(&["PEXPIRE", &key, "60000"]).await;
    }
}

#[tokio::test]
async fn a_silent_holder_that_has_renewed_its_lease_is_dated_everywhere() {
    let server = RedisServer::start().await;
    let (holder, fence) = renewing_holder(&server, "key").await;
    stop(&server, &holder).await;
    let status = ran(&server, &["status", "key", "--json"]).await.object();
    let list = ran(&server, &["ls", "--json"]).await.object();
    for object in [status, list] {
        let holder = &object["holders"][0];
        assert_eq!(holder["answers"], false, "{object}");
        assert_eq!(holder["fence"], fence, "{object}");
        assert!(holder["held_ms"].as_u64().unwrap() >= 2_000, "{object}");
    }
    let text = ran(&server, &["status", "key"]).await.stdout;
    assert!(text.contains(&fence.to_string()), "{text}");
    assert!(text.contains("did not answer for 300 ms"), "{text}");
    let text = ran(&server, &["ls"]).await.stdout;
    assert!(text.contains("s, no answer"), "{text}");

    let (_serving, address) = serve(&server, &[]).await;
    let page = get(&address, "/").await.body;
    assert!(page.contains("s, no answer"), "{page}");
    let page = get(&address, "/lock?key=key").await.body;
    assert!(page.contains(&fence.to_string()), "{page}");

    let mut screen = Screen::start(LOCKCTL, &["top", "--every", "100ms"], &server.url());
    screen.shows("s, no answer").await;
    screen.press("\r");
    screen.shows(&fence.to_string()).await;
    screen.shows("did not answer for 300 ms").await;
    screen.shows("is renewed.").await;
    screen.press("q");
    screen.end().await;
}

/// Later looks ask those again that hold for longest.
#[tokio::test]
async fn a_holder_that_falls_silent_is_called_so_by_the_next_look() {
    let server = RedisServer::start().await;
    let script = "echo held; sleep 60";
    let mut holder = Running::script(&server, &["--ttl", "60s", "key"], script);
    assert_eq!(holder.line().await, "held");
    let (_serving, address) = serve(&server, &[]).await;
    let mut screen = Screen::start(LOCKCTL, &["top", "--every", "100ms"], &server.url());
    screen.line("key").await;
    holder.signal(Signal::SIGSTOP);
    screen.shows("no answer").await;
    let says_so = async || get(&address, "/").await.body.contains("no answer");
    eventually(TIME_LIMIT, says_so).await;
    screen.press("q");
    screen.end().await;
}

#[tokio::test]
async fn a_pattern_without_a_match_does_not_deny_what_is_held() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let none = ran(&server, &["ls", "stock"]).await.stdout;
    assert_eq!(
        none,
        "no lock matches `stock` (none is held); try `stock*`\n"
    );
    let _lamp = take(&locks, "stock:lamp", LONG).await;
    let _chair = take(&locks, "stock:chair", LONG).await;
    let none = ran(&server, &["ls", "stock"]).await.stdout;
    assert_eq!(none, "no lock matches `stock` (2 are held); try `stock*`\n");
    let none = ran(&server, &["ls", "zzz*"]).await.stdout;
    assert_eq!(none, "no lock matches `zzz*` (2 are held)\n");
    assert_eq!(ran(&server, &["ls", "zzz*", "--json"]).await.stdout, "");
}

/// A lock whose holder has released it before its `min_hold` had passed.
async fn cooling(locks: &LockManager, key: &str) {
    let request = locks.lock(key).ttl(LONG).min_hold(LONG);
    release(within(TIME_LIMIT, request.acquire()).await.unwrap()).await;
    let cools = async || locks.status(key).await.unwrap().is_cooling_down();
    eventually(TIME_LIMIT, cools).await;
}

#[tokio::test]
async fn what_cools_down_is_not_held() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    cooling(&locks, "cool").await;
    let mut top = Running::start(crate::support::lockctl(&server, &["top", "--json"]));
    let look: serde_json::Value = serde_json::from_str(&top.line().await).unwrap();
    assert_eq!(look["held"], 0, "{look}");
    let none = ran(&server, &["ls", "zzz*"]).await.stdout;
    assert!(none.contains("(none is held)"), "{none}");
    let list = ran(&server, &["ls"]).await.stdout;
    assert!(list.contains("cooldown"), "{list}");
    let _waiter = queued(&locks, locks.lock("cool").wait_forever()).await;
    let done = ran(&server, &["release", "--force", "--yes", "cool"])
        .await
        .stdout;
    assert!(done.contains("went to the first of 1 waiter"), "{done}");
}
