//! Contends for locks as fast as it can.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tests::{Register, connect};
use tokio::{sync::watch, task::JoinSet};

use crate::Orders;

/// Longer than any queue under load takes.
const WAIT: Duration = Duration::from_secs(60);

/// Says so often how many sections were entered.
const SOME: u64 = 500;

/// Enters `sections` critical sections in all, by `tasks` tasks that go round `keys` keys; says how far it is.
pub(crate) async fn sections(url: &str, register: &str, [tasks, keys, sections]: [u64; 3]) {
    let locks = connect(url).await;
    let register = Arc::new(Register::join(register).await);
    let entered = Arc::new(AtomicU64::new(0));
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let (locks, register, entered) = (locks.clone(), register.clone(), entered.clone());
        running.spawn(async move {
            let mut key = task;
            loop {
                let number = entered.fetch_add(1, Ordering::Relaxed);
                if number >= sections {
                    return;
                }
                if number.is_multiple_of(SOME) {
                    println!("{number}");
                }
                key = (key + 1) % keys;
                let name = key.to_string();
                let request = locks.lock(&name).wait(WAIT);
                let outcome = request.run(async |guard| {
                    let fence = guard.fencing_token().get();
                    register.enter(&name, fence).await.leave().await;
                });
                outcome.await.expect("a section");
            }
        });
    }
    running.join_all().await;
    // Delivers the last releases.
    locks.shutdown().await;
    println!("done");
}

/// Takes turns at one lock, by `tasks` tasks, from the first order to the second; says how often each had its turn.
pub(crate) async fn turns(mut orders: Orders, url: &str, key: &str, tasks: usize) {
    let locks = connect(url).await;
    println!("ready");
    orders.recv().await;
    let stop = watch::Sender::new(false);
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        let (locks, key, stopped) = (locks.clone(), key.to_owned(), stop.subscribe());
        running.spawn(async move {
            let mut turns = 0_u64;
            while !*stopped.borrow() {
                let guard = locks.lock(&key).wait(WAIT).acquire().await;
                guard.expect("a turn").release();
                turns += 1;
            }
            turns
        });
    }
    println!("running");
    orders.recv().await;
    stop.send_replace(true);
    let turns = running.join_all().await;
    println!(
        "{}",
        turns
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    );
}
