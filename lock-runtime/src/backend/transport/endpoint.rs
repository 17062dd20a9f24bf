//! The address of a server, and the stream to it.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::net::TcpStream;

use super::backoff::first_attempt;
#[cfg(feature = "tls")]
use super::distrust::Distrust;
use super::stream::{Stream, tcp};
#[cfg(feature = "tls")]
use super::tls::Encryption;
use crate::backend::setup::Setup;
use crate::types::authority::Host;
#[cfg(feature = "tls")]
use crate::types::tls::Tls;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp {
        host: Host,
        encrypted: bool,
    },
    #[cfg(unix)]
    Unix(String),
}

impl Endpoint {
    /// The host, if the connection to it is encrypted.
    pub(crate) fn encrypted_host(&self) -> Option<&str> {
        match self {
            Self::Tcp { host, encrypted } => encrypted.then_some(&host.name),
            #[cfg(unix)]
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, .. } => host.fmt(f),
            #[cfg(unix)]
            Self::Unix(path) => f.write_str(path),
        }
    }
}

/// An endpoint with the settings of its connections.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) endpoint: Endpoint,
    timeout: Duration,
    #[cfg(feature = "tls")]
    tls: Tls,
}

/// The options of a stream, which depend on the protocol.
#[derive(Clone, Copy, Default)]
pub(crate) struct StreamOptions {
    /// The name of the protocol in TLS, if servers ask for it.
    pub(crate) alpn: Option<&'static str>,
    /// Whether a dropped stream discards unsent bytes. It must not if they may be a farewell
    /// that ends a session.
    pub(crate) discards_unsent: bool,
    /// The request for encryption, if a server speaks its protocol in the clear at first.
    pub(crate) upgrade: Option<&'static Upgrade>,
}

/// The request for encryption, and the byte with which a server agrees.
pub(crate) struct Upgrade {
    pub(crate) request: &'static [u8],
    pub(crate) consent: u8,
    /// The error text for any other byte.
    pub(crate) refused: &'static str,
}

#[cfg(feature = "tls")]
impl Upgrade {
    async fn ask(&self, socket: &TcpStream) -> io::Result<()> {
        let mut unwritten = self.request;
        while !unwritten.is_empty() {
            socket.writable().await?;
            unwritten = &unwritten[at_once(socket.try_write(unwritten))?.unwrap_or(0)..];
        }
        // Not a byte more: what follows is encrypted.
        let mut answer = [0];
        loop {
            socket.readable().await?;
            match at_once(socket.try_read(&mut answer))? {
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(_) if answer == [self.consent] => return Ok(()),
                Some(_) => return Err(io::Error::other(Distrust::because(self.refused))),
                None => {}
            }
        }
    }
}

/// `None` if it would have to wait after all.
#[cfg(feature = "tls")]
fn at_once(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        result => result.map(Some),
    }
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

    /// To a port of a host.
    pub(crate) fn tcp(host: &Host, encrypted: bool, setup: &Setup) -> Self {
        let host = host.clone();
        Self::new(Endpoint::Tcp { host, encrypted }, setup)
    }

    /// The same way to another host.
    pub(crate) fn to(&self, host: Host) -> Self {
        let encrypted = self.is_encrypted();
        Self {
            endpoint: Endpoint::Tcp { host, encrypted },
            ..self.clone()
        }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.endpoint.encrypted_host().is_some()
    }

    pub(crate) async fn open(&self, options: StreamOptions) -> io::Result<Box<dyn Stream>> {
        #[cfg(unix)]
        if let Endpoint::Unix(path) = &self.endpoint {
            return Ok(Box::new(tokio::net::UnixStream::connect(path).await?));
        }
        let socket = self.socket(options.discards_unsent).await?;
        #[cfg(feature = "tls")]
        if self.is_encrypted() {
            if let Some(upgrade) = options.upgrade {
                upgrade.ask(&socket).await?;
            }
            return self.encrypt(socket, options.alpn).await;
        }
        Ok(Box::new(socket))
    }

    /// A socket to a port of the host, before anything is said over it.
    pub(crate) async fn socket(&self, discards_unsent: bool) -> io::Result<TcpStream> {
        let host = match &self.endpoint {
            Endpoint::Tcp { host, .. } => host,
            #[cfg(unix)]
            Endpoint::Unix(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        // This limit does not grow with that of the attempt: by the next one, the name may lead
        // to another server.
        let socket = tokio::time::timeout(self.timeout, tcp(host)).await;
        let socket =
            socket.map_err(|_| io::Error::other("the server did not answer in time"))??;
        if discards_unsent {
            socket.set_zero_linger()?;
        }
        Ok(socket)
    }

    /// Encrypts what goes over a socket from now on.
    #[cfg(feature = "tls")]
    pub(crate) async fn encrypt(
        &self,
        socket: TcpStream,
        alpn: Option<&'static str>,
    ) -> io::Result<Box<dyn Stream>> {
        let host = self.endpoint.encrypted_host().unwrap_or_default();
        let encryption = Encryption::read(&self.tls, host, alpn).await?;
        Ok(Box::new(encryption.over(socket).await?))
    }

    /// The error text for a server that does not answer.
    pub(crate) fn silence(&self) -> &'static str {
        if self.is_encrypted() {
            "the server did not answer in time: perhaps it does not encrypt on this port"
        } else {
            "the server did not answer in time"
        }
    }
}
