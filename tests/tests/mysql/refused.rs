//! Servers that cannot keep locks, and logins that are not safe, are refused with a sentence.
//!
//! Section: mysql.md#connecting

use lock_runtime::{LockConfig, LockError, LockManager, Tls, inspect::Severity};
use tests::{Authority, MysqlServer, TIME_LIMIT, connect, mysql_script, take_turn, within};

use crate::{invalid, refused, server};

const TEST: &str = "tests/mysql";

/// A server that encrypts, with a user who has a password.
async fn with_password(authority: &Authority) -> Option<MysqlServer> {
    let builder = MysqlServer::builder().tls(authority.issue_for_loopback());
    let server = builder.start(TEST).await?;
    for sql in [
        "CREATE USER shop@'127.0.0.1' IDENTIFIED BY 's3cret'",
        "GRANT ALL ON shop.* TO shop@'127.0.0.1'",
    ] {
        server.cmd(sql).await;
    }
    Some(server)
}

#[tokio::test]
async fn a_password_is_proven_and_not_sent() {
    let authority = Authority::new();
    let Some(server) = with_password(&authority).await else {
        return;
    };
    let url = |password| format!("mysql://shop:{password}@{}/shop", server.addr());
    // MySQL wants to see a password once.
    let private = format!("{}?sslmode=verify-full", url("s3cret"));
    let config = LockConfig::new(private).unwrap();
    let config = config.tls(Tls::new().ca_pem(authority.pem()));
    take_turn(&connect(config.clone()).await, "key").await;
    take_turn(&connect(&*url("s3cret")).await, "key").await;
    for password in ["wrong", ""] {
        let text = refused(&url(password)).await.to_string();
        let denied = ["denied", "not encrypted"]
            .iter()
            .any(|it| text.contains(it));
        assert!(denied && !text.contains("wrong"), "{text}");
    }
}

#[tokio::test]
async fn a_password_that_the_server_has_to_see_needs_encryption() {
    let authority = Authority::new();
    let Some(server) = with_password(&authority).await else {
        return;
    };
    if server.cmd("SELECT VERSION()").await[0].contains("MariaDB") {
        // It has no plugin that asks for a password.
        return;
    }
    let url = format!("mysql://shop:s3cret@{}/shop", server.addr());
    let config = LockConfig::new(format!("{url}?sslmode=verify-full")).unwrap();
    let config = config.tls(Tls::new().ca_pem(authority.pem()));
    for _ in 0..2 {
        let text = refused(&url).await.to_string();
        assert!(text.contains("`sslmode=verify-full`"), "{text}");
        take_turn(&connect(config.clone()).await, "key").await;
        take_turn(&connect(&*url).await, "key").await;
        // Forgets the passwords that it has seen.
        server.cmd("FLUSH PRIVILEGES").await;
    }
}

#[tokio::test]
async fn connections_are_encrypted_and_the_server_is_verified() {
    let authority = Authority::new();
    let builder = MysqlServer::builder().tls(authority.issue_for_loopback());
    let Some(server) = builder.start(TEST).await else {
        return;
    };
    server
        .cmd("CREATE USER shop@'127.0.0.1' IDENTIFIED BY 's3cret' REQUIRE SSL")
        .await;
    server.cmd("GRANT ALL ON shop.* TO shop@'127.0.0.1'").await;
    let url = |mode| format!("mysql://shop:s3cret@{}/shop?sslmode={mode}", server.addr());
    let config = |authority: &Authority| {
        let config = LockConfig::new(url("verify-full")).unwrap();
        config.tls(Tls::new().ca_pem(authority.pem()))
    };
    let locks = connect(config(&authority)).await;
    take_turn(&locks, "key").await;
    let connected = within(TIME_LIMIT, LockManager::connect(config(&Authority::new()))).await;
    let error = connected.expect_err("nobody vouches for it");
    assert!(error.to_string().starts_with("invalid tls: "), "{error:?}");
    let text = refused(&url("disable")).await.to_string();
    assert!(text.contains("denied"), "{text}");
}

#[tokio::test]
async fn a_server_that_does_not_encrypt_gets_no_password() {
    let Some(server) = MysqlServer::builder().plain().start(TEST).await else {
        return;
    };
    let url = format!("{}?sslmode=verify-full", server.url());
    let text = refused(&url).await.to_string();
    assert!(text.contains("does not encrypt"), "{text}");
}

#[tokio::test]
async fn a_server_that_forgets_commits_needs_a_quarantine() {
    let settings: [&[&str]; 2] = [
        &["--innodb-flush-log-at-trx-commit=2"],
        &["--log-bin", "--sync-binlog=0"],
    ];
    for settings in settings {
        let builder = MysqlServer::builder();
        let builder = settings
            .iter()
            .fold(builder, |it, option| it.option(option));
        let Some(server) = builder.start(TEST).await else {
            return;
        };
        let text = invalid(&server.url()).await;
        assert!(text.starts_with("invalid quarantine: "), "{text}");
        for setting in ["innodb_flush_log_at_trx_commit = 1", "sync_binlog = 1"] {
            assert!(text.contains(setting), "{text}");
        }
        let locks = connect(&*format!("{}?quarantine=60s", server.url())).await;
        take_turn(&locks, "key").await;
    }
}

#[tokio::test]
async fn a_server_with_a_binary_log_keeps_locks_unless_it_writes_statements() {
    for (format, is_served) in [("MIXED", true), ("ROW", true), ("STATEMENT", false)] {
        let format = format!("--binlog-format={format}");
        let builder = MysqlServer::builder().option("--log-bin").option(&format);
        let Some(server) = builder.option("--sync-binlog=1").start(TEST).await else {
            return;
        };
        if is_served {
            take_turn(&connect(&*server.url()).await, "key").await;
        } else {
            let text = invalid(&server.url()).await;
            assert!(text.contains("`binlog_format`"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_replica_is_passed_over_for_the_next_host() {
    let builder = MysqlServer::builder().option("--read-only");
    let Some(replica) = builder.start(TEST).await else {
        return;
    };
    let Some(server) = server().await else { return };
    let text = refused(&replica.url()).await.to_string();
    assert!(text.contains("`read_only` is on"), "{text}");
    let hosts = format!("{},{}", replica.addr(), server.addr());
    let locks = connect(&*format!("mysql://root@{hosts}/shop")).await;
    take_turn(&locks, "key").await;
    let tables = "SHOW TABLES LIKE 'lock_runtime_lock'";
    assert!(replica.cmd(tables).await.is_empty());
    assert_eq!(server.cmd(tables).await.len(), 1);
}

#[tokio::test]
async fn a_server_that_becomes_a_replica_is_left_for_the_next_host() {
    let Some(one) = server().await else { return };
    let Some(other) = server().await else { return };
    let hosts = format!("{},{}", one.addr(), other.addr());
    for server in [&one, &other] {
        // The superuser writes to a replica too.
        server.cmd("CREATE USER shop@'127.0.0.1'").await;
        server.cmd("GRANT ALL ON shop.* TO shop@'127.0.0.1'").await;
    }
    let locks = connect(&*format!("mysql://shop@{hosts}/shop")).await;
    take_turn(&locks, "key").await;
    one.cmd("SET GLOBAL read_only = ON").await;
    take_turn(&locks, "key").await;
    let rows = "SELECT name FROM lock_runtime_lock";
    assert_eq!(other.cmd(rows).await, ["lock:{key}"]);
}

#[tokio::test]
async fn a_database_that_is_not_there_is_refused() {
    let Some(server) = server().await else { return };
    let url = format!("mysql://root@{}/nothing", server.addr());
    let text = invalid(&url).await;
    assert!(
        text.starts_with("invalid url: ") && text.contains("nothing"),
        "{text}"
    );
}

#[tokio::test]
async fn a_user_needs_nothing_but_the_right_to_call_what_is_installed() {
    let Some(server) = server().await else { return };
    server.cmd("CREATE USER shop@'127.0.0.1'").await;
    server
        .cmd("GRANT EXECUTE ON shop.* TO shop@'127.0.0.1'")
        .await;
    let url = format!("mysql://shop@{}/shop", server.addr());
    let text = invalid(&url).await;
    assert!(text.contains("lockctl sql --mysql"), "{text}");
    let never = format!("{}?install=never", server.url());
    let text = invalid(&never).await;
    assert!(text.contains("forbids a change"), "{text}");
    // As the client `mysql` reads it.
    let script = mysql_script();
    let script = script.strip_prefix("DELIMITER //\n").unwrap();
    let script = script.strip_suffix("DELIMITER ;\n").unwrap();
    let mut peer = server.peer().await;
    for statement in script.split_terminator("\n//\n") {
        peer.rows(statement).await;
    }
    for url in [url, never] {
        let locks = connect(&*url).await;
        take_turn(&locks, "key").await;
        for finding in locks.diagnose().await.unwrap() {
            assert_ne!(finding.severity, Severity::Error, "{finding:?}");
        }
    }
}

/// Nobody waits for what an operator has to change, however long they would wait for a server.
#[tokio::test]
async fn a_locked_account_and_a_missing_owner_are_lasting_reasons() {
    let Some(server) = server().await else { return };
    for (user, right) in [("owner", "ALL"), ("shop", "EXECUTE")] {
        server.cmd(&format!("CREATE USER {user}@'127.0.0.1'")).await;
        let grant = format!("GRANT {right} ON shop.* TO {user}@'127.0.0.1'");
        server.cmd(&grant).await;
    }
    let url = |user| format!("mysql://{user}@{}/shop", server.addr());
    // The procedures run with its rights.
    take_turn(&connect(&*url("owner")).await, "key").await;
    let config = || {
        let config = LockConfig::new(url("shop")).unwrap();
        config.unavailable_wait_forever().lazy()
    };
    let why = async |locks: &LockManager| {
        let acquire = locks.lock("key").wait_forever().acquire();
        match within(TIME_LIMIT, acquire).await {
            Err(error @ LockError::Unavailable { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let locks = connect(config()).await;
    take_turn(&locks, "key").await;
    server.cmd("DROP USER owner@'127.0.0.1'").await;
    let text = why(&locks).await;
    assert!(text.contains("definer"), "{text}");
    server.cmd("ALTER USER shop@'127.0.0.1' ACCOUNT LOCK").await;
    let text = why(&connect(config()).await).await;
    assert!(text.contains("locked"), "{text}");
}

#[tokio::test]
async fn what_one_of_several_servers_refuses_for_good_another_one_may_serve() {
    let (Some(one), Some(other)) = (server().await, server().await) else {
        return;
    };
    other.cmd("CREATE DATABASE late").await;
    let hosts = format!("{},{}", one.addr(), other.addr());
    let locks = connect(&*format!("mysql://root@{hosts}/late")).await;
    take_turn(&locks, "key").await;
    let text = invalid(&format!("mysql://root@{hosts}/none")).await;
    assert!(text.contains(&other.addr().to_string()), "{text}");
}
