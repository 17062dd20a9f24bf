//! The socket of a connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;

use crate::types::authority::Host;

/// A stream of bytes, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Writes some of these bytes, and returns how many: none if no more can be written now.
pub(crate) fn write(
    stream: &mut dyn Stream,
    cx: &mut Context<'_>,
    bytes: &[u8],
) -> io::Result<usize> {
    match Pin::new(&mut *stream).poll_write(cx, bytes) {
        Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
        Poll::Ready(written) => written,
        Poll::Pending => Ok(0),
    }
}

/// Writes what was kept until now: encryption keeps what fills no record.
pub(crate) fn flush(stream: &mut dyn Stream, cx: &mut Context<'_>) -> io::Result<()> {
    match Pin::new(&mut *stream).poll_flush(cx) {
        Poll::Ready(result) => result,
        Poll::Pending => Ok(()),
    }
}

/// How many chunks are read in a row: a server that never pauses would keep the thread, and fill
/// the memory.
const IN_A_ROW: usize = 128;

/// Reads what has arrived. If there is more, wakes to go on.
pub(crate) fn read(
    stream: &mut dyn Stream,
    cx: &mut Context<'_>,
    mut take: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut chunk = [0; 8192];
    for _ in 0..IN_A_ROW {
        let mut buffer = ReadBuf::new(&mut chunk);
        match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                return Err(io::Error::other("the server closed the connection"));
            }
            Poll::Ready(Ok(())) => take(buffer.filled()),
            Poll::Ready(Err(error)) => return Err(error),
            Poll::Pending => return Ok(()),
        }
    }
    cx.waker().wake_by_ref();
    Ok(())
}

/// How long a connection is silent before the system asks whether the other end is there, and how long it waits for the
/// answer before it asks again. Routers forget a connection on which nothing has come for some minutes.
const SILENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(5);

/// Connects to the first of a host's addresses that answers: a silent one must not hold
/// up the others.
pub(super) async fn tcp(host: &Host) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    for address in lookup_host((&*host.name, host.port)).await? {
        attempts.spawn(TcpStream::connect(address));
    }
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    while let Some(attempt) = attempts.join_next().await {
        match attempt? {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                let keepalive = TcpKeepalive::new().with_time(SILENCE).with_interval(AGAIN);
                SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
                return Ok(stream);
            }
            Err(failed) => error = failed,
        }
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Wake, Waker};

    use super::*;

    /// Always has more to say.
    struct Endless;

    impl AsyncRead for Endless {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            buffer.put_slice(&[7; 8192]);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Endless {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn the_system_notices_a_silent_connection_that_has_broken() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let name = "127.0.0.1".into();
        let stream = tcp(&Host { name, port }).await.expect("a connection");
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().expect("an option"));
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_keepalive_time().expect("an option"), SILENCE);
    }

    #[test]
    fn a_server_that_never_pauses_does_not_keep_the_thread() {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut read_bytes = 0;
        let read = read(&mut Endless, &mut Context::from_waker(&waker), |bytes| {
            read_bytes += bytes.len();
        });
        assert!(read.is_ok());
        assert_eq!(read_bytes, IN_A_ROW * 8192);
        assert!(woken.0.load(Ordering::SeqCst));
    }
}
