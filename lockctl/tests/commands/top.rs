//! `top` in a terminal of 80 columns and 24 rows.

use tests::{LONG, RedisServer, TIME_LIMIT, connect, queued, take, within};

use crate::{
    screen::Screen,
    support::{LOCKCTL, Running, lockctl, ran},
};

const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";
const DOWN: &str = "\x1b[B";

#[tokio::test]
async fn locks_are_shown_filtered_and_looked_into() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let request = locks.lock("stock:lamp").ttl(LONG).function("shop::buy");
    let _lamp = within(TIME_LIMIT, request.acquire()).await.unwrap();
    let _order = take(&locks, "order:1", LONG).await;
    let waiter = locks.lock("stock:lamp").function("shop::wait");
    let _waiter = queued(&locks, waiter.wait_forever()).await;

    let mut screen = Screen::start(LOCKCTL, &["top", "--every", "100ms"], &server.url());
    screen.shows("held 2   waiting 1").await;
    screen.shows("latency 0.").await;
    let lines: Vec<_> = screen.text().lines().map(ToOwned::to_owned).collect();
    assert!(
        lines[3].starts_with("KEY") && lines[3].contains("LONGEST WAIT"),
        "{lines:?}"
    );
    // The one that is waited for comes first.
    assert!(
        lines[4].starts_with("stock:lamp") && lines[5].starts_with("order:1"),
        "{lines:?}"
    );
    assert!(
        lines.iter().all(|line| line.chars().count() <= 80),
        "{lines:?}"
    );

    assert!(
        lines[3].contains("HELD FOR") && lines[4].contains("shop::buy"),
        "{lines:?}"
    );
    let store = format!("Redis at {}, prefix `lock`, as of ", server.addr());
    assert!(lines[2].starts_with(&store), "{lines:?}");

    screen.press("s");
    screen.shows("sort: wait").await;
    screen.press("/order");
    screen.hides("stock:lamp").await;
    screen.press("zzz");
    screen
        .shows("no lock matches `orderzzz` (2 are held)")
        .await;
    screen.press(ESCAPE);
    screen.shows("stock:lamp").await;
    screen.press(ENTER);
    screen.shows("shop::wait").await;
    let text = screen.text();
    for part in [
        "stock:lamp  held, 1 waiting",
        "shop::buy",
        "FENCE",
        "WAITS FOR",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    screen.press(ESCAPE);
    screen.shows("order:1").await;
    screen.press(DOWN);
    screen.press("q");
    assert_eq!(screen.end().await.code(), Some(0));
}

#[tokio::test]
async fn a_lock_is_revoked_after_a_yes() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let mut screen = Screen::start(LOCKCTL, &["top", "--every", "100ms"], &server.url());
    screen.line("key").await;
    screen.press("f");
    screen.shows("Revoke `key`?").await;
    // What has to be known before.
    screen.shows("Nobody waits for it.").await;
    screen.shows("may still write until it stops").await;
    screen.press("n");
    screen.hides("Revoke `key`?").await;
    assert!(guard.is_held());
    screen.press("f");
    screen.shows("Revoke `key`?").await;
    screen.press("y");
    within(TIME_LIMIT, guard.lost()).await;
    screen.shows("`key` was revoked from 1 holder").await;
    screen.shows("held 0").await;
    screen.shows("key  free").await;
    screen.press("f");
    screen.shows("`key` is free").await;
    screen.press("\x03");
    assert_eq!(screen.end().await.code(), Some(0));
}

#[tokio::test]
async fn a_server_that_goes_and_comes_back_is_reported() {
    let mut server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let _guard = take(&locks, "key", LONG).await;
    let mut screen = Screen::start(LOCKCTL, &["top", "--every", "100ms"], &server.url());
    screen.line("key").await;
    server.kill().await;
    screen.shows("is unavailable").await;
    // What was seen last is still shown, and since when.
    let last = screen.text();
    assert!(
        last.contains("prefix `lock`, as of ") && last.contains("\nkey "),
        "{last}"
    );
    server.restart().await;
    screen.shows("held 0").await;
    screen.hides("is unavailable").await;
    screen.press("q");
    screen.end().await;
}

#[tokio::test]
async fn without_a_terminal_it_writes_objects_or_nothing() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let _guard = take(&locks, "key", LONG).await;
    let refused = ran(&server, &["top"]).await;
    assert_eq!((refused.code, &*refused.stdout), (2, ""));
    let mut stream = Running::start(lockctl(&server, &["top", "--json", "--every", "50ms"]));
    for _ in 0..3 {
        let look: serde_json::Value = serde_json::from_str(&stream.line().await).unwrap();
        assert_eq!((&look["held"], &look["waiting"]), (&1.into(), &0.into()));
        assert!(look["latency_us"].is_u64());
    }
}
