//! `log` and `last`, the history on the page, and what it knows of a holder that does not answer.

use lock_runtime::LockManager;
use nix::sys::signal::Signal;
use tests::{LONG, RedisServer, connect, release, take};

use crate::http::get;
use crate::serving::serve;
use crate::support::{Running, lockctl, ran};

/// A manager of the server that keeps a history.
async fn keeping(server: &RedisServer) -> LockManager {
    connect(format!("{}?history=20", server.url())).await
}

async fn run_of(locks: &LockManager, key: &str, function: &'static str) -> u64 {
    let request = locks.lock(key).ttl(LONG).function(function);
    let guard = tests::within(tests::TIME_LIMIT, request.acquire()).await;
    let guard = guard.unwrap();
    let fence = guard.fencing_token().get();
    release(guard).await;
    fence
}

#[tokio::test]
async fn a_log_has_the_last_grants_and_how_they_ended() {
    let server = RedisServer::start().await;
    let locks = keeping(&server).await;
    let first = run_of(&locks, "nightly", "shop::report").await;
    let revoked = take(&locks, "nightly", LONG).await;
    ran(&server, &["release", "--force", "--yes", "nightly"]).await;
    let held = take(&locks, "nightly", LONG).await;

    let done = ran(&server, &["log", "nightly", "--json"]).await;
    let objects = done.objects();
    let told: Vec<_> = objects
        .iter()
        .map(|it| (it["fence"].as_u64().unwrap(), it["end"].as_str()))
        .collect();
    let expected = [
        (held.fencing_token().get(), None),
        (revoked.fencing_token().get(), Some("revoked")),
        (first, Some("released")),
    ];
    assert_eq!(told, expected);
    let oldest = &objects[2];
    assert_eq!(
        (&oldest["key"], &oldest["function"], &oldest["kind"]),
        (
            &"nightly".into(),
            &"shop::report".into(),
            &"exclusive".into()
        )
    );
    assert_eq!(oldest["process"], std::process::id());
    assert!(oldest["since"].is_string() && oldest["until"].is_string());
    assert!(oldest["held_ms"].is_u64() && objects[0]["held_ms"].is_null());

    let text = ran(&server, &["log", "nightly", "--limit", "2"])
        .await
        .stdout;
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].starts_with("SINCE") && lines[0].contains("END"),
        "{text}"
    );
    assert!(
        lines[1].contains("held") && lines[2].contains("revoked"),
        "{text}"
    );
    assert_eq!(lines[3..], ["and 1 earlier grant"], "{text}");
}

#[tokio::test]
async fn the_last_run_of_a_job_is_known() {
    let server = RedisServer::start().await;
    let none = ran(&server, &["last", "nightly"]).await;
    assert_eq!(none.code, 10);
    assert!(none.stdout.contains("LOCK_HISTORY"), "{none:?}");
    assert_eq!(ran(&server, &["log", "nightly", "--json"]).await.code, 10);
    let locks = keeping(&server).await;
    run_of(&locks, "nightly", "shop::first").await;
    let fence = run_of(&locks, "nightly", "shop::report").await;
    let done = ran(&server, &["last", "nightly"]).await;
    let process = std::process::id().to_string();
    for part in [
        "nightly",
        "released",
        "began",
        "took",
        "shop::report",
        &process,
    ] {
        assert!(done.stdout.contains(part), "no {part:?} in {done:?}");
    }
    assert_eq!(done.code, 0);
    let object = ran(&server, &["last", "nightly", "--json"]).await.object();
    assert_eq!(
        (&object["fence"], &object["end"]),
        (&fence.into(), &"released".into())
    );
    let _guard = take(&locks, "nightly", LONG).await;
    let text = ran(&server, &["last", "nightly"]).await.stdout;
    assert!(text.contains("held since"), "{text}");
}

#[tokio::test]
async fn a_job_of_the_shell_is_remembered_where_its_url_says_so() {
    let server = RedisServer::start().await;
    let mut job = lockctl(&server, &["run", "nightly", "--", "true"]);
    job.env("LOCK_HISTORY", "5");
    assert!(job.status().await.unwrap().success());
    let object = ran(&server, &["last", "nightly", "--json"]).await.object();
    assert_eq!(object["function"], "lockctl:true");
    assert_eq!(object["end"], "released");
}

#[tokio::test]
async fn the_history_knows_what_a_silent_holder_does_not_tell() {
    let server = RedisServer::start().await;
    let mut command = lockctl(
        &server,
        &[
            "run",
            "--ttl",
            "60s",
            "key",
            "--",
            "sh",
            "-c",
            "echo $LOCK_FENCE; sleep 60",
        ],
    );
    command.env("LOCK_HISTORY", "5");
    let mut holder = Running::start(command);
    let fence: u64 = holder.line().await.parse().unwrap();
    holder.signal(Signal::SIGSTOP);
    for asked in [&["status", "key", "--json"][..], &["ls", "--json"]] {
        let object = ran(&server, asked).await.object();
        let known = &object["holders"][0];
        assert_eq!(known["answers"], false, "{object}");
        assert_eq!(known["fence"], fence, "{object}");
        assert!(
            known["since"].is_string() && known["held_ms"].is_u64(),
            "{object}"
        );
    }
    holder.signal(Signal::SIGCONT);
}

#[tokio::test]
async fn the_page_of_a_lock_goes_back_to_before_it_was_opened() {
    let server = RedisServer::start().await;
    let (_serving, address) = serve(&server, &[]).await;
    let locks = keeping(&server).await;
    let page = get(&address, "/lock?key=nightly").await.body;
    assert!(!page.contains("<h2>Before</h2>"), "{page}");
    run_of(&locks, "nightly", "shop::report").await;
    let page = get(&address, "/lock?key=nightly").await.body;
    let (_, before) = page.split_once("<h2>Before</h2>").expect("a history");
    assert!(
        before.contains("released") && before.contains("shop::report"),
        "{before}"
    );
}

#[tokio::test]
async fn a_store_without_histories_says_so() {
    let server = RedisServer::start().await;
    let url = server.url().replace("redis://", "redis+setnx://");
    let done = ran(&server, &["--url", &url, "last", "nightly"]).await;
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("history"), "{done:?}");
}
