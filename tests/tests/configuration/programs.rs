//! Whole programs: the manager that is installed, the environment, and the end.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStringExt as _,
};

use tests::{RedisServer, Worker};

const WORKER: &str = env!("CARGO_BIN_EXE_worker");

/// A worker with variables of its own.
async fn with_environment(variables: &[impl AsRef<OsStr>], args: &[&str]) -> Worker {
    let variables = variables.iter().map(AsRef::as_ref);
    let words = ["-u", "LOCK_URL", "-u", "LOCK_PREFIX"].map(OsStr::new);
    let words = words
        .into_iter()
        .chain(variables)
        .chain([OsStr::new(WORKER)]);
    Worker::spawn("env", words.chain(args.iter().map(OsStr::new))).await
}

// Section: guarantees.md#the-body-does-not-begin-without-the-lock
#[tokio::test]
async fn without_init_nothing_runs() {
    let mut worker = Worker::spawn(WORKER, ["unconfigured"]).await;
    let text = worker.line().await;
    assert!(text.starts_with("not configured: "), "{text}");
    assert!(text.contains("lock_runtime::init"), "{text}");
    assert!(worker.wait().await.success());
}

#[tokio::test]
async fn the_manager_is_installed_once() {
    let mut worker = Worker::spawn(WORKER, ["installed-twice"]).await;
    for _ in 0..2 {
        let text = worker.line().await;
        assert!(
            text.starts_with("a lock manager is installed already: "),
            "{text}"
        );
    }
    let text = worker.line().await;
    assert!(text.contains("is held by"), "{text}");
    assert!(worker.wait().await.success());
}

#[tokio::test]
async fn the_environment_configures() {
    let server = RedisServer::start().await;
    let url = format!("LOCK_URL={}", server.url());
    let url_with_prefix = format!("{url}?prefix=north");
    let prefix = "LOCK_PREFIX=shop".to_owned();
    for (variables, fence) in [
        (vec![url.clone()], "lock:fence"),
        (vec![url, prefix.clone()], "shop:fence"),
        (vec![url_with_prefix.clone()], "north:fence"),
        // A variable goes before the URL.
        (vec![url_with_prefix, prefix], "shop:fence"),
    ] {
        server.cmd(&["FLUSHALL"]).await;
        let mut worker = with_environment(&variables, &["from-environment", "1"]).await;
        assert_eq!(worker.line().await, "the body of call 0 runs");
        assert!(worker.wait().await.success());
        assert_eq!(server.keys("*").await, [fence]);
    }
}

#[tokio::test]
async fn an_environment_without_a_url_or_with_a_bad_one_says_so() {
    for variables in [Vec::new(), vec!["LOCK_URL=http://localhost".to_owned()]] {
        let mut worker = with_environment(&variables, &["from-environment", "1"]).await;
        let text = worker.line().await;
        assert!(text.starts_with("invalid "), "{text}");
        assert!(
            text.contains("LOCK_URL") || text.contains("must begin with"),
            "{text}"
        );
        assert!(worker.wait().await.success());
    }
}

#[tokio::test]
async fn an_environment_with_a_bad_setting_says_so() {
    for (variable, says) in [
        ("LOCK_PREFIX=a{b", "invalid prefix: "),
        ("LOCK_TTL=10", "invalid LOCK_TTL: "),
        ("LOCK_TTL=1ms", "invalid ttl: "),
        ("LOCK_WAIT=ever", "invalid LOCK_WAIT: "),
        (
            "LOCK_CONNECT_TIMEOUT=soon",
            "invalid LOCK_CONNECT_TIMEOUT: ",
        ),
        ("LOCK_SHUTDOWN_GRACE=", "invalid LOCK_SHUTDOWN_GRACE: "),
        ("LOCK_POOL_SIZE=-1", "invalid LOCK_POOL_SIZE: "),
        ("LOCK_POOL_SIZE=0", "invalid pool_size: "),
    ] {
        let variables = ["LOCK_URL=memory:", variable];
        let mut worker = with_environment(&variables, &["from-environment", "1"]).await;
        let text = worker.line().await;
        assert!(text.starts_with(says), "{variable}: {text}");
        assert!(worker.wait().await.success());
    }
}

#[tokio::test]
async fn an_environment_that_is_no_text_says_so() {
    let no_text = |name: &str| OsString::from_vec([name.as_bytes(), b"=a\xff"].concat());
    let url = OsString::from("LOCK_URL=memory:");
    for (variables, name) in [
        (vec![no_text("LOCK_URL")], "LOCK_URL"),
        (vec![url, no_text("LOCK_PREFIX")], "LOCK_PREFIX"),
    ] {
        let mut worker = with_environment(&variables, &["from-environment", "1"]).await;
        let text = worker.line().await;
        assert!(text.starts_with(&format!("invalid {name}: ")), "{text}");
        assert!(worker.wait().await.success());
    }
}

// Section: guarantees.md#nothing-is-left-behind
#[tokio::test]
async fn a_program_that_drops_its_last_handle_leaves_no_key() {
    let server = RedisServer::start().await;
    for _ in 0..20 {
        let mut worker = Worker::spawn(WORKER, ["ends-at-once", &server.url()]).await;
        assert_eq!(worker.line().await, "the last guard is dropped");
        assert!(worker.wait().await.success());
        assert_eq!(server.keys("lock:{*").await, [""; 0]);
    }
}

// Section: guarantees.md#nothing-is-left-behind
#[tokio::test]
async fn a_program_that_ends_after_its_last_call_leaves_no_key() {
    let server = RedisServer::start().await;
    let url = format!("LOCK_URL={}", server.url());
    for calls in ["1", "30"] {
        let mut worker =
            with_environment(std::slice::from_ref(&url), &["from-environment", calls]).await;
        while worker.line().await
            != format!(
                "the body of call {} runs",
                calls.parse::<u32>().unwrap() - 1
            )
        {}
        assert!(worker.wait().await.success());
        assert_eq!(server.keys("lock:{*").await, [""; 0], "after {calls} calls");
    }
}
