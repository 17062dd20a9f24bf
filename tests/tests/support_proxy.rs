//! The proxy passes, delays, holds, cuts and refuses, each way by itself and while it runs.

use std::{io, net::SocketAddr, time::Duration};

use tests::{Proxy, Verdict, within};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::Instant,
};

const SOON: Duration = Duration::from_secs(5);

/// Long enough to differ from a prompt answer on a busy machine.
const DELAY: Duration = Duration::from_millis(300);

/// A server that answers every byte with the same byte.
async fn echo_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
    });
    addr
}

async fn connect(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(proxy.addr()).await.expect("connected")
}

async fn say(stream: &mut TcpStream, byte: u8) {
    stream.write_u8(byte).await.expect("sent");
}

async fn hear(stream: &mut TcpStream) -> io::Result<u8> {
    within(SOON, stream.read_u8()).await
}

#[tokio::test]
async fn passes_bytes_and_the_end_both_ways() {
    let proxy = Proxy::start(echo_server().await);
    let mut stream = connect(&proxy).await;
    say(&mut stream, 7).await;
    assert_eq!(hear(&mut stream).await.expect("an answer"), 7);

    stream.shutdown().await.expect("closed one way");
    let mut rest = Vec::new();
    let read = within(SOON, stream.read_to_end(&mut rest)).await;
    assert_eq!(read.expect("an orderly end"), 0);
}

#[tokio::test]
async fn holds_one_way_until_released() {
    let proxy = Proxy::start(echo_server().await);
    let mut stream = connect(&proxy).await;
    for direction in [proxy.requests(), proxy.replies()] {
        direction.hold();
        say(&mut stream, 1).await;
        within(SOON, direction.held()).await;
        let kept = tokio::time::timeout(DELAY, stream.read_u8()).await;
        assert!(kept.is_err(), "held bytes came through");

        direction.pass();
        assert_eq!(hear(&mut stream).await.expect("an answer"), 1);
    }
}

#[tokio::test]
async fn held_speaks_of_the_last_hold_only() {
    let proxy = Proxy::start(echo_server().await);
    let mut stream = connect(&proxy).await;
    proxy.replies().hold();
    say(&mut stream, 1).await;
    within(SOON, proxy.replies().held()).await;
    proxy.replies().pass();
    hear(&mut stream).await.expect("an answer");

    proxy.replies().hold();
    let nothing = tokio::time::timeout(DELAY, proxy.replies().held()).await;
    assert!(nothing.is_err(), "nothing has arrived since");
}

#[tokio::test]
async fn a_delay_makes_every_byte_late_but_not_the_later_ones_later() {
    let proxy = Proxy::start(echo_server().await);
    proxy.replies().delay(DELAY);
    let mut stream = connect(&proxy).await;
    let start = Instant::now();
    for byte in 0..10 {
        say(&mut stream, byte).await;
        tokio::task::yield_now().await;
    }
    for byte in 0..10 {
        assert_eq!(hear(&mut stream).await.expect("an answer"), byte);
    }
    let taken = start.elapsed();
    assert!(taken >= DELAY, "too early: {taken:?}");
    assert!(taken < 5 * DELAY, "the delays added up: {taken:?}");
}

#[tokio::test]
async fn a_cut_closes_what_is_open_and_welcomes_what_is_new() {
    let proxy = Proxy::start(echo_server().await);
    let mut stream = connect(&proxy).await;
    proxy.replies().hold();
    say(&mut stream, 1).await;
    within(SOON, proxy.replies().held()).await;
    proxy.cut().await;
    proxy.replies().pass();
    assert!(hear(&mut stream).await.is_err(), "the held byte is lost");

    let mut stream = connect(&proxy).await;
    say(&mut stream, 2).await;
    assert_eq!(hear(&mut stream).await.expect("an answer"), 2);
}

#[tokio::test]
async fn refuses_new_connections_and_keeps_the_open_ones() {
    let mut proxy = Proxy::start(echo_server().await);
    let mut stream = connect(&proxy).await;
    say(&mut stream, 1).await;
    hear(&mut stream).await.expect("an answer");

    proxy.refuse().await;
    let refused = TcpStream::connect(proxy.addr()).await.map(|_| ());
    let kind = refused.expect_err("nobody listens").kind();
    assert_eq!(kind, io::ErrorKind::ConnectionRefused);
    say(&mut stream, 2).await;
    assert_eq!(hear(&mut stream).await.expect("an answer"), 2);

    proxy.admit();
    let mut stream = connect(&proxy).await;
    say(&mut stream, 3).await;
    assert_eq!(hear(&mut stream).await.expect("an answer"), 3);
}

/// Looks for a byte and says what becomes of it.
fn at(byte: u8, verdict: Verdict) -> impl Fn(&mut Vec<u8>) -> Verdict {
    move |bytes| {
        if bytes.contains(&byte) {
            verdict
        } else {
            Verdict::Pass
        }
    }
}

#[tokio::test]
async fn breaks_at_a_message_or_loses_its_answer() {
    let server = echo_server().await;
    for verdict in [Verdict::BreakBefore, Verdict::BreakAfter] {
        let proxy = Proxy::start(server);
        proxy.requests().inspect(at(7, verdict));
        let mut stream = connect(&proxy).await;
        say(&mut stream, 1).await;
        assert_eq!(hear(&mut stream).await.expect("an answer"), 1);
        say(&mut stream, 7).await;
        assert!(hear(&mut stream).await.is_err(), "the connection breaks");
    }

    let proxy = Proxy::start(server);
    proxy.requests().inspect(at(7, Verdict::Unanswered));
    let mut stream = connect(&proxy).await;
    for byte in [7, 1] {
        say(&mut stream, byte).await;
        let answer = tokio::time::timeout(DELAY, stream.read_u8()).await;
        assert!(answer.is_err(), "nothing is heard any more");
    }
    proxy.requests().ignore();
    let mut stream = connect(&proxy).await;
    say(&mut stream, 7).await;
    assert_eq!(hear(&mut stream).await.expect("an answer"), 7);
}

#[tokio::test]
async fn changes_what_goes_through_and_carries_it_in_pieces() {
    let proxy = Proxy::start(echo_server().await);
    proxy.requests().piecemeal(Some(1));
    proxy.replies().inspect(|bytes| {
        for byte in bytes {
            *byte += 1;
        }
        Verdict::Pass
    });
    let mut stream = connect(&proxy).await;
    stream.write_all(&[1, 2, 3]).await.expect("sent");
    for byte in [2, 3, 4] {
        assert_eq!(hear(&mut stream).await.expect("an answer"), byte);
    }
}
