//! When a server that logs to its standard output is ready.

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::ChildStdout,
    sync::oneshot,
};

use crate::{TIME_LIMIT, fixtures::within, net::runtime};

/// Waits until a line of the log contains one of these texts, in any case; the log if it ends before.
///
/// Asking the port instead would be answered by whichever server has it.
pub(crate) async fn ready(log: ChildStdout, texts: &'static [&'static str]) -> Result<(), String> {
    let (ready, started) = oneshot::channel();
    runtime().spawn(follow(log, texts, ready));
    let started = within(TIME_LIMIT, started).await;
    started.expect("the log is followed to its end")
}

/// Says when the server is ready, then keeps reading, so that it never blocks on a full pipe.
async fn follow(log: ChildStdout, texts: &[&str], ready: oneshot::Sender<Result<(), String>>) {
    let mut lines = BufReader::new(log).lines();
    let mut log = String::new();
    let outcome = loop {
        match lines.next_line().await {
            Ok(Some(line)) if contains(&line, texts) => break Ok(()),
            Ok(Some(line)) => log = log + &line + "\n",
            _ => break Err(log),
        }
    };
    // The test may have given up meanwhile.
    let _ = ready.send(outcome);
    while let Ok(Some(_)) = lines.next_line().await {}
}

fn contains(line: &str, texts: &[&str]) -> bool {
    let line = line.to_lowercase();
    texts.iter().any(|text| line.contains(text))
}
