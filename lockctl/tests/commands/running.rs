//! `run`: the command, its exit code, its environment, and its turn.

use std::{os::unix::fs::PermissionsExt as _, process::Stdio, sync::Arc};

use nix::sys::signal::Signal;
use tests::{
    LONG, Proxy, RedisServer, TIME_LIMIT, Verdict, connect, eventually, release, take, within,
};
use tokio::process::Command;

use crate::support::{LOCKCTL, Running, ends, is_alive, lockctl, objects, ran};

#[tokio::test]
async fn a_commands_exit_code_is_returned() {
    let server = RedisServer::start().await;
    for (script, code) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ] {
        let ran = ran(&server, &["run", "key", "--", "sh", "-c", script]).await;
        assert_eq!(
            (ran.code, &*ran.stdout, &*ran.stderr),
            (code, "", ""),
            "{script}"
        );
        assert_eq!(server.traces("key").await, [""; 0]);
    }
    let missing = ran(&server, &["run", "key", "--", "/no/such/command"]).await;
    assert_eq!(missing.code, 127);
    assert!(missing.stderr.contains("/no/such/command"), "{missing:?}");
    let file = std::env::temp_dir().join(tests::unique("not-executable"));
    std::fs::write(&file, "text").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let refused = ran(&server, &["run", "key", "--", file.to_str().unwrap()]).await;
    std::fs::remove_file(&file).unwrap();
    assert_eq!(refused.code, 126, "{refused:?}");
    assert_eq!(server.traces("key").await, [""; 0]);
}

#[tokio::test]
async fn a_store_that_nobody_shares_is_refused() {
    let server = RedisServer::start().await;
    for url in ["memory:", "memory:shop?ttl=5s"] {
        let done = ran(&server, &["--url", url, "run", "key", "--", "echo", "ran"]).await;
        assert_eq!((done.code, &*done.stdout), (2, ""), "{done:?}");
        assert!(done.stderr.contains("locks nothing for others"), "{done:?}");
    }
}

#[tokio::test]
async fn a_command_knows_its_lock_and_its_fencing_token() {
    let server = RedisServer::start().await;
    let script = "echo $LOCK_KEY; echo $LOCK_FENCE; cat";
    let run = ["run", "stock:lamp", "--json", "--", "sh", "-c", script];
    let mut fences = Vec::new();
    for _ in 0..2 {
        let ran = ran(&server, &run).await;
        let [key, fence] = ran.stdout.lines().collect::<Vec<_>>()[..] else {
            panic!("{ran:?}");
        };
        assert_eq!(key, "stock:lamp");
        let granted = &objects(&ran.stderr)[0];
        assert_eq!(granted["event"], "granted");
        assert_eq!(granted["key"], "stock:lamp");
        assert_eq!(granted["fence"].as_u64().unwrap().to_string(), fence);
        fences.push(fence.parse::<u64>().unwrap());
    }
    assert!(fences[0] < fences[1]);
}

#[tokio::test]
async fn a_lock_that_is_held_is_waited_for_or_skipped() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = take(&locks, "nightly", LONG).await;

    let skipped = ran(
        &server,
        &["run", "--skip", "nightly", "--", "echo", "it ran"],
    )
    .await;
    assert_eq!((skipped.code, &*skipped.stdout), (75, ""));
    assert!(skipped.stderr.contains("held by process"), "{skipped:?}");
    let skipped = ran(
        &server,
        &["run", "--skip", "--json", "nightly", "--", "echo"],
    )
    .await;
    let event = &objects(&skipped.stderr)[0];
    assert_eq!((skipped.code, &event["event"]), (75, &"skipped".into()));
    assert_eq!(event["holder"]["process"], std::process::id());

    let late = ran(
        &server,
        &["run", "--wait", "500ms", "--json", "nightly", "--", "echo"],
    )
    .await;
    let said = objects(&late.stderr);
    assert_eq!(late.code, 74, "{late:?}");
    assert_eq!(said[0]["event"], "waiting");
    assert_eq!(said[1]["kind"], "contended");

    let mut waits = Running::script(&server, &["nightly", "--wait", "forever"], "echo it ran");
    server.queued("nightly", 1).await;
    let status = locks.status("nightly").await.unwrap();
    assert_eq!(status.waiters[0].function.as_deref(), Some("lockctl:sh"));
    release(guard).await;
    assert_eq!(waits.line().await, "it ran");
    assert_eq!(waits.end().await.code, 0);
}

/// Else the lock lies idle until the answer comes, and a short lease ends before its command begins.
#[tokio::test]
async fn a_lock_that_is_granted_during_the_question_who_holds_it_is_used_at_once() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = take(&locks, "nightly", LONG).await;
    let proxy = Arc::new(Proxy::start(server.addr()));
    let ways = Arc::clone(&proxy);
    let owner = RedisServer::owner_key("nightly").into_bytes();
    proxy.requests().inspect(move |bytes| {
        // The request for the lock still passes, but no question after it.
        if bytes.windows(owner.len()).any(|it| it == owner) {
            ways.requests().hold();
        }
        Verdict::Pass
    });
    let run = [
        "run", "nightly", "--wait", "forever", "--ttl", "60s", "--json",
    ];
    let run = [&run[..], &["--", "echo", "it ran"]].concat();
    let mut command = lockctl(&server, &run);
    command.env("LOCK_URL", proxy.url());
    let mut waits = Running::start(command);
    server.queued("nightly", 1).await;
    proxy.replies().hold();
    release(guard).await;
    within(TIME_LIMIT, proxy.requests().held()).await;
    proxy.requests().ignore();

    // The grant arrives before the answer.
    proxy.replies().pass();
    proxy.requests().pass();
    assert_eq!(waits.line().await, "it ran");
    let ended = waits.end().await;
    let said = objects(&ended.stderr);
    let events: Vec<_> = said.iter().map(|it| &it["event"]).collect();
    assert_eq!((ended.code, &events[..]), (0, &[&"granted".into()][..]));
}

#[tokio::test]
async fn permits_and_readers_run_side_by_side() {
    let server = RedisServer::start().await;
    for kind in [&["--permits", "2"][..], &["--mode", "read"]] {
        let hold = "echo it runs; exec sleep 600";
        let args = [kind, &["key"]].concat();
        let mut both = Vec::new();
        for _ in 0..2 {
            let mut one = Running::script(&server, &args, hold);
            assert_eq!(one.line().await, "it runs");
            both.push(one);
        }
        let writer = ran(&server, &["run", "--skip", "key", "--", "true"]).await;
        assert_eq!(writer.code, 75, "{writer:?}");
        for one in both {
            one.signal(Signal::SIGTERM);
            assert_eq!(one.end().await.code, 143);
        }
        assert_eq!(server.traces("key").await, [""; 0]);
    }
}

#[tokio::test]
async fn a_lock_cools_down_after_a_short_command() {
    let server = RedisServer::start().await;
    let first = ran(&server, &["run", "--min-hold", "1m", "key", "--", "true"]).await;
    assert_eq!(first.code, 0);
    let second = ran(&server, &["run", "--skip", "key", "--", "true"]).await;
    assert_eq!(second.code, 75);
}

#[tokio::test]
async fn signals_are_forwarded() {
    let server = RedisServer::start().await;
    for (signal, name) in [
        (Signal::SIGTERM, "TERM"),
        (Signal::SIGINT, "INT"),
        (Signal::SIGHUP, "HUP"),
        (Signal::SIGUSR1, "USR1"),
    ] {
        let script =
            format!("trap 'echo got it; exit 5' {name}; echo ready; while :; do sleep 0.05; done");
        let mut run = Running::script(&server, &["key"], &script);
        assert_eq!(run.line().await, "ready");
        run.signal(signal);
        assert_eq!(run.line().await, "got it", "{name}");
        assert_eq!(run.end().await.code, 5, "{name}");
        assert_eq!(server.traces("key").await, [""; 0]);
    }
}

#[tokio::test]
async fn a_signal_that_is_ignored_stays_ignored() {
    let server = RedisServer::start().await;
    let script = "trap '' HUP; exec \"$0\" run key -- sh -c 'echo ready; sleep 0.5; echo done'";
    let mut command = Command::new("sh");
    command.args(["-c", script, LOCKCTL]);
    command
        .env("LOCK_URL", server.url())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut run = Running::start(command);
    assert_eq!(run.line().await, "ready");
    run.signal(Signal::SIGHUP);
    assert_eq!(run.line().await, "done");
    assert_eq!(run.end().await.code, 0);
}

#[tokio::test]
async fn a_signal_ends_the_wait_and_leaves_the_queue() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let _guard = take(&locks, "key", LONG).await;
    let run = Running::script(&server, &["key", "--wait", "forever"], "echo it ran");
    server.queued("key", 1).await;
    run.signal(Signal::SIGTERM);
    let ended = run.end().await;
    assert_eq!((ended.code, &*ended.stdout), (143, ""));
    server.queued("key", 0).await;
}

#[tokio::test]
async fn what_a_command_leaves_running_ends_before_the_release() {
    let server = RedisServer::start().await;
    let script = "(trap 'sleep 0.3; exit' TERM; echo ready >&2; while :; do sleep 0.05; done) & echo $!; sleep 0.3";
    let mut run = Running::script(&server, &["key"], script);
    let left = run.pid().await;
    assert!(is_alive(left));
    let release = eventually(TIME_LIMIT, async || {
        let held = !server.traces("key").await.is_empty();
        assert!(held || !is_alive(left), "it runs without the lock");
        !held
    });
    release.await;
    assert_eq!(run.end().await.code, 0);
    ends(left, TIME_LIMIT).await;
}

#[tokio::test]
async fn a_command_is_stopped_after_its_time() {
    let server = RedisServer::start().await;
    let mut run = Running::script(
        &server,
        &["key", "--max-hold", "3s", "--json"],
        "echo $$; exec sleep 600",
    );
    let pid = run.pid().await;
    let ended = run.end().await;
    assert_eq!(ended.code, 73);
    let said = objects(&ended.stderr);
    assert_eq!(said.last().unwrap()["event"], "lost");
    assert!(!is_alive(pid));
    let text = ran(
        &server,
        &["run", "key", "--max-hold", "1s", "--", "sleep", "600"],
    )
    .await;
    assert!(
        text.stderr.contains("--max-hold of 1.0s is over"),
        "{text:?}"
    );
}
