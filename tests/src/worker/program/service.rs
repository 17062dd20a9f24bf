//! A process of a service: holds some locks until it is asked to yield, and serves requests under others meanwhile.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lock_runtime::{LockManager, asked};
use tests::{LONG, connect};
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::sleep,
};

use crate::Orders;

/// How many tasks serve requests, and how many locks they need.
const TASKS: usize = 4;
const ITEMS: usize = 6;

/// Takes `shard-0`, `shard-1`, … and says `N granted FENCE`, `N was asked`, and with the order `yield N`, `N yielded`.
/// With the order `drain`, ends its requests and says `served COUNT`. An error says itself.
pub(crate) async fn service(mut orders: Orders, url: &str, shards: usize) {
    let locks = connect(url).await;
    println!("connected");
    let mut yields = HashMap::new();
    for shard in 0..shards {
        let (order, ordered) = oneshot::channel();
        yields.insert(format!("yield {shard}"), order);
        tokio::spawn(hold(locks.clone(), shard, ordered));
    }
    let (drain, draining) = watch::channel(false);
    let served = Arc::new(AtomicUsize::new(0));
    let mut serving = JoinSet::new();
    for _ in 0..TASKS {
        serving.spawn(serve(locks.clone(), Arc::clone(&served), draining.clone()));
    }
    while let Some(order) = orders.recv().await {
        if let Some(yields) = yields.remove(&order) {
            // Its holder may have been stopped.
            let _ = yields.send(());
        } else if order == "drain" {
            drain.send_replace(true);
            while serving.join_next().await.is_some() {}
            locks.shutdown().await;
            println!("served {}", served.load(Ordering::Relaxed));
        } else {
            panic!("no such order: {order}");
        }
    }
}

async fn hold(locks: LockManager, shard: usize, ordered: oneshot::Receiver<()>) {
    let request = locks.lock(format!("shard-{shard}")).ttl(LONG);
    let held = request.wait_forever().run(async |guard| {
        println!("{shard} granted {}", guard.fencing_token());
        asked().await;
        println!("{shard} was asked");
        ordered.await
    });
    match held.await {
        Ok(_) => println!("{shard} yielded"),
        Err(error) => println!("{shard}: {error}"),
    }
}

async fn serve(locks: LockManager, served: Arc<AtomicUsize>, draining: watch::Receiver<bool>) {
    while !*draining.borrow() {
        let item = format!("item-{}", fastrand::usize(..ITEMS));
        let request = locks.lock(item).ttl(LONG).wait(LONG);
        match request.run(sleep_a_little).await {
            Ok(()) => {
                served.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => println!("a request: {error}"),
        }
    }
}

async fn sleep_a_little(_: &lock_runtime::LockGuard) {
    sleep(Duration::from_millis(1)).await;
}
