//! The socket of a connection, encrypted or not.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;

#[cfg(feature = "tls")]
use super::tls::Encryption;
use crate::backend::redis::address::Place;
use crate::backend::setup::Setup;
#[cfg(feature = "tls")]
use crate::vocabulary::tls::Tls;

/// A stream of bytes.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// How bytes get to a server.
#[derive(Clone)]
pub(crate) enum Route {
    Tcp(String, u16),
    #[cfg(feature = "tls")]
    Tls(String, u16, Tls),
    #[cfg(unix)]
    Unix(String),
}

impl Route {
    #[cfg_attr(
        not(feature = "tls"),
        expect(unused_variables, reason = "only certificates are set up")
    )]
    pub(crate) fn new(place: &Place, setup: &Setup) -> Self {
        match place {
            Place::Tcp { host, port } => Self::Tcp(host.clone(), *port),
            #[cfg(feature = "tls")]
            Place::Tls { host, port } => {
                Self::Tls(host.clone(), *port, setup.tls.clone().unwrap_or_default())
            }
            #[cfg(unix)]
            Place::Unix(path) => Self::Unix(path.clone()),
        }
    }

    pub(crate) async fn open(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Tcp(host, port) => Ok(Box::new(tcp(host, *port).await?)),
            #[cfg(feature = "tls")]
            Self::Tls(host, port, tls) => {
                let encryption = Encryption::read(tls, host).await?;
                Ok(Box::new(encryption.over(tcp(host, *port).await?).await?))
            }
            #[cfg(unix)]
            Self::Unix(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
        }
    }

    /// What to say of a server that does not answer.
    pub(crate) fn silence(&self) -> &'static str {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(..) => {
                "the server did not answer in time: perhaps it does not encrypt on this port"
            }
            _ => "the server did not answer in time",
        }
    }
}

/// Connects to the first of a host's addresses that answers: a silent one must not hold
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
                // A command that is still buffered dies with a dropped connection.
                stream.set_zero_linger()?;
                return Ok(stream);
            }
            Err(failed) => error = failed,
        }
    }
    Err(error)
}
