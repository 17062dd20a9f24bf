//! The process that tests start, pause and kill: does what its first argument says.

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
