//! Opens one connection to one of the servers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::install;
use super::login::{self, Login};
use super::prepare;
use super::server::Server;
use super::wire::Wire;
use crate::backend::mysql::address::Address;
use crate::backend::setup::Setup;
use crate::backend::sql::parameters::Install;
use crate::backend::sql::session::Session;
use crate::backend::sql::trouble::Trouble;
use crate::backend::transport::endpoint::Route;
use crate::backend::transport::logins::Logins;

/// The way to the servers.
#[derive(Clone)]
pub(crate) struct Dialer {
    /// In the order of the URL.
    hosts: Arc<[Route]>,
    logins: Logins,
    /// The user of the URL, for credentials that name none.
    user: Option<Arc<str>>,
    database: Arc<str>,
    install: Install,
    /// Whether locks are kept from a second holder after a crash of the server.
    is_quarantined: bool,
    pub(super) connect_timeout: Duration,
}

/// An open connection.
pub(super) struct Opened {
    pub(super) wire: Wire,
    pub(super) server: Server,
}

impl Dialer {
    pub(crate) fn new(address: &Address, setup: &Setup) -> Self {
        let route = |host| Route::tcp(host, address.encrypted, setup);
        Self {
            hosts: address.hosts.iter().map(route).collect(),
            logins: Logins::new(address.login(), setup),
            user: address.user.as_deref().map(Arc::from),
            database: Arc::from(&*address.database),
            install: address.install,
            is_quarantined: setup.quarantine.is_some(),
            connect_timeout: setup.connect_timeout,
        }
    }

    /// How many servers there are.
    pub(super) fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Opens a connection to the server of a number, for a session.
    pub(super) async fn open(
        self,
        number: usize,
        session: Session,
        timeout: Duration,
    ) -> Result<Opened, Trouble> {
        let result = match self.open_in_time(number, session, timeout).await {
            // The password may have changed since it was asked for.
            Err(trouble) if self.logins.may_change() && trouble.is_wrong_login() => {
                self.open_in_time(number, session, timeout).await
            }
            result => result,
        };
        if self.hosts.len() == 1 {
            return result;
        }
        result.map_err(|trouble| trouble.at(&self.hosts[number].endpoint.to_string()))
    }

    async fn open_in_time(
        &self,
        number: usize,
        session: Session,
        timeout: Duration,
    ) -> Result<Opened, Trouble> {
        // Credentials have a time limit of their own.
        let credentials = self.logins.latest().await.map_err(Trouble::NotNow)?;
        let (user, password) = match &credentials {
            Some(it) => (it.user.as_deref(), &*it.password),
            None => (None, ""),
        };
        let Some(user) = user.or(self.user.as_deref()) else {
            let why = "it names no user: write `mysql://USER@HOST/DATABASE`";
            return Err(Trouble::invalid("url", why));
        };
        let route = &self.hosts[number];
        let login = Login {
            user,
            password,
            database: &self.database,
            is_private: route.is_encrypted(),
        };
        let opening = self.open_unbounded(route, &login, session, timeout);
        let opened = tokio::time::timeout(timeout, opening).await;
        opened.unwrap_or_else(|_| Err(io::Error::other(route.silence()).into()))
    }

    async fn open_unbounded(
        &self,
        route: &Route,
        login: &Login<'_>,
        session: Session,
        timeout: Duration,
    ) -> Result<Opened, Trouble> {
        // A call that is still buffered dies with a dropped connection.
        let mut socket = route.socket(true).await?;
        let greeting = login::greeted(&mut socket).await?;
        let (mut wire, number) = login::wire(route, socket, &greeting).await?;
        login.run(&mut wire, number, &greeting).await?;
        prepare::set(&mut wire).await?;
        let facts = prepare::look(&mut wire).await?;
        if !facts.is_durable && !self.is_quarantined {
            let why = "a crash of the server forgets grants that are not on its disk: set the server's \
                       `innodb_flush_log_at_trx_commit = 1` and, if it has a binary log, `sync_binlog = 1`, or set `quarantine` \
                       to the longest ttl";
            return Err(Trouble::invalid("quarantine", why));
        }
        install::ensure(&mut wire, self.install, &self.database, facts.schema).await?;
        let session = prepare::take_bell(&mut wire, session, timeout).await?;
        let server = Server {
            session,
            is_durable: facts.is_durable,
        };
        Ok(Opened { wire, server })
    }
}
