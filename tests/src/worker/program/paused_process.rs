//! Takes a lock on each order, and says at what times its body was polled.

use std::{
    convert::Infallible,
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};

use lock_runtime::LockError;
use tests::{boottime, connect};
use tokio::time::{Interval, interval};

use crate::Orders;

/// Stays in the body, for every order, until the lock is lost.
pub(crate) async fn paused_process(mut orders: Orders, url: &str, key: &str, ttl: &str) {
    let locks = connect(url).await;
    let ttl = Duration::from_millis(ttl.parse().expect("milliseconds"));
    while orders.recv().await.is_some() {
        let guard = locks.lock(key).ttl(ttl).acquire().await;
        let guard = guard.expect("the lock is free");
        println!("held {}", guard.fencing_token());
        let mut ticks = interval(Duration::from_millis(30));
        let body = poll_fn(|cx| beat(cx, &mut ticks));
        match guard.hold(body).await {
            Ok(never) => match never {},
            Err(LockError::Lost {
                fencing_token: fence,
                ..
            }) => println!("lost {fence}"),
            Err(error) => println!("{error}"),
        }
    }
}

fn beat(cx: &mut Context<'_>, ticks: &mut Interval) -> Poll<Infallible> {
    println!("poll {}", boottime().as_nanos());
    while ticks.poll_tick(cx).is_ready() {}
    Poll::Pending
}
