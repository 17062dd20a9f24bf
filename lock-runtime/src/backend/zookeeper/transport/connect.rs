//! Opens one connection to one of the servers, and asks for the session.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::logins::Logins;
use super::wire::Wire;
use crate::backend::setup::Setup;
use crate::backend::transport::stream::{Stream, tcp};
#[cfg(feature = "tls")]
use crate::backend::transport::tls::Encryption;
use crate::backend::zookeeper::address::Address;
use crate::backend::zookeeper::protocol::connect::{
    Identity, Welcome, hello, logged_in, login, welcome,
};
use crate::backend::zookeeper::protocol::op::Access;
use crate::base::clock::{Clock, Moment};
use crate::types::authority::Host;
use crate::types::credentials::{Credentials, Provider};
use crate::types::error::Cause;
#[cfg(feature = "tls")]
use crate::types::tls::Tls;

/// The way to the servers.
#[derive(Clone)]
pub(crate) struct Dialer {
    /// In an order of this manager's own, so that not all ask the same server.
    hosts: Vec<Route>,
    login: Option<Credentials>,
    provider: Option<Provider>,
    logins: Logins,
    /// What is asked for.
    session_timeout: Duration,
    timeout: Duration,
    longest: Duration,
    clock: Clock,
}

#[derive(Clone)]
struct Route {
    host: Host,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

/// An open connection.
pub(crate) struct Opened {
    pub(super) wire: Wire,
    pub(crate) welcome: Welcome,
    /// From when the session's timeout counts: before it was asked for.
    pub(crate) sent: Moment,
}

impl Dialer {
    pub(crate) fn new(address: &Address, setup: &Setup) -> Self {
        #[cfg(feature = "tls")]
        let tls = address
            .encrypted
            .then(|| setup.tls.clone().unwrap_or_default());
        let hosts = address.hosts.iter().map(|host| Route {
            host: host.clone(),
            #[cfg(feature = "tls")]
            tls: tls.clone(),
        });
        let mut hosts: Vec<_> = hosts.collect();
        fastrand::shuffle(&mut hosts);
        Self {
            hosts,
            login: address.login(),
            provider: setup.credentials.clone(),
            logins: Logins::default(),
            session_timeout: setup.ttl,
            // The time allows several attempts.
            timeout: setup.connect_timeout / 5,
            longest: setup.connect_timeout,
            clock: setup.clock.clone(),
        }
    }

    /// Gives the next attempt more time, the more `rounds` of all servers have failed in
    /// turn.
    pub(crate) fn more_patient(mut self, rounds: usize) -> Self {
        let timeout = self.timeout.saturating_mul(1 << rounds.min(8));
        self.timeout = timeout.min(self.longest);
        self
    }

    pub(crate) fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// How long a session is asked for.
    pub(crate) fn session_timeout(&self) -> Duration {
        self.session_timeout
    }

    /// What each server answers to a word of four letters, which needs no session.
    pub(crate) async fn say(&self, word: &str) -> Vec<(Host, io::Result<String>)> {
        let mut answers = Vec::new();
        for route in &self.hosts {
            let said = tokio::time::timeout(self.timeout, route.say(word)).await;
            let silent = |_| Err(io::Error::other("it did not answer in time"));
            answers.push((route.host.clone(), said.unwrap_or_else(silent)));
        }
        answers.sort_by_key(|(host, _)| host.to_string());
        answers
    }

    /// Whom the nodes let in that this manager creates.
    pub(crate) fn access(&self) -> Access {
        if self.login.is_some() || self.provider.is_some() {
            Access::Creator
        } else {
            Access::Everybody
        }
    }

    /// Opens a connection to the server of a number, within `patience` if that is less
    /// than a connection may take anyway.
    pub(crate) async fn open(
        self,
        number: usize,
        session: Option<Identity>,
        seen: i64,
        patience: Duration,
    ) -> Result<Opened, Cause> {
        let logins = self.credentials(patience).await?;
        let route = &self.hosts[number % self.hosts.len()];
        let opening = self.open_unbounded(route, &logins, session, seen);
        let opened = tokio::time::timeout(self.timeout.min(patience), opening).await;
        let error = match opened {
            Ok(Ok(opened)) => return Ok(opened),
            Ok(Err(error)) => error,
            Err(_) => io::Error::other("it did not answer in time"),
        };
        #[cfg(feature = "tls")]
        if let Some(distrust) = crate::backend::transport::tls::Distrust::find(&error) {
            return Err(Arc::new(distrust));
        }
        Err(Arc::new(io::Error::new(
            error.kind(),
            format!("{}: {error}", route.host),
        )))
    }

    /// Those to log in with; where the provider fails or is silent, those that are known.
    async fn credentials(&self, patience: Duration) -> Result<Vec<Credentials>, Cause> {
        let Some(provider) = &self.provider else {
            return Ok(self.login.iter().cloned().collect());
        };
        let known = self.logins.known();
        if known.is_empty() {
            return Ok(self.logins.learned(provider.ask().await?));
        }
        let asked = tokio::time::timeout(self.timeout.min(patience), provider.ask()).await;
        Ok(match asked {
            Ok(Ok(latest)) => self.logins.learned(latest),
            Ok(Err(_)) | Err(_) => known,
        })
    }

    async fn open_unbounded(
        &self,
        route: &Route,
        logins: &[Credentials],
        session: Option<Identity>,
        seen: i64,
    ) -> io::Result<Opened> {
        let mut wire = Wire::new(route.open().await?);
        let sent = self.clock.now();
        let hello = hello(session.as_ref(), self.session_timeout, seen);
        wire.send(&hello);
        let welcome = welcome(&wire.next_packet().await?).map_err(io::Error::other)?;
        if welcome.identity.is_some() {
            log_in(&mut wire, logins).await?;
        }
        Ok(Opened {
            wire,
            welcome,
            sent,
        })
    }
}

async fn log_in(wire: &mut Wire, logins: &[Credentials]) -> io::Result<()> {
    for credentials in logins {
        let user = credentials.user.as_deref().unwrap_or_default();
        wire.send(&login(user, &credentials.password));
    }
    for _ in logins {
        let error = logged_in(&wire.next_packet().await?).map_err(io::Error::other)?;
        if error != 0 {
            return Err(io::Error::other("it refuses the user's password"));
        }
    }
    Ok(())
}

impl Route {
    async fn open(&self) -> io::Result<Box<dyn Stream>> {
        let (host, port) = (&self.host.name, self.host.port);
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let encryption = Encryption::read(tls, host).await?;
            return Ok(Box::new(encryption.over(tcp(host, port).await?).await?));
        }
        Ok(Box::new(tcp(host, port).await?))
    }

    async fn say(&self, word: &str) -> io::Result<String> {
        let mut stream = self.open().await?;
        stream.write_all(word.as_bytes()).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer).await {
            // An encrypted connection may end without a farewell.
            Err(error) if answer.is_empty() => Err(error),
            _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
        }
    }
}
