//! The process that tests start, pause and kill: does what its first argument says.

mod candidate;
mod configuration;
mod holder;
mod holds;
mod load;
mod locker;
mod paused_process;
mod service;
mod transfers;

use std::{env, io, process, thread};

use tokio::sync::mpsc;

/// What the test says, a line at a time.
type Orders = mpsc::UnboundedReceiver<String>;

#[tokio::main]
async fn main() {
    let orders = listen();
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["echo"] => echo(orders).await,
        ["paused-process", url, key, ttl] => {
            paused_process::paused_process(orders, url, key, ttl).await;
        }
        ["candidate", url, election, name, ttl] => {
            candidate::candidate(orders, url, election, name, ttl).await;
        }
        ["locker", url] => locker::locker(orders, url).await,
        ["holder", url, kind, key, ttl] => holder::holder(orders, url, kind, key, ttl).await,
        ["daily-job", url] => holder::daily_job(url).await,
        ["sections", url, register, tasks, keys, sections] => {
            let numbers = [tasks, keys, sections].map(|it| it.parse().expect("a number"));
            load::sections(url, register, numbers).await;
        }
        ["turns", url, key, tasks] => {
            let tasks = tasks.parse().expect("a number");
            load::turns(orders, url, key, tasks).await;
        }
        ["holds", url, tasks, keys] => {
            let numbers = [tasks, keys].map(|it| it.parse().expect("a number"));
            holds::holds(orders, url, numbers).await;
        }
        ["service", url, shards] => {
            service::service(orders, url, shards.parse().expect("a number")).await;
        }
        ["transfers", url, accounts] => {
            let accounts = accounts.parse().expect("a number");
            transfers::transfers(orders, url, accounts).await;
        }
        ["unconfigured"] => configuration::unconfigured().await,
        ["ends-at-once", url] => configuration::ends_at_once(url).await,
        ["installed-twice"] => configuration::installed_twice().await,
        ["from-environment", calls] => {
            configuration::from_environment(calls.parse().expect("a number")).await;
        }
        _ => panic!("no such command: {args:?}"),
    }
}

/// Reads stdin on a thread of its own. Its end is the end of the test, and of the worker whatever it does.
fn listen() -> Orders {
    let (sender, orders) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            // A command that has ended does not listen.
            let _ = sender.send(line);
        }
        process::exit(0);
    });
    orders
}

/// Says again what the test says, until `quit`.
async fn echo(mut orders: Orders) {
    while let Some(line) = orders.recv().await {
        if line == "quit" {
            return;
        }
        println!("{line}");
    }
}
