//! The socket of a connection.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;

use crate::types::authority::Host;

/// A stream of bytes, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

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
