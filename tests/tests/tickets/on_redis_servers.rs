//! What a ticket costs on Redis.
//!
//! Section: guarantees.md#tickets

use lock_runtime::{Clock, LockConfig};
use tests::{LONG, Monitor, RedisServer, connect, release, take};

use super::{adopt, issue};

#[tokio::test]
async fn a_ticket_takes_one_call_each_way() {
    let server = RedisServer::start().await;
    // Nothing is sent because time passes.
    let config = || LockConfig::new(server.url()).expect("a URL");
    let locks = connect(config().clock(Clock::manual())).await;
    let others = connect(config().clock(Clock::manual())).await;
    // The server has to know the scripts.
    let ticket = issue(take(&locks, "key", LONG).await, LONG).await;
    release(adopt(&others, &ticket).await.expect("it is valid")).await;
    let mut monitor = server.monitor().await;
    for _ in 0..3 {
        let guard = take(&locks, "key", LONG).await;
        calls(&mut monitor, &server).await;
        let ticket = issue(guard, LONG).await;
        assert_eq!(calls(&mut monitor, &server).await, 1, "into_ticket");
        let guard = adopt(&others, &ticket).await.expect("it is valid");
        assert_eq!(calls(&mut monitor, &server).await, 1, "adopt");
        release(guard).await;
    }
}

/// How many commands about the lock there were since the last look.
async fn calls(monitor: &mut Monitor, server: &RedisServer) -> usize {
    let commands = monitor.commands(server).await;
    let about = |command: &&Vec<String>| command.iter().any(|word| word.contains("{key}"));
    commands.iter().filter(about).count()
}
