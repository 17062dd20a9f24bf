//! The web service of `axum_orders` as a process, and requests to it.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use tests::within;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::program::program;

pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Service {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    log: JoinHandle<String>,
    pub(crate) address: SocketAddr,
}

impl Service {
    pub(crate) async fn start(url: Option<String>) -> Self {
        let mut command = Command::new(program("axum_orders"));
        let command = command
            .env_remove("LOCK_URL")
            // The log is read as text, whichever features of `tracing-subscriber` the workspace has.
            .env("NO_COLOR", "1")
            .envs(url.map(|url| ("LOCK_URL", url)));
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut stderr = process.stderr.take().unwrap();
        let log = tokio::spawn(async move {
            let mut log = String::new();
            stderr.read_to_string(&mut log).await.unwrap();
            log
        });
        let line = within(TIME_LIMIT, lines.next_line())
            .await
            .unwrap()
            .unwrap();
        let address = line.strip_prefix("listening on ").unwrap().parse().unwrap();
        Self {
            process,
            lines,
            log,
            address,
        }
    }

    /// The status of an answer, and the whole of it.
    pub(crate) async fn ask(&self, request: &str) -> (u16, String) {
        let ask = async {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let request = format!("{request} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
            (status, answer)
        };
        within(TIME_LIMIT, ask).await
    }

    pub(crate) async fn order(&self, item: &str) -> (u16, String) {
        self.ask(&format!("POST /orders/{item}")).await
    }

    /// Sends it a signal; returns when it has ended, with its last line and its log.
    pub(crate) async fn stop(mut self, signal: &str) -> (String, String) {
        let pid = self.process.id().unwrap().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-s", signal, &pid])
            .status();
        assert!(sent.unwrap().success());
        let end = async {
            let last = self.lines.next_line().await.unwrap().unwrap();
            assert!(self.process.wait().await.unwrap().success());
            (last, self.log.await.unwrap())
        };
        within(TIME_LIMIT, end).await
    }
}
