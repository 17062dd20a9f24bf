//! The worker's side of the pipe to the bench.

use std::io::{self, BufRead as _, Write as _};
use std::process;
use std::thread;

use serde::Serialize;
use tokio::sync::mpsc;

/// Lines from the bench, and to it. The process ends with the pipe.
#[derive(Debug)]
pub(super) struct Console(mpsc::UnboundedReceiver<String>);

impl Console {
    pub(super) fn open() -> Self {
        let (sender, lines) = mpsc::unbounded_channel();
        thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
            process::exit(0);
        });
        Self(lines)
    }

    /// The first line, before there is a runtime.
    pub(super) fn first_line(&mut self) -> String {
        self.0.blocking_recv().expect("the bench speaks first")
    }

    /// The next order.
    pub(super) async fn line(&mut self) -> String {
        match self.0.recv().await {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }

    /// Waits for this order.
    pub(super) async fn expect(&mut self, order: &str) {
        let line = self.line().await;
        assert_eq!(line, order, "an order that was not expected");
    }

    /// Writes one line of JSON.
    pub(super) fn say(answer: &impl Serialize) {
        let mut text = serde_json::to_string(answer).expect("JSON");
        text.push('\n');
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(text.as_bytes())
            .expect("the bench listens");
        stdout.flush().expect("the bench listens");
    }

    /// Keeps everything alive until the bench closes the pipe.
    pub(super) async fn until_closed(&mut self) {
        loop {
            self.line().await;
        }
    }
}
