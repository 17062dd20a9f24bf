//! What the promises depend on in a store is found, and what is wrong with it.

use std::time::Duration;

use lock_runtime::inspect::{Finding, Severity};
use lock_runtime::{LockConfig, LockManager};
use tests::{
    ClusterFleet, EtcdCluster, LONG, RedisServer, Store, TIME_LIMIT, ZooKeeperEnsemble, connect,
    on_every_store, take, within,
};

on_every_store! {
    a_store_that_is_fine_is_found_so [list],
}

/// What is found, by way of another server if one has just been killed.
async fn diagnose(locks: &LockManager) -> Vec<Finding> {
    let diagnosed = async {
        loop {
            match locks.diagnose().await {
                Ok(findings) => return findings,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    within(TIME_LIMIT, diagnosed).await
}

/// A manager that gives servers on a busy machine time to answer.
async fn patient(url: &str) -> LockManager {
    let config = LockConfig::new(url).unwrap().ttl(2 * LONG);
    connect(config.connect_timeout(TIME_LIMIT)).await
}

/// The finding of a check.
fn found<'a>(findings: &'a [Finding], check: &str) -> &'a Finding {
    let finding = findings.iter().find(|it| it.check == check);
    finding.unwrap_or_else(|| panic!("no {check} in {findings:?}"))
}

async fn a_store_that_is_fine_is_found_so(store: Store) {
    let locks = store.manager().await;
    let _held = take(&locks, "key", LONG).await;
    let findings = diagnose(&locks).await;
    for finding in &findings {
        // Tests keep nothing on disk, run single servers, other work on the machine delays answers, and what fails
        // over may forget.
        let expected = [
            "persistence",
            "latency",
            "replicas",
            "members",
            "servers",
            "pooler",
        ];
        let expected = expected.contains(&finding.check);
        assert!(
            finding.severity == Severity::Fine || expected,
            "{finding:?}"
        );
        assert_eq!(
            finding.meaning.is_none(),
            finding.severity == Severity::Fine
        );
    }
    assert!(findings.iter().any(|it| it.check == "leases"));
}

#[tokio::test]
async fn what_is_wrong_with_a_server_is_found() {
    let server = RedisServer::builder()
        .arg("--maxmemory", "20mb")
        .arg("--maxmemory-policy", "allkeys-lru")
        .start()
        .await;
    server
        .cmd(&["SET", &RedisServer::owner_key("key"), "somebody else"])
        .await;
    let locks = connect(server.url()).await;
    let findings = diagnose(&locks).await;
    let found = |check| found(&findings, check);
    assert_eq!(found("eviction").severity, Severity::Error);
    assert!(
        found("eviction")
            .advice
            .as_deref()
            .unwrap()
            .contains("noeviction")
    );
    assert_eq!(found("persistence").severity, Severity::Warning);
    assert_eq!(found("leases").severity, Severity::Warning);
    assert!(found("leases").found.contains("`key`"));
    for fine in [
        "version", "role", "cluster", "memory", "writes", "rights", "clock",
    ] {
        assert_eq!(found(fine).severity, Severity::Fine, "{:?}", found(fine));
    }
    let keys = server.keys("*").await;
    assert_eq!(
        keys,
        ["lock:fence", "lock:{key}"],
        "a diagnosis leaves something"
    );
}

#[tokio::test]
async fn a_single_replica_is_advised_to_get_another_one() {
    let fleet = ClusterFleet::start().await;
    let findings = diagnose(&connect(fleet.url()).await).await;
    let all = findings.iter().filter(|it| it.check == "replicas");
    let advised = all.filter(|it| {
        let advice = it.advice.as_deref().unwrap_or_default();
        advice.contains("two replicas a master")
    });
    assert!(advised.count() > 0, "{findings:?}");
}

#[tokio::test]
async fn a_right_that_is_missing_is_found() {
    let server = RedisServer::start().await;
    let rights = [
        "+@all",
        "-zpopmin",
        "-info",
        "-client|kill",
        "~lock:*",
        "&lock:*",
    ];
    let user = ["ACL", "SETUSER", "shop", "on", ">secret", "resetchannels"];
    server.cmd(&[&user[..], &rights].concat()).await;
    let locks = connect(server.url_with_user("shop", "secret")).await;
    let findings = diagnose(&locks).await;
    let rights: Vec<_> = findings.iter().filter(|it| it.check == "rights").collect();
    let [refused, useful] = &rights[..] else {
        panic!("{findings:?}");
    };
    assert!(
        refused.found.starts_with("ZPOPMIN is refused: "),
        "{refused:?}"
    );
    assert_eq!(refused.severity, Severity::Error);
    assert!(
        useful.found.starts_with("CLIENT KILL is refused: "),
        "{useful:?}"
    );
    assert_eq!(useful.severity, Severity::Notice);
    let server = findings.iter().find(|it| it.check == "server").unwrap();
    assert!(server.found.contains("INFO"), "{server:?}");
}

#[tokio::test]
async fn keys_that_never_expire_are_found_among_thousands() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let _held = take(&locks, "key", LONG).await;
    assert_eq!(
        found(&diagnose(&locks).await, "keys").severity,
        Severity::Fine
    );
    let mut pipeline = ::redis::pipe();
    for number in 0..2_000 {
        let key = format!("lock:old:{number}");
        pipeline
            .cmd("SET")
            .arg(key)
            .arg(1)
            .arg("EX")
            .arg(60)
            .ignore();
    }
    for key in ["lock:old:forgotten", "lock:{gone}:h", "unlocked:forgotten"] {
        pipeline.cmd("SET").arg(key).arg(1).ignore();
    }
    let mut connection = server.connection().await;
    let () = pipeline.query_async(&mut connection).await.unwrap();
    let findings = diagnose(&locks).await;
    let keys = found(&findings, "keys");
    assert_eq!(keys.severity, Severity::Notice);
    assert!(keys.found.starts_with("2 never expire"), "{keys:?}");
}

#[tokio::test]
async fn what_is_wrong_with_an_ensemble_of_zookeeper_is_found() {
    let ensemble = ZooKeeperEnsemble::start("what is wrong with ZooKeeper", 100).await;
    let Some(mut ensemble) = ensemble else { return };
    let locks = patient(&ensemble.url()).await;
    let findings = diagnose(&locks).await;
    let servers = found(&findings, "servers");
    assert_eq!(
        &*servers.found,
        "3 vote; 3 of the 3 that the URL names answer"
    );
    assert_eq!(servers.severity, Severity::Fine);
    // Sessions end after 60 s.
    assert_eq!(found(&findings, "session").severity, Severity::Notice);
    let ticks = found(&findings, "ticks");
    assert_eq!(&*ticks.found, "tickTime 100ms, sessions of 200ms to 60s");

    let follower = ensemble.follower().await;
    ensemble.server(follower).kill().await;
    let findings = diagnose(&locks).await;
    let servers = found(&findings, "servers");
    assert_eq!(servers.severity, Severity::Warning);
    let addr = ensemble.server(follower).addr().to_string();
    assert!(
        servers.advice.as_deref().unwrap().contains(&addr),
        "{servers:?}"
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_cluster_of_etcd_is_found() {
    let Some(mut cluster) = EtcdCluster::start("what is wrong with etcd", 3).await else {
        return;
    };
    let locks = patient(&cluster.url()).await;
    let findings = diagnose(&locks).await;
    // Some versions are warned of.
    assert!(found(&findings, "version").severity < Severity::Error);
    for check in ["members", "leader", "alarms", "quota", "rights"] {
        let finding = found(&findings, check);
        assert_eq!(finding.severity, Severity::Fine, "{finding:?}");
    }
    let leader = cluster.leader().await;
    let leads = format!("`m{leader}` leads");
    assert_eq!(*found(&findings, "leader").found, *leads);

    let raise = r#"{"action":"ACTIVATE","alarm":"NOSPACE"}"#;
    let follower = (leader + 1) % 3;
    let answer = cluster.members[leader]
        .ask("maintenance/alarm", raise)
        .await;
    assert!(answer.unwrap().starts_with("HTTP/1.1 200"));
    cluster.members[follower].kill().await;
    let findings = diagnose(&locks).await;
    let members = found(&findings, "members");
    assert_eq!(members.severity, Severity::Warning);
    let addr = cluster.members[follower].addr().to_string();
    assert!(
        members.advice.as_deref().unwrap().contains(&addr),
        "{members:?}"
    );
    let alarms = found(&findings, "alarms");
    assert_eq!(
        (alarms.severity, &*alarms.found),
        (Severity::Error, "NOSPACE")
    );
}
