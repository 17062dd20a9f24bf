//! The wall clock of a server jumps: leases end early or late there, and fences grow all the same.
//!
//! Section: guarantees.md#one-holder-at-a-time

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use lock_runtime::{LockError, LockManager};
use redis::Value;
use tests::{
    LONG, Pulse, RedisServer, RedlockFleet, TIME_LIMIT, aside, connect, eventually, release, take,
    within, work,
};
use tokio::{
    task::{JoinSet, yield_now},
    time::sleep,
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
async fn one_that_jumps_forward_ends_leases_early_and_their_holders_are_notified() {
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
        let ended = within(TIME_LIMIT, body).await.expect("no panic");
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
        let guard = within(TIME_LIMIT, request.acquire()).await.expect("free");
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

/// How many locks end at a time.
const LOCKS: usize = 4;

/// A last poll begins this long before the deadline at the most.
const LATE: Duration = Duration::from_millis(1);

/// A poll of a body that begins as late as it may.
#[derive(Debug, Clone, Copy)]
struct LastPoll {
    ttl: Duration,
    /// The margin of such a lease.
    margin: Duration,
    /// How long the poll takes.
    takes: Duration,
}

impl LastPoll {
    /// Whether the lock is still its own when the poll has ended. `None` where the machine let the poll begin too late,
    /// or take longer than the margin.
    async fn keeps_its_lock(
        self,
        locks: LockManager,
        key: String,
        server: SocketAddr,
    ) -> Option<bool> {
        let request = locks.lock(&key).ttl(self.ttl).renew(false);
        let guard = within(TIME_LIMIT, request.acquire()).await.expect("free");
        let (reader, mut writer) = {
            let stream = TcpStream::connect(server).expect("the server");
            (
                BufReader::new(stream.try_clone().expect("a socket")),
                stream,
            )
        };
        let body = async {
            sleep(guard.remaining().saturating_sub(5 * LATE)).await;
            while guard.remaining() > LATE {
                yield_now().await;
            }
            let begun = Instant::now();
            thread::sleep(self.takes);
            let owner = RedisServer::owner_key(&key);
            write!(writer, "EXISTS {owner}\r\n").expect("a command");
            let answer = reader.lines().next().expect("an answer");
            let is_there = answer.expect("an answer") == ":1";
            (begun.elapsed() + LATE < self.margin).then_some(is_there)
        };
        guard.hold(body).await.ok().flatten()
    }

    /// The same with several locks, while the server's clock gains `gain` on that of the clients; again where the machine
    /// is too busy for such polls.
    async fn keep_their_locks(self, test: &str, gain: Duration) {
        let Some(fleet) = servers(test).await else {
            return;
        };
        let server = &fleet.servers[0];
        let locks = connect(server.url()).await;
        for round in 0..5 {
            fleet.set_clock(0, gain * round).await;
            let mut polls = JoinSet::new();
            for number in 0..LOCKS {
                let (locks, addr) = (locks.clone(), server.addr());
                let key = format!("key:{number}");
                polls.spawn(aside(move || self.keeps_its_lock(locks, key, addr)));
            }
            let taken = async || server.keys("lock:{key:*").await.len() == LOCKS;
            eventually(TIME_LIMIT, taken).await;
            fleet.set_clock(0, gain * (round + 1)).await;
            let kept: Vec<_> = polls.join_all().await.into_iter().flatten().collect();
            assert!(kept.iter().all(|kept| *kept), "{kept:?}");
            if !kept.is_empty() {
                return;
            }
        }
        println!("{test}: the machine was too busy");
    }
}

#[tokio::test]
async fn a_poll_that_is_shorter_than_the_margin_ends_before_the_lease() {
    let poll = LastPoll {
        ttl: Duration::from_secs(1),
        margin: Duration::from_millis(50),
        takes: Duration::from_millis(35),
    };
    let test = "clocks: a_poll_that_is_shorter_than_the_margin";
    poll.keep_their_locks(test, Duration::ZERO).await;
}

#[tokio::test]
async fn a_clock_that_gains_a_hundredth_of_the_ttl_ends_no_lease_before_such_a_poll() {
    let poll = LastPoll {
        ttl: Duration::from_secs(4),
        margin: Duration::from_millis(80),
        takes: Duration::from_millis(60),
    };
    let test = "clocks: a_clock_that_gains_a_hundredth_of_the_ttl";
    poll.keep_their_locks(test, poll.ttl / 100).await;
}
