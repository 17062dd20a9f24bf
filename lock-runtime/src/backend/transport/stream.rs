//! The socket of a connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

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

/// Reads all that has arrived.
pub(crate) fn read(
    stream: &mut dyn Stream,
    cx: &mut Context<'_>,
    mut take: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut chunk = [0; 8192];
    loop {
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
}

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
                return Ok(stream);
            }
            Err(failed) => error = failed,
        }
    }
    Err(error)
}
