//! What is asked and shown on a terminal, and what its keys do.

use std::os::unix::process::ExitStatusExt as _;

use nix::{sys::signal::Signal, unistd::Pid};
use tests::{LONG, RedisServer, TIME_LIMIT, connect, leaves_nothing, release, take};

use crate::{
    screen::Screen,
    support::{LOCKCTL, ends, is_alive},
};

const CTRL_C: &str = "\x03";
const CTRL_Z: &str = "\x1a";

#[tokio::test]
async fn an_interrupt_ends_the_command_and_lockctl() {
    let server = RedisServer::start().await;
    let run = ["run", "key", "--", "sh", "-c", "echo ready; exec sleep 600"];
    let mut screen = Screen::start(LOCKCTL, &run, &server.url());
    screen.shows("ready").await;
    screen.press(CTRL_C);
    assert_eq!(screen.end().await.signal(), Some(Signal::SIGINT as i32));
    leaves_nothing(&server, "key", TIME_LIMIT).await;
}

#[tokio::test]
async fn an_interrupt_ends_the_wait() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let _guard = take(&locks, "key", LONG).await;
    let run = ["run", "key", "--wait", "forever", "--", "true"];
    let mut screen = Screen::start(LOCKCTL, &run, &server.url());
    screen.shows("waiting for process").await;
    screen.press(CTRL_C);
    assert_eq!(screen.end().await.code(), Some(130));
    server.queued("key", 0).await;
}

#[tokio::test]
async fn a_command_can_ask_at_the_terminal() {
    let server = RedisServer::start().await;
    let run = [
        "run",
        "key",
        "--",
        "sh",
        "-c",
        "read answer; echo \"it was $answer\"; exit 7",
    ];
    let mut screen = Screen::start(LOCKCTL, &run, &server.url());
    screen.press("lamp\n");
    screen.shows("it was lamp").await;
    assert_eq!(screen.end().await.code(), Some(7));
}

#[tokio::test]
async fn a_job_is_stopped_and_goes_on() {
    let server = RedisServer::start().await;
    let mut screen = Screen::start("bash", &["--norc", "--noprofile", "-i"], &server.url());
    screen.shows("$ ").await;
    // No loop of commands: a shell that waits for `vfork` cannot be stopped. What is shown differs
    // from what is typed.
    let script = "trap \"echo over $((6 * 7)); exit\" INT; trap \"echo on $((6 * 7))\" CONT; \
                  sleep 60 & echo pid $$ runs; while kill -0 $!; do wait; done";
    screen.press(&format!(
        "{LOCKCTL} run key --ttl 60s -- sh -c '{script}'\n"
    ));
    screen.line("pid ").await;
    screen.press(CTRL_Z);
    screen.shows("Stopped").await;
    screen.press("echo the shell\" is back\"\n");
    screen.shows("the shell is back").await;
    screen.press("clear; fg\n");
    screen.shows("on 42").await;
    screen.press(CTRL_C);
    screen.shows("over 42").await;
    leaves_nothing(&server, "key", TIME_LIMIT).await;
    screen.press("exit\n");
    screen.end().await;
}

#[tokio::test]
async fn a_job_that_was_stopped_for_too_long_does_not_go_on() {
    let server = RedisServer::start().await;
    let mut screen = Screen::start("bash", &["--norc", "--noprofile", "-i"], &server.url());
    screen.shows("$ ").await;
    let script = "echo pid $$ runs; exec sleep 600";
    screen.press(&format!(
        "{LOCKCTL} run key --ttl 3s --grace 100ms -- sh -c '{script}'\n"
    ));
    let line = screen.line("pid ").await;
    let pid = line.split(' ').nth(1).unwrap().parse().unwrap();
    let pid = Pid::from_raw(pid);
    assert!(is_alive(pid));
    screen.press(CTRL_Z);
    screen.shows("Stopped").await;
    ends(pid, TIME_LIMIT).await;
    screen.press("fg; echo it ended with $?\n");
    screen.shows("it ended with 73").await;
    screen.press("exit\n");
    screen.end().await;
}

#[tokio::test]
async fn a_release_asks_first() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let release = ["release", "--force", "key"];
    for (answer, code) in [("n\n", 76), ("\n", 76), ("y\n", 0)] {
        let mut screen = Screen::start(LOCKCTL, &release, &server.url());
        screen.shows("Revoke `key`? [y/N]").await;
        assert!(guard.is_held());
        screen.press(answer);
        assert_eq!(screen.end().await.code(), Some(code));
    }
    guard.lost().await;
}

#[tokio::test]
async fn an_answer_is_about_the_holder_that_was_shown() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let first = take(&locks, "key", LONG).await;
    let mut screen = Screen::start(LOCKCTL, &["release", "--force", "key"], &server.url());
    screen.shows("Revoke `key`? [y/N]").await;
    release(first).await;
    let second = take(&locks, "key", LONG).await;
    screen.press("y\n");
    screen.shows("another holder").await;
    assert_eq!(screen.end().await.code(), Some(76));
    assert!(second.is_held());
}

#[tokio::test]
async fn a_command_that_may_outlive_its_lock_goes_on_after_a_stop() {
    let server = RedisServer::start().await;
    let mut screen = Screen::start("bash", &["--norc", "--noprofile", "-i"], &server.url());
    screen.shows("$ ").await;
    let script = "echo ready $((6 * 7)); read answer; echo it was $answer";
    screen.press(&format!(
        "{LOCKCTL} run key --ttl 1s --on-lost notify -- sh -c '{script}'\n"
    ));
    screen.shows("ready 42").await;
    screen.press(CTRL_Z);
    screen.shows("Stopped").await;
    leaves_nothing(&server, "key", TIME_LIMIT).await;
    screen.press("clear; fg\n");
    screen.shows("runs on without it").await;
    screen.press("lamp\n");
    screen.shows("it was lamp").await;
    screen.press("exit\n");
    screen.end().await;
}

#[tokio::test]
async fn colours_are_for_terminals() {
    let server = RedisServer::start().await;
    let screen = Screen::start(LOCKCTL, &["status", "key"], &server.url());
    screen.shows("free").await;
    assert!(
        screen.coloured().contains("\u{1b}[32mfree"),
        "{:?}",
        screen.coloured()
    );
}
