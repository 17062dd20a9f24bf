//! The way to a server: its socket, encrypted or not.

use std::io;

use crate::backend::redis::address::Place;
use crate::backend::setup::Setup;
use crate::backend::transport::stream::{Stream, tcp};
#[cfg(feature = "tls")]
use crate::backend::transport::tls::Encryption;
#[cfg(feature = "tls")]
use crate::vocabulary::tls::Tls;

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
