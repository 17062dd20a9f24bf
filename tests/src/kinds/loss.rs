//! Loss: a body whose lock is gone is stopped, and its caller learns why.

use std::time::Duration;

use lock_runtime::LockError;

use super::Kind;
use crate::{Pulse, RedisServer, TIME_LIMIT, connect, eventually, take_turn, within};

const TTL: Duration = Duration::from_secs(1);

/// How a lock is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Its owner key is deleted, of several keys that of the first.
    OwnerDeleted,
    /// The server has lost everything.
    Flushed,
    /// The server is gone.
    ServerKilled,
}

/// By its local deadline at the latest.
pub async fn stops_the_body(kind: Kind, fault: Fault) {
    let mut server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = kind.request(&locks, "key").ttl(TTL).acquire().await;
    let guard = guard.expect("the lock is free");
    let fence = guard.fencing_token();
    let pulse = Pulse::default();
    let body = tokio::spawn({
        let pulse = pulse.clone();
        async move { guard.hold(pulse.beat(&guard)).await }
    });
    within(TIME_LIMIT, pulse.reaches(5)).await;

    let names = kind.names("key");
    let first = names.iter().min().expect("at least one");
    match fault {
        Fault::OwnerDeleted => drop(server.cmd(&["DEL", &RedisServer::owner_key(first)]).await),
        Fault::Flushed => drop(server.cmd(&["FLUSHALL"]).await),
        Fault::ServerKilled => server.kill().await,
    }
    let outcome = within(TTL + Duration::from_secs(1), body).await;
    match outcome.expect("no panic") {
        Ok(never) => match never {},
        Err(LockError::Lost {
            key,
            fencing_token: of,
            ..
        }) => {
            assert!(names.iter().any(|name| name == key.as_str()), "{key}");
            if fault == Fault::OwnerDeleted {
                assert_eq!(key.as_str(), first);
            }
            assert_eq!(of, fence);
        }
        Err(error) => panic!("not lost: {error}"),
    }
    let polls = pulse.polls();
    assert_eq!(polls.late, 0, "the body ran on after its deadline");
    assert!(polls.dropped.is_some(), "the body still exists");

    if fault != Fault::ServerKilled {
        // What was left of it is let go.
        within(TIME_LIMIT, locks.shutdown()).await;
        let locks = connect(server.url()).await;
        for name in &names {
            take_turn(&locks, name.as_str()).await;
        }
        // Who shared it is forgotten with the last lease.
        let nothing = async || server.keys("*{*").await.is_empty();
        eventually(TIME_LIMIT, nothing).await;
    }
}
