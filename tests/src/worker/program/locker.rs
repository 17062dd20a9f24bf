//! Takes and releases locks as the test says.

use std::{collections::HashMap, time::Duration};
use tests::connect;

use lock_runtime::{LockError, LockGuard};
use tokio::{sync::watch, task::JoinHandle};

use crate::Orders;

/// What the worker has begun, by the names that the test gave.
type Begun = HashMap<String, JoinHandle<Option<LockGuard>>>;

/// Orders, where NAME is the test's for one acquisition:
///
/// - `acquire NAME KEY WAIT_MS`; says `NAME granted FENCE` or `NAME refused ERROR` when it is so
/// - `pass NAME KEY [TTL_MS]`: the same, waiting for ever, and releases at once
/// - `all NAME TTL_MS KEY…`: as `acquire`, of all keys, waiting for ever
/// - `crowd COUNT KEY [apart]`: the same so many times at once; `apart` with a ttl of its own for each, so that none of
///   them is granted the lock together with another one
/// - `turns COUNT KEY MS`: so many at once, each of which holds the lock for that long; says `granted FENCE` for each
/// - `nest NAME OUTER INNER`: takes one lock, says `NAME is in the body`, and with the order `inwards` takes the other one
///   there; says `NAME has both`
/// - `drop NAME`: gives up waiting; says `NAME dropped`
/// - `release NAME`; says `NAME released BOOL`
pub(crate) async fn locker(mut orders: Orders, url: &str) {
    let locks = connect(url).await;
    let mut begun = Begun::new();
    let inwards = watch::Sender::new(false);
    println!("connected");
    while let Some(order) = orders.recv().await {
        let words: Vec<_> = order.split(' ').collect();
        match words.as_slice() {
            ["acquire", name, key, wait] => {
                let wait = Duration::from_millis(wait.parse().expect("milliseconds"));
                let request = locks.lock(*key).ttl(LEASE).wait(wait);
                let task = tokio::spawn(acquire((*name).to_owned(), request.acquire()));
                begun.insert((*name).to_owned(), task);
            }
            ["all", name, ttl, keys @ ..] => {
                let ttl = Duration::from_millis(ttl.parse().expect("milliseconds"));
                let request = locks.lock_all(keys.iter().copied()).ttl(ttl).wait_forever();
                let task = tokio::spawn(acquire((*name).to_owned(), request.acquire()));
                begun.insert((*name).to_owned(), task);
            }
            ["pass", name, key, ttl @ ..] => {
                let ttl = ttl.first().map(|it| it.parse().expect("milliseconds"));
                let ttl = ttl.map_or(LEASE, Duration::from_millis);
                let request = locks.lock(*key).ttl(ttl).wait_forever();
                tokio::spawn(acquire((*name).to_owned(), request.acquire()));
            }
            ["crowd", count, key, apart @ ..] => {
                let count: u64 = count.parse().expect("a number");
                for number in 0..count {
                    let more = if apart.is_empty() { 0 } else { number };
                    let request = locks.lock(*key).ttl(LEASE + Duration::from_millis(more));
                    let acquiring = request.wait_forever().acquire();
                    tokio::spawn(acquire(number.to_string(), acquiring));
                }
            }
            ["turns", count, key, time] => {
                let time = Duration::from_millis(time.parse().expect("milliseconds"));
                for _ in 0..count.parse().expect("a number") {
                    let request = locks.lock(*key).ttl(LEASE).wait_forever();
                    tokio::spawn(request.run(async move |lock| {
                        println!("granted {}", lock.fencing_token());
                        tokio::time::sleep(time).await;
                    }));
                }
            }
            ["nest", name, outer, inner] => {
                let (name, mut go) = ((*name).to_owned(), inwards.subscribe());
                let [outer, inner] =
                    [outer, inner].map(|it| locks.lock(*it).ttl(LEASE).wait_forever());
                tokio::spawn(outer.run(async move |_| {
                    println!("{name} is in the body");
                    go.wait_for(|it| *it).await.expect("an order");
                    let _guard = inner.acquire().await.expect("both");
                    println!("{name} has both");
                }));
            }
            ["inwards"] => _ = inwards.send_replace(true),
            ["drop", name] => {
                let task = begun.remove(*name).expect("begun");
                task.abort();
                // An error says that it was dropped.
                let _ = task.await;
                println!("{name} dropped");
            }
            ["release", name] => {
                let task = begun.remove(*name).expect("begun");
                let guard = task.await.expect("no panic").expect("granted");
                let held = guard.release_confirmed().await.expect("an answer");
                println!("{name} released {held}");
            }
            _ => panic!("no such order: {order}"),
        }
    }
}

/// No lease ends by itself while a test runs.
const LEASE: Duration = Duration::from_secs(60);

async fn acquire(
    name: String,
    acquiring: impl Future<Output = Result<LockGuard, LockError>>,
) -> Option<LockGuard> {
    match acquiring.await {
        Ok(guard) => {
            println!("{name} granted {}", guard.fencing_token());
            Some(guard)
        }
        Err(error) => {
            println!("{name} refused {error}");
            None
        }
    }
}
