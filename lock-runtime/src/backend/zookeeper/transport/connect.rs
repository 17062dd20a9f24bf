//! Opens one connection to one of the servers, and asks for the session.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::logins::AllLogins;
use super::wire::Wire;
use crate::backend::setup::Setup;
use crate::backend::transport::backoff::first_attempt;
use crate::backend::transport::distrust::Distrust;
use crate::backend::transport::endpoint::{Route, StreamOptions};
use crate::backend::transport::logins::Logins;
use crate::backend::zookeeper::address::Address;
use crate::backend::zookeeper::protocol::connect::{
    Identity, Welcome, hello, logged_in, login, welcome,
};
use crate::backend::zookeeper::protocol::op::Access;
use crate::base::clock::{Clock, Moment};
use crate::types::credentials::Credentials;
use crate::types::error::Cause;

/// The way to the servers.
#[derive(Clone)]
pub(crate) struct Dialer {
    /// In an order of this manager's own, so that not all ask the same server.
    servers: Vec<Route>,
    logins: AllLogins,
    /// The requested time.
    session_timeout: Duration,
    pub(super) connect_timeout: Duration,
    clock: Clock,
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
        let server = |host| Route::tcp(host, address.encrypted, setup);
        let mut servers: Vec<_> = address.hosts.iter().map(server).collect();
        fastrand::shuffle(&mut servers);
        Self {
            servers,
            logins: AllLogins::new(Logins::new(address.login(), setup)),
            session_timeout: setup.ttl,
            connect_timeout: setup.connect_timeout,
            clock: setup.clock.clone(),
        }
    }

    /// How many servers there are.
    pub(super) fn servers(&self) -> usize {
        self.servers.len()
    }

    /// How long a session is asked for.
    pub(crate) fn session_timeout(&self) -> Duration {
        self.session_timeout
    }

    /// The answer of each server to a word of four letters, which needs no session.
    pub(crate) async fn say(&self, word: &str) -> Vec<(String, io::Result<String>)> {
        let mut answers = Vec::new();
        let timeout = first_attempt(self.connect_timeout);
        for route in &self.servers {
            let said = tokio::time::timeout(timeout, say(route, word)).await;
            let silent = |_| Err(io::Error::other(route.silence()));
            answers.push((route.endpoint.to_string(), said.unwrap_or_else(silent)));
        }
        answers.sort_by(|(a, _), (b, _)| a.cmp(b));
        answers
    }

    /// The users that may use the nodes of this manager.
    pub(crate) fn access(&self) -> Access {
        if self.logins.latest.is_empty() {
            Access::Everybody
        } else {
            Access::Creator
        }
    }

    /// Opens a connection to the server of a number, whose handshake may take so long.
    pub(crate) async fn open(
        self,
        number: usize,
        session: Option<Identity>,
        seen: i64,
        timeout: Duration,
    ) -> Result<Opened, Cause> {
        let logins = self.logins.all(timeout).await?;
        let route = &self.servers[number];
        let opening = self.open_unbounded(route, &logins, session, seen);
        let opened = tokio::time::timeout(timeout, opening).await;
        let error = match opened {
            Ok(Ok(opened)) => return Ok(opened),
            Ok(Err(error)) => error,
            Err(_) => io::Error::other(route.silence()),
        };
        if let Some(distrust) = Distrust::find(&error) {
            return Err(Arc::new(distrust));
        }
        Err(Arc::new(io::Error::new(
            error.kind(),
            format!("{}: {error}", route.endpoint),
        )))
    }

    async fn open_unbounded(
        &self,
        route: &Route,
        logins: &[Credentials],
        session: Option<Identity>,
        seen: i64,
    ) -> io::Result<Opened> {
        let mut wire = Wire::new(route.open(StreamOptions::default()).await?);
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

/// How many bytes are read of an answer: all of one that a server gives.
const LONGEST: u64 = 1 << 20;

async fn say(route: &Route, word: &str) -> io::Result<String> {
    let mut stream = route.open(StreamOptions::default()).await?;
    stream.write_all(word.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    match stream.take(LONGEST).read_to_end(&mut answer).await {
        // An encrypted connection may end without a farewell.
        Err(error) if answer.is_empty() => Err(error),
        _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
    }
}
