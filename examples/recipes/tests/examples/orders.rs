//! Drives the web service over HTTP while its Redis server comes and goes.

use lock_runtime::LockManager;
use tests::{RedisServer, eventually, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::service::{Service, TIME_LIMIT};

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
        let (last, _) = service.stop("INT").await;
        assert_eq!(last, "all orders are finished, all locks released");
    }
}

#[tokio::test]
async fn each_order_is_logged_as_its_two_spans() {
    let service = Service::start(None).await;
    assert_eq!(service.order("lamp").await.0, 200);
    let (_, log) = service.stop("INT").await;
    let wait = log
        .lines()
        .find(|line| line.contains("lock.wait{"))
        .unwrap();
    let hold = log
        .lines()
        .find(|line| line.contains("lock.hold{"))
        .unwrap();
    for field in [
        "lock.key",
        "lock.template",
        "lock.fencing_token",
        "code.function.name",
    ] {
        assert!(wait.contains(field) && hold.contains(field), "{log}");
    }
    assert!(wait.contains(r#"lock.outcome="granted""#), "{wait}");
    assert!(hold.contains(r#"lock.outcome="finished""#), "{hold}");
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
    let (status, answer) = service.order(&"lamp".repeat(300)).await;
    assert!(
        status == 400
            && answer.ends_with("\r\n\r\na value in this request is missing or too long\n"),
        "{answer}"
    );

    server.kill().await;
    let (status, answer) = service.order("lamp").await;
    assert!(
        status == 503 && answer.contains("retry-after: "),
        "{answer}"
    );
    assert_eq!(service.ask("GET /ready").await.0, 503);

    server.restart().await;
    eventually(TIME_LIMIT, async || {
        service.ask("GET /ready").await.0 == 200
    })
    .await;
    assert_eq!(service.order("lamp").await.0, 200);
}

#[tokio::test]
async fn an_order_that_has_begun_is_finished_at_the_end() {
    let server = RedisServer::start().await;
    let others = LockManager::connect(server.url()).await.unwrap();
    for signal in ["INT", "TERM"] {
        let service = Service::start(Some(server.url())).await;
        let address = service.address;

        let mut order = TcpStream::connect(address).await.unwrap();
        let request = b"POST /orders/lamp HTTP/1.1\r\nHost: shop\r\n\r\n";
        order.write_all(request).await.unwrap();
        eventually(TIME_LIMIT, async || {
            others.status("stock:lamp").await.unwrap().is_held()
        })
        .await;
        service.stop(signal).await;

        let mut answer = String::new();
        within(TIME_LIMIT, order.read_to_string(&mut answer))
            .await
            .unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(!others.status("stock:lamp").await.unwrap().is_held());
    }
}
