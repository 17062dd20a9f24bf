//! The wall clock of a server jumps: leases end early or late there, and fences grow all the same.

use std::time::Duration;

use lock_runtime::LockError;
use redis::Value;
use tests::{
    LONG, PATIENCE, Pulse, RedisServer, RedlockFleet, connect, release, take, within, work,
};

const TTL: Duration = Duration::from_millis(1_500);
const HOUR: Duration = Duration::from_secs(3600);
/// One counter for all locks, and one for each, as in a cluster.
const LAYOUTS: [&str; 2] = ["", "?layout=declared"];

/// Servers of which one serves, since they are those whose clocks can be moved.
async fn servers(test: &str) -> Option<RedlockFleet> {
    RedlockFleet::with_clocks(test).await
}

#[tokio::test]
async fn one_that_jumps_forward_ends_leases_early_and_their_holders_are_told() {
    let test = "clocks: one_that_jumps_forward";
    let Some(fleet) = servers(test).await else {
        return;
    };
    for (server, layout) in LAYOUTS.into_iter().enumerate() {
        let url = format!("{}{layout}", fleet.servers[server].url());
        let (locks, others) = (connect(&*url).await, connect(&*url).await);
        let first = take(&locks, "key", TTL).await;
        let fence = first.fencing_token();
        let pulse = Pulse::default();
        let body = work(first, &pulse, LONG);
        pulse.reaches(1).await;
        fleet.set_clock(server, HOUR).await;
        let second = take(&others, "key", TTL).await;
        assert!(second.fencing_token() > fence, "{layout}");
        let ended = within(PATIENCE, body).await.expect("no panic");
        assert!(matches!(ended, Err(LockError::Lost { .. })), "{ended:?}");
        assert!(second.is_held(), "{layout}");
    }
}

#[tokio::test]
async fn one_that_goes_back_ends_leases_late_and_no_deadline_moves() {
    let test = "clocks: one_that_goes_back";
    let Some(fleet) = servers(test).await else {
        return;
    };
    for (server, layout) in LAYOUTS.into_iter().enumerate() {
        fleet.set_clock(server, HOUR).await;
        let redis = &fleet.servers[server];
        let locks = connect(format!("{}{layout}", redis.url())).await;
        let request = locks.lock("key").ttl(LONG);
        let guard = within(PATIENCE, request.acquire()).await.expect("free");
        let fence = guard.fencing_token();
        fleet.set_clock(server, Duration::ZERO).await;
        let left = redis.cmd(&["PTTL", &RedisServer::owner_key("key")]).await;
        let late = HOUR.as_millis() / 2;
        assert!(
            matches!(left, Value::Int(left) if u128::from(left.unsigned_abs()) > late),
            "{left:?}"
        );
        assert!(guard.remaining() < LONG);
        release(guard).await;
        let next = take(&locks, "key", LONG).await;
        assert!(next.fencing_token() > fence, "{layout}");
    }
}
