//! Settings: what is out of range is refused before anything is sent, and the rest works.

use std::{io::ErrorKind, net::TcpListener, time::Duration};

use lock_runtime::{Clock, LockError, LockManager, init};
use tests::{RedisServer, connect, within};

use crate::{TIME_LIMIT, config, works_end_to_end};

#[tokio::test]
async fn settings_out_of_range_open_no_connection() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let url = format!("redis://{}", server.local_addr().unwrap());
    let config = || config(&url);
    for (wrong, config) in [
        ("prefix", config().prefix("a{b")),
        ("ttl", config().ttl(Duration::ZERO)),
        ("connect_timeout", config().connect_timeout(Duration::ZERO)),
        ("pool_size", config().pool_size(0)),
        ("max_waiters", config().max_waiters(0)),
        ("max_waiters", config().max_waiters(8).wait(Duration::ZERO)),
    ] {
        let connected = within(TIME_LIMIT, LockManager::connect(config.clone())).await;
        let installed = within(TIME_LIMIT, init(config)).await;
        for error in [connected.unwrap_err(), installed.unwrap_err()] {
            let named =
                matches!(error, LockError::InvalidOptions { setting, .. } if setting == wrong);
            assert!(named, "{wrong}: {error}");
        }
    }
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[tokio::test]
async fn managers_of_a_store_in_memory_share_their_clock() {
    let clock = Clock::manual();
    let config = |name, clock: &Clock| config(format!("memory:{name}")).clock(clock.clone());
    let locks = connect(config("clocks", &clock)).await;
    let another = LockManager::connect(config("clocks", &Clock::manual())).await;
    let refused = matches!(
        another,
        Err(LockError::InvalidOptions {
            setting: "clock",
            ..
        })
    );
    assert!(refused, "{another:?}");
    let guard = locks.lock("k").acquire().await.unwrap();
    let others = connect(config("clocks", &clock)).await;
    assert_eq!(others.status("k").await.unwrap().holders.len(), 1);
    drop(guard);
    drop((locks, others));
    connect(config("clocks", &Clock::machine())).await;
    connect(config("", &clock)).await;
    connect(config("", &Clock::manual())).await;
}

#[tokio::test]
async fn endless_times_overflow_nothing() {
    let server = RedisServer::start().await;
    let endless = config(server.url())
        .wait(Duration::MAX)
        .connect_timeout(Duration::MAX)
        .shutdown_grace(Duration::MAX);
    works_end_to_end(&server, endless.clone()).await;
    let locks = connect(endless).await;
    let guard = within(TIME_LIMIT, locks.lock("key").acquire())
        .await
        .unwrap();
    let work = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(guard.is_held());
        guard.release();
    };
    within(TIME_LIMIT, async { tokio::join!(locks.shutdown(), work) }).await;
}
