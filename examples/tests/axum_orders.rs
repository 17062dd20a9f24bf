//! Drives the web service over HTTP while its Redis server comes and goes.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod program;

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use lock_runtime::LockManager;
use program::program;
use tests::{RedisServer, eventually, within};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};

const PATIENCE: Duration = Duration::from_secs(20);

struct Service {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
}

impl Service {
    async fn start(url: Option<String>) -> Self {
        let mut command = Command::new(program("axum_orders"));
        let command = command
            .env_remove("LOCK_URL")
            .envs(url.map(|url| ("LOCK_URL", url)));
        let mut process = command
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = within(PATIENCE, lines.next_line()).await.unwrap().unwrap();
        let address = line.strip_prefix("listening on ").unwrap().parse().unwrap();
        Self {
            process,
            lines,
            address,
        }
    }

    /// The status of an answer, and the whole of it.
    async fn ask(&self, request: &str) -> (u16, String) {
        let ask = async {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let request = format!("{request} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
            (status, answer)
        };
        within(PATIENCE, ask).await
    }

    async fn order(&self, item: &str) -> (u16, String) {
        self.ask(&format!("POST /orders/{item}")).await
    }

    /// As Ctrl-C does; returns when it has ended, with its last line.
    async fn interrupt(mut self) -> String {
        let pid = self.process.id().unwrap().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status();
        assert!(sent.unwrap().success());
        let last = within(PATIENCE, self.lines.next_line())
            .await
            .unwrap()
            .unwrap();
        assert!(
            within(PATIENCE, self.process.wait())
                .await
                .unwrap()
                .success()
        );
        last
    }
}

/// One at a time, in memory as on a server.
#[tokio::test]
async fn no_more_is_sold_than_there_is() {
    let server = RedisServer::start().await;
    for url in [None, Some(server.url())] {
        let service = Service::start(url).await;
        assert_eq!(service.ask("GET /ready").await.0, 200);
        let (first, second) = tokio::join!(service.order("desk"), service.order("desk"));
        let mut statuses = [first.0, second.0];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 410], "{} {}", first.1, second.1);
        assert_eq!(
            service.interrupt().await,
            "all orders are finished, all locks released"
        );
    }
}

#[tokio::test]
async fn an_answer_without_the_lock_says_when_to_try_again() {
    let mut server = RedisServer::start().await;
    let others = LockManager::connect(server.url()).await.unwrap();
    let service = Service::start(Some(server.url())).await;

    let guard = others.lock("stock:lamp").acquire().await.unwrap();
    let (status, answer) = service.order("lamp").await;
    assert!(
        status == 409 && answer.contains("retry-after: "),
        "{answer}"
    );
    guard.release_confirmed().await.unwrap();
    assert_eq!(service.order("lamp").await.0, 200);

    server.kill().await;
    let (status, answer) = service.order("lamp").await;
    assert!(
        status == 503 && answer.contains("retry-after: "),
        "{answer}"
    );
    assert_eq!(service.ask("GET /ready").await.0, 503);

    server.restart().await;
    eventually(PATIENCE, async || service.ask("GET /ready").await.0 == 200).await;
    assert_eq!(service.order("lamp").await.0, 200);
}

#[tokio::test]
async fn an_order_that_has_begun_is_finished_at_the_end() {
    let server = RedisServer::start().await;
    let others = LockManager::connect(server.url()).await.unwrap();
    let service = Service::start(Some(server.url())).await;
    let address = service.address;

    let mut order = TcpStream::connect(address).await.unwrap();
    let request = b"POST /orders/lamp HTTP/1.1\r\nHost: shop\r\n\r\n";
    order.write_all(request).await.unwrap();
    eventually(PATIENCE, async || {
        others.status("stock:lamp").await.unwrap().is_held()
    })
    .await;
    service.interrupt().await;

    let mut answer = String::new();
    within(PATIENCE, order.read_to_string(&mut answer))
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!others.status("stock:lamp").await.unwrap().is_held());
}
