//! The process that tests start, pause and kill: does what its first argument says.

#[path = "../commands/mod.rs"]
mod commands;

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
        ["paused-process", url, key, ttl] => commands::paused_process(orders, url, key, ttl).await,
        ["locker", url] => commands::locker(orders, url).await,
        ["holder", url, kind, key, ttl] => commands::holder(orders, url, kind, key, ttl).await,
        ["daily-job", url] => commands::daily_job(url).await,
        ["sections", url, register, tasks, keys, sections] => {
            let numbers = [tasks, keys, sections].map(|it| it.parse().expect("a number"));
            commands::sections(url, register, numbers).await;
        }
        ["turns", url, key, tasks] => {
            let tasks = tasks.parse().expect("a number");
            commands::turns(orders, url, key, tasks).await;
        }
        ["unconfigured"] => commands::unconfigured().await,
        ["ends-at-once", url] => commands::ends_at_once(url).await,
        ["installed-twice"] => commands::installed_twice().await,
        ["from-environment", calls] => {
            commands::from_environment(calls.parse().expect("a number")).await;
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
