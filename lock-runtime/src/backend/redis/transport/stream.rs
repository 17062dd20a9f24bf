//! The way to a server: its socket, encrypted or not.

#[cfg(feature = "tls")]
use std::error::Error as _;
use std::io;

use tokio::net::TcpStream;

use crate::backend::redis::address::Place;
use crate::backend::setup::Setup;
use crate::backend::transport::stream::{Stream, tcp};
#[cfg(feature = "tls")]
use crate::backend::transport::tls::{Distrust, Encryption};
use crate::types::authority::Host;
#[cfg(feature = "tls")]
use crate::types::error::Cause;
#[cfg(feature = "tls")]
use crate::types::tls::Tls;

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

    /// The same way to another host.
    pub(crate) fn to(&self, host: &Host) -> Self {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(_, _, tls) => Self::Tls(host.name.clone(), host.port, tls.clone()),
            _ => Self::Tcp(host.name.clone(), host.port),
        }
    }

    pub(crate) async fn open(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Tcp(host, port) => Ok(Box::new(without_linger(host, *port).await?)),
            #[cfg(feature = "tls")]
            Self::Tls(host, port, tls) => {
                let encryption = Encryption::read(tls, host).await?;
                Ok(Box::new(
                    encryption.over(without_linger(host, *port).await?).await?,
                ))
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

/// A command that is still buffered dies with a dropped connection.
async fn without_linger(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = tcp(host, port).await?;
    stream.set_zero_linger()?;
    Ok(stream)
}

/// Why client and server do not trust each other, if that is what went wrong.
#[cfg(feature = "tls")]
pub(crate) fn distrust(error: &redis::RedisError) -> Option<Distrust> {
    // The client library hands out the pointer in which it keeps the error.
    let error = error.source()?.downcast_ref::<Cause>()?;
    Distrust::find(error.downcast_ref()?)
}
