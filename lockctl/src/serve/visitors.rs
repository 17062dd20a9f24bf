//! Who is connected to the page: not too many, and nobody for long whom nothing is sent to.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// How many connections may be open.
const MOST: usize = 256;
/// How long a connection stays open without a byte of an answer: a request that is sent in
/// part gets none, however slowly the rest arrives. Pages are sent something more often.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

/// Accepts connections while there are not too many.
#[derive(Debug)]
pub(super) struct Visitors {
    listener: TcpListener,
    silence: Duration,
    room: Arc<Semaphore>,
}

impl Visitors {
    pub(super) fn new(listener: TcpListener, silence: Duration) -> Self {
        let room = Arc::new(Semaphore::new(MOST));
        Self {
            listener,
            silence,
            room,
        }
    }
}

impl Listener for Visitors {
    type Io = Visit;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visit, SocketAddr) {
        // Nobody closes the semaphore.
        let room = Arc::clone(&self.room).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let visit = Visit {
            stream,
            silence: self.silence,
            over: Box::pin(sleep(self.silence)),
            _room: room,
        };
        (visit, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Visit {
    stream: TcpStream,
    silence: Duration,
    over: Pin<Box<Sleep>>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Visit {
    fn has_written(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(1..)) = written {
            self.over.as_mut().reset(Instant::now() + self.silence);
        }
    }
}

impl AsyncRead for Visit {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Visit {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.has_written(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.has_written(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_request_that_is_sent_in_part_ends_however_slowly_the_rest_arrives() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let visitors = Visitors::new(listener, Duration::from_millis(300));
        let router = Router::new().route("/", get(async || "here"));
        tokio::spawn(async { axum::serve(visitors, router).await });

        let mut slow = TcpStream::connect(address).await.expect("it listens");
        slow.write_all(b"GET / HTTP/1.1\r\n").await.expect("sent");
        let dribble = async {
            while slow.write_all(b"a: b\r\n").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(20), dribble).await;
        ended.expect("it is open for ever");

        let mut quick = TcpStream::connect(address).await.expect("it listens");
        let request = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        quick.write_all(request).await.expect("sent");
        let mut answer = String::new();
        let read = quick.read_to_string(&mut answer).await;
        read.expect("an answer");
        assert!(answer.ends_with("here"), "{answer}");
    }
}
