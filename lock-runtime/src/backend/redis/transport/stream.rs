//! The socket of a connection.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;

use crate::backend::redis::address::Place;

/// What bytes go over.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(crate) async fn open(place: &Place) -> io::Result<Box<dyn Stream>> {
    match place {
        Place::Tcp { host, port } => Ok(Box::new(tcp(host, *port).await?)),
        #[cfg(unix)]
        Place::Unix(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
    }
}

/// The first of a host's addresses that answers: one that does not must not hold
/// up the others.
async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    for address in lookup_host((host, port)).await? {
        attempts.spawn(TcpStream::connect(address));
    }
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    while let Some(attempt) = attempts.join_next().await {
        match attempt? {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                // A late command of a connection that was dropped dies with it.
                stream.set_zero_linger()?;
                return Ok(stream);
            }
            Err(failed) => error = failed,
        }
    }
    Err(error)
}
