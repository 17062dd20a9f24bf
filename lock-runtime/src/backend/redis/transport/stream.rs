//! The way to a server: its socket, encrypted or not.

use std::io;

use tokio::net::TcpStream;

use crate::backend::redis::address::Place;
use crate::backend::setup::Setup;
use crate::backend::transport::stream::{Stream, tcp};
#[cfg(feature = "tls")]
use crate::backend::transport::tls::Encryption;
use crate::vocabulary::error::LockError;

/// How bytes get to a server.
#[derive(Clone)]
pub(crate) enum Route {
    Tcp(String, u16),
    #[cfg(feature = "tls")]
    Tls(String, u16, Encryption),
    #[cfg(unix)]
    Unix(String),
}

impl Route {
    #[cfg_attr(
        not(feature = "tls"),
        expect(
            unused_variables,
            clippy::unnecessary_wraps,
            reason = "only certificates are set up, and can be wrong"
        )
    )]
    pub(crate) fn new(place: &Place, setup: &Setup) -> Result<Self, LockError> {
        Ok(match place {
            Place::Tcp { host, port } => Self::Tcp(host.clone(), *port),
            #[cfg(feature = "tls")]
            Place::Tls { host, port } => {
                let tls = setup.tls.clone().unwrap_or_default();
                Self::Tls(host.clone(), *port, Encryption::new(&tls, host)?)
            }
            #[cfg(unix)]
            Place::Unix(path) => Self::Unix(path.clone()),
        })
    }

    pub(crate) async fn open(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Tcp(host, port) => Ok(Box::new(without_linger(host, *port).await?)),
            #[cfg(feature = "tls")]
            Self::Tls(host, port, encryption) => Ok(Box::new(
                encryption.over(without_linger(host, *port).await?).await?,
            )),
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

/// A command that is still buffered dies with a dropped connection.
async fn without_linger(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = tcp(host, port).await?;
    stream.set_zero_linger()?;
    Ok(stream)
}
