//! Where a server is, and how a stream to it is opened.

use std::fmt;
use std::io;
use std::time::Duration;

use super::backoff::first_attempt;
use super::stream::{Stream, tcp};
#[cfg(feature = "tls")]
use super::tls::Encryption;
use crate::backend::setup::Setup;
use crate::types::authority::Host;
#[cfg(feature = "tls")]
use crate::types::tls::Tls;

/// What a connection is made to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp(Host),
    #[cfg(feature = "tls")]
    Tls(Host),
    #[cfg(all(unix, feature = "redis"))]
    Unix(String),
}

impl Endpoint {
    /// A port of a host.
    #[cfg_attr(
        not(feature = "tls"),
        expect(unused_variables, reason = "nothing is encrypted")
    )]
    pub(crate) fn at(host: Host, encrypted: bool) -> Self {
        #[cfg(feature = "tls")]
        if encrypted {
            return Self::Tls(host);
        }
        Self::Tcp(host)
    }

    /// The host, if the connection to it is encrypted.
    #[cfg(feature = "redis")]
    pub(crate) fn encrypted_host(&self) -> Option<&str> {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(host) => Some(&host.name),
            _ => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host) => host.fmt(f),
            #[cfg(feature = "tls")]
            Self::Tls(host) => host.fmt(f),
            #[cfg(all(unix, feature = "redis"))]
            Self::Unix(path) => f.write_str(path),
        }
    }
}

/// An endpoint, and what a connection to it needs.
#[derive(Clone)]
pub(crate) struct Route {
    endpoint: Endpoint,
    timeout: Duration,
    #[cfg(feature = "tls")]
    tls: Tls,
}

/// What a protocol wants of its streams.
#[derive(Clone, Copy, Default)]
pub(crate) struct StreamOptions {
    /// How TLS names the protocol, where servers ask for that.
    #[cfg_attr(not(feature = "tls"), allow(dead_code))]
    pub(crate) alpn: Option<&'static str>,
    /// Whether a dropped stream discards what it has not sent. Elsewhere that may be a farewell,
    /// which is to arrive.
    pub(crate) discards_unsent: bool,
}

impl Route {
    pub(crate) fn new(endpoint: Endpoint, setup: &Setup) -> Self {
        Self {
            endpoint,
            timeout: first_attempt(setup.connect_timeout),
            #[cfg(feature = "tls")]
            tls: setup.tls.clone().unwrap_or_default(),
        }
    }

    /// The same way to another host.
    #[cfg(feature = "redis")]
    pub(crate) fn to(&self, host: &Host) -> Self {
        Self {
            endpoint: Endpoint::at(host.clone(), self.is_encrypted()),
            ..self.clone()
        }
    }

    #[cfg(any(feature = "etcd", feature = "redis"))]
    pub(crate) fn is_encrypted(&self) -> bool {
        #[cfg(feature = "tls")]
        return matches!(self.endpoint, Endpoint::Tls(_));
        #[cfg(not(feature = "tls"))]
        false
    }

    pub(crate) async fn open(&self, options: StreamOptions) -> io::Result<Box<dyn Stream>> {
        let host = match &self.endpoint {
            Endpoint::Tcp(host) => host,
            #[cfg(feature = "tls")]
            Endpoint::Tls(host) => host,
            #[cfg(all(unix, feature = "redis"))]
            Endpoint::Unix(path) => {
                return Ok(Box::new(tokio::net::UnixStream::connect(path).await?));
            }
        };
        // Not more, however long the attempt may take: the name may lead elsewhere by now.
        let socket = tokio::time::timeout(self.timeout, tcp(host)).await;
        let socket = socket.map_err(|_| silent())??;
        if options.discards_unsent {
            socket.set_zero_linger()?;
        }
        #[cfg(feature = "tls")]
        if self.is_encrypted() {
            let encryption = Encryption::read(&self.tls, &host.name, options.alpn).await?;
            return Ok(Box::new(encryption.over(socket).await?));
        }
        Ok(Box::new(socket))
    }

    /// What to say of a server that does not answer.
    pub(crate) fn silence(&self) -> &'static str {
        match self.endpoint {
            #[cfg(feature = "tls")]
            Endpoint::Tls(_) => {
                "the server did not answer in time: perhaps it does not encrypt on this port"
            }
            _ => "the server did not answer in time",
        }
    }
}

fn silent() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the server did not answer in time")
}
