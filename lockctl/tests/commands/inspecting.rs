//! `status`, `ls`, `release` and `doctor`, and what all commands have in common.

use std::process::Stdio;

use tests::{LONG, RedisServer, TIME_LIMIT, connect, eventually, queued, release, take, within};

use crate::support::{lockctl, ran};

#[tokio::test]
async fn a_ticket_is_shown_with_its_end_and_may_be_revoked() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = take(&locks, "video:7", LONG).await;
    let ticket = within(TIME_LIMIT, guard.into_ticket(LONG)).await.unwrap();
    let json = ran(&server, &["status", "video:7", "--json"]).await;
    assert_eq!(json.object()["holders"][0]["ticket"], true);
    let text = ran(&server, &["status", "video:7"]).await.stdout;
    assert!(text.contains("ticket, until "), "{text}");
    let secret = ticket.to_string();
    let (secret, _) = secret.split_once('-').unwrap();
    assert!(!text.contains(secret) && !json.stdout.contains(secret));
    let done = ran(&server, &["release", "--force", "--yes", "video:7"]).await;
    assert!(done.stdout.contains("cannot be adopted"), "{}", done.stdout);
    assert!(
        within(TIME_LIMIT, locks.adopt(&ticket).acquire())
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_status_has_the_holder_and_the_queue() {
    let server = RedisServer::start().await;
    let free = ran(&server, &["status", "stock:lamp", "--json"]).await;
    let object = free.object();
    assert_eq!((free.code, &object["state"]), (10, &"free".into()));

    let locks = connect(server.url()).await;
    let request = locks.lock("stock:lamp").ttl(LONG).function("shop::buy");
    let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
    let waiter = |name| locks.lock("stock:lamp").function(name).wait_forever();
    let _first = queued(&locks, waiter("shop::first")).await;
    let _second = queued(&locks, waiter("shop::second").read()).await;

    let held = ran(&server, &["status", "stock:lamp", "--json"]).await;
    assert_eq!(held.code, 0);
    let object = held.object();
    assert_eq!(
        (&object["key"], &object["state"]),
        (&"stock:lamp".into(), &"held".into())
    );
    let holder = &object["holders"][0];
    assert_eq!(holder["process"], std::process::id());
    assert_eq!(holder["function"], "shop::buy");
    assert_eq!(holder["fence"], guard.fencing_token().get());
    assert!(holder["held_ms"].is_u64() && holder["since"].is_string());
    assert!(holder["left_ms"].as_u64().unwrap() > 30_000);
    assert_eq!(object["waiters"], 2);
    for (at, (name, kind)) in [("shop::first", "exclusive"), ("shop::second", "read")]
        .iter()
        .enumerate()
    {
        let waiter = &object["queue"][at];
        assert_eq!(
            (&waiter["function"], &waiter["kind"]),
            (&(*name).into(), &(*kind).into())
        );
        assert_eq!(waiter["position"], at + 1);
        assert!(waiter["waited_ms"].is_u64());
    }

    let text = ran(&server, &["status", "stock:lamp", "--queue", "1"])
        .await
        .stdout;
    assert!(
        !text.contains('\u{1b}'),
        "colours where nobody sees them: {text:?}"
    );
    for part in [
        "held, 2 wait",
        "shop::buy",
        "shop::first",
        "and 1 waiter more",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains("shop::second"), "{text}");
    release(guard).await;
}

#[tokio::test]
async fn a_list_has_what_is_held_and_waited_for() {
    let server = RedisServer::start().await;
    assert_eq!(ran(&server, &["ls", "--json"]).await.stdout, "");
    let locks = connect(server.url()).await;
    let _lamp = take(&locks, "stock:lamp", LONG).await;
    let _chair = take(&locks, "stock:chair", LONG).await;
    let _order = take(&locks, "order:1", LONG).await;
    let _waiter = queued(&locks, locks.lock("stock:lamp").wait_forever()).await;

    let all = ran(&server, &["ls", "--json"]).await;
    let keys: Vec<_> = all
        .objects()
        .iter()
        .map(|it| it["key"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(keys, ["order:1", "stock:chair", "stock:lamp"]);
    let first = ran(
        &server,
        &[
            "ls", "stock:*", "--sort", "waiters", "--limit", "1", "--json",
        ],
    )
    .await;
    let lamp = first.object();
    assert_eq!(
        (&lamp["key"], &lamp["waiters"]),
        (&"stock:lamp".into(), &1.into())
    );
    assert_eq!(
        (&lamp["state"], &lamp["kind"]),
        (&"held".into(), &"exclusive".into())
    );
    assert_eq!(lamp["holders"][0]["process"], std::process::id());
    assert!(lamp["longest_wait_ms"].is_u64());
    let text = ran(&server, &["ls", "stock:*", "--limit", "1"])
        .await
        .stdout;
    assert!(
        text.starts_with("KEY") && text.contains("and 1 more lock"),
        "{text}"
    );
}

#[tokio::test]
async fn a_release_says_what_it_did_and_wants_a_yes() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let refused = ran(&server, &["release", "--force", "key"]).await;
    assert_eq!(refused.code, 76);
    assert!(refused.stderr.contains("say --yes"), "{refused:?}");
    assert!(guard.is_held());
    let unforced = ran(&server, &["release", "key", "--yes"]).await;
    assert_eq!(unforced.code, 2, "{unforced:?}");

    let next = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    let done = ran(&server, &["release", "--force", "--yes", "--json", "key"]).await;
    let object = done.object();
    assert_eq!(
        (done.code, &object["released"], &object["waiters"]),
        (0, &1.into(), &1.into())
    );
    assert_eq!(object["holders"][0]["process"], std::process::id());
    within(TIME_LIMIT, guard.lost()).await;
    let next = within(TIME_LIMIT, next).await.unwrap();
    let text = ran(&server, &["release", "--force", "--yes", "key"])
        .await
        .stdout;
    assert!(
        text.contains("may overlap")
            && text.contains("nobody waited")
            && text.contains("Its process answers."),
        "{text}"
    );
    within(TIME_LIMIT, next.lost()).await;
    let free = ran(&server, &["release", "--force", "--yes", "key"]).await;
    assert_eq!(free.code, 10, "{free:?}");
}

#[tokio::test]
async fn holders_are_asked_to_yield_and_decide() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let free = ran(&server, &["release", "--ask", "key"]).await;
    assert_eq!(free.code, 10, "{free:?}");
    let guard = take(&locks, "key", LONG).await;
    let done = ran(&server, &["release", "--ask", "--json", "key"]).await;
    let object = done.object();
    assert_eq!((done.code, &object["asked"]), (0, &1.into()));
    within(TIME_LIMIT, guard.asked()).await;
    assert!(guard.is_held());
    let text = ran(&server, &["release", "--ask", "key"]).await.stdout;
    assert!(text.contains("1 holder was asked to yield"), "{text}");
    let both = ran(&server, &["release", "--ask", "--force", "key"]).await;
    assert_eq!(both.code, 2, "{both:?}");
}

#[tokio::test]
async fn a_doctor_finds_what_is_wrong() {
    let server = RedisServer::builder()
        .arg("--maxmemory", "20mb")
        .arg("--maxmemory-policy", "allkeys-lru")
        .start()
        .await;
    let bad = ran(&server, &["doctor", "--json"]).await;
    assert_eq!(bad.code, 21);
    let findings = bad.objects();
    let eviction = findings
        .iter()
        .find(|it| it["check"] == "eviction")
        .unwrap();
    assert_eq!(eviction["severity"], "error");
    assert!(eviction["advice"].as_str().unwrap().contains("noeviction"));
    assert!(
        eviction["meaning"]
            .as_str()
            .unwrap()
            .contains("two holders")
    );
    let text = ran(&server, &["doctor"]).await.stdout;
    assert!(text.contains("error   eviction"), "{text}");

    let better = RedisServer::builder().append_only().start().await;
    let good = ran(&better, &["doctor", "--json"]).await;
    let others: Vec<_> = good
        .objects()
        .into_iter()
        .filter(|it| it["check"] != "latency")
        .collect();
    assert!(
        others.iter().all(|it| it["severity"] == "fine"),
        "{others:?}"
    );
}

/// What `doctor` says of one check.
async fn checked(server: &RedisServer, check: &str) -> serde_json::Value {
    let findings = ran(server, &["doctor", "--json"]).await.objects();
    let mut about = findings.into_iter().filter(|it| it["check"] == check);
    about.next().unwrap()
}

#[tokio::test]
async fn a_doctor_finds_that_grants_are_not_synced_during_a_rewrite() {
    let server = RedisServer::builder()
        .append_only()
        .arg("--no-appendfsync-on-rewrite", "yes")
        .start()
        .await;
    let persistence = checked(&server, "persistence").await;
    assert_eq!(persistence["severity"], "notice", "{persistence}");
    let advice = persistence["advice"].as_str().unwrap();
    assert!(
        advice.contains("no-appendfsync-on-rewrite no"),
        "{persistence}"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_doctor_reports_no_refusal_of_writes_where_the_server_takes_them() {
    // Nobody can write a file there.
    let server = RedisServer::builder()
        .arg("--dir", "/proc")
        .arg("--save", "3600 1")
        .arg("--stop-writes-on-bgsave-error", "no")
        .start()
        .await;
    server.cmd(&["BGSAVE"]).await;
    eventually(TIME_LIMIT, async || {
        let info = server.cmd(&["INFO", "persistence"]).await;
        let info: String = redis::from_redis_value(info).unwrap();
        info.contains("rdb_last_bgsave_status:err")
    })
    .await;
    let writes = checked(&server, "writes").await;
    assert_eq!(writes["severity"], "notice", "{writes}");
    let locks = connect(server.url()).await;
    release(take(&locks, "key", LONG).await).await;
}

#[tokio::test]
async fn a_store_that_cannot_be_asked_has_a_code_of_its_own() {
    let mut server = RedisServer::start().await;
    let url = format!("{}?connect_timeout=200ms", server.url());
    server.kill().await;
    let asked = async |args: &[&str]| ran(&server, &[&["--url", &url], args].concat()).await;
    let gone = asked(&["ls", "--json"]).await;
    assert_eq!((gone.code, &*gone.stdout), (69, ""));
    let error: serde_json::Value = serde_json::from_str(&gone.stderr).unwrap();
    assert_eq!(error["kind"], "unavailable");
    for command in [
        &["status", "key"][..],
        &["doctor"],
        &["run", "key", "--", "true"],
        &["release", "--force", "key"],
    ] {
        assert_eq!(asked(command).await.code, 69, "{command:?}");
    }
}

#[tokio::test]
async fn a_check_that_the_store_refuses_hides_no_other_one() {
    let server = RedisServer::start().await;
    let rules = "on >secret ~* &* +@all -scan";
    let set = [
        &["ACL", "SETUSER", "poor"][..],
        &rules.split(' ').collect::<Vec<_>>(),
    ]
    .concat();
    server.cmd(&set).await;
    let url = server.url().replace("redis://", "redis://poor:secret@");
    let done = ran(&server, &["--url", &url, "--json", "doctor"]).await;
    assert_eq!(done.code, 21, "{done:?}");
    let findings = done.objects();
    let about = |check: &str| findings.iter().find(|it| it["check"] == check);
    assert_eq!(about("rights").unwrap()["severity"], "error", "{done:?}");
    assert_eq!(about("leases").unwrap()["severity"], "warning", "{done:?}");
}

#[tokio::test]
async fn a_reader_that_goes_away_changes_no_exit_code() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let closed = || std::io::pipe().unwrap().1;
    let code = async |args: &[&str], stdout: Stdio, stderr: Stdio| {
        let mut command = lockctl(&server, args);
        let ended = command.stdout(stdout).stderr(stderr).status();
        within(TIME_LIMIT, ended).await.unwrap().code()
    };
    let status = ["status", "free"];
    assert_eq!(
        code(&status, closed().into(), Stdio::null()).await,
        Some(10)
    );
    let release = ["release", "--force", "key"];
    assert_eq!(
        code(&release, Stdio::null(), closed().into()).await,
        Some(76)
    );
    assert!(guard.is_held());
}

#[tokio::test]
async fn a_store_that_nobody_names_is_asked_for() {
    let server = RedisServer::start().await;
    let mut command = lockctl(&server, &["ls"]);
    let output = command.env_remove("LOCK_URL").output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("--url") && said.contains("LOCK_URL"),
        "{said}"
    );
    let wrong = ran(&server, &["--url", "nosuch://here", "ls"]).await;
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

#[tokio::test]
async fn a_prefix_tells_locks_apart() {
    let server = RedisServer::start().await;
    let shop = connect(
        lock_runtime::LockConfig::new(server.url())
            .unwrap()
            .prefix("shop"),
    )
    .await;
    let _guard = take(&shop, "key", LONG).await;
    assert_eq!(ran(&server, &["status", "key"]).await.code, 10);
    assert_eq!(
        ran(&server, &["status", "key", "--prefix", "shop"])
            .await
            .code,
        0
    );
    let variable = lockctl(&server, &["status", "key"])
        .env("LOCK_PREFIX", "shop")
        .output()
        .await;
    assert_eq!(variable.unwrap().status.code(), Some(0));
}

#[tokio::test]
async fn a_name_from_a_list_names_the_same_lock() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let _guard = take(&locks, "odd {%} \u{1b}[31m name", LONG).await;
    let listed = ran(&server, &["ls", "--json"]).await.object();
    let name = listed["key"].as_str().unwrap();
    assert_eq!(ran(&server, &["status", name]).await.code, 0, "{name}");
    assert_eq!(
        ran(&server, &["status", "odd {%} \u{1b}[31m name"])
            .await
            .code,
        0
    );
    // A foreign client may write anything as its value.
    server
        .cmd(&["SET", &RedisServer::owner_key("key"), "\u{1b}[2Jme"])
        .await;
    let text = ran(&server, &["ls"]).await.stdout;
    assert!(
        !text.contains('\u{1b}') && text.contains("foreign: \\u{1b}[2Jme"),
        "{text}"
    );
}

#[tokio::test]
async fn the_script_for_postgresql_names_the_schema_and_is_one_transaction() {
    let server = RedisServer::start().await;
    for (args, schema) in [
        (&["sql"][..], "\"lock_runtime\""),
        (&["sql", "--schema", "shop's"], "\"shop's\""),
    ] {
        let script = ran(&server, args).await;
        assert_eq!(script.code, 0);
        let path = format!("SET LOCAL search_path = {schema}, pg_temp;");
        assert!(script.stdout.contains(&path), "{}", script.stdout);
        assert!(script.stdout.contains("\nBEGIN"));
        assert!(script.stdout.ends_with("\nCOMMIT;\n"));
    }
}

#[tokio::test]
async fn completions_and_pages_name_the_commands() {
    let server = RedisServer::start().await;
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ran(&server, &["completions", shell]).await;
        assert_eq!(script.code, 0);
        assert!(script.stdout.contains("release"), "{shell}");
        assert!(!script.stdout.contains("doctor__guard"), "{shell}");
    }
    let page = ran(&server, &["man"]).await;
    assert!(
        page.stdout.starts_with(".ie") || page.stdout.contains(".TH lockctl"),
        "{page:?}"
    );
    let directory = std::env::temp_dir().join(tests::unique("pages"));
    std::fs::create_dir(&directory).unwrap();
    let written = ran(&server, &["man", directory.to_str().unwrap()]).await;
    assert_eq!(written.code, 0, "{written:?}");
    assert!(directory.join("lockctl-run.1").exists());
    std::fs::remove_dir_all(&directory).unwrap();
}
