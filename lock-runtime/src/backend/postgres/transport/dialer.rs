//! Opens one connection to one of the servers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::install;
use super::login::Login;
use super::prepare;
use super::server::Server;
use super::wire::Wire;
use crate::backend::postgres::address::{Address, Wake};
use crate::backend::postgres::protocol::schema::Schema;
use crate::backend::setup::Setup;
use crate::backend::sql::parameters::Install;
use crate::backend::sql::session::Session;
use crate::backend::sql::trouble::Trouble;
use crate::backend::transport::endpoint::{Route, StreamOptions, Upgrade};
use crate::backend::transport::logins::Logins;

/// The way to the servers.
#[derive(Clone)]
pub(crate) struct Dialer {
    /// In the order of the URL.
    hosts: Arc<[Route]>,
    logins: Logins,
    /// The user of the URL, for credentials that name none.
    user: Option<Arc<str>>,
    database: Option<Arc<str>>,
    schema: Arc<Schema>,
    install: Install,
    wake: Option<Wake>,
    /// How many standbys have to have what counts.
    replicas: usize,
    pub(super) connect_timeout: Duration,
}

/// An open connection.
pub(super) struct Opened {
    pub(super) wire: Wire,
    pub(super) server: Server,
}

const SSL_REQUEST: Upgrade = Upgrade {
    request: &[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f],
    consent: b'S',
    refused: "the server does not encrypt connections: turn on its setting `ssl`, or write `sslmode=disable`",
};

impl Dialer {
    pub(crate) fn new(address: &Address, setup: &Setup, schema: Schema) -> Self {
        let route = |host| Route::tcp(host, address.encrypted, setup);
        Self {
            hosts: address.hosts.iter().map(route).collect(),
            logins: Logins::new(address.login(), setup),
            user: address.user.as_deref().map(Arc::from),
            database: address.database.as_deref().map(Arc::from),
            schema: Arc::new(schema),
            install: address.install,
            wake: address.wake,
            replicas: setup.replicas,
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
            let why = "it names no user: write `postgres://USER@HOST/DATABASE`";
            return Err(Trouble::invalid("url", why));
        };
        let route = &self.hosts[number];
        let login = Login {
            user,
            password,
            database: self.database.as_deref(),
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
        let options = StreamOptions {
            // A call that is still buffered dies with a dropped connection.
            discards_unsent: true,
            upgrade: Some(&SSL_REQUEST),
            ..StreamOptions::default()
        };
        let mut wire = Wire::new(route.open(options).await?);
        let process = login.run(&mut wire).await?;
        let schema = &self.schema.quoted();
        let facts = prepare::look(&mut wire, process, schema).await?;
        facts.standbys.demand(self.replicas)?;
        install::ensure(
            &mut wire,
            &self.schema,
            self.install,
            login.user,
            facts.schema,
        )
        .await?;
        let mut server = Server::new(session, facts.version, facts.is_pooled, self.wake);
        if !server.is_pooled {
            prepare::set(&mut wire).await?;
            if self.replicas > 0 {
                let standbys = prepare::depend_on_standbys(&mut wire).await?;
                standbys.demand(self.replicas)?;
                server.waits_for_standbys = true;
            }
        }
        // Nobody is notified whose bell is free.
        if !server.is_pooled || server.listens {
            server.session = prepare::take_bell(&mut wire, schema, session, timeout).await?;
        }
        Ok(Opened { wire, server })
    }
}
