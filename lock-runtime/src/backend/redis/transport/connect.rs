//! Opens one connection, and prepares it for its first acquire.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, ErrorKind, PushInfo, PushKind, RedisConnectionInfo, RedisError,
    RedisResult, Value,
};
use tokio::sync::mpsc;

use super::prepare::{Identity, demand_master, demand_same, node, prepare};
use super::quarantine::{self, Standing};
use super::replicas;
use super::way::Way;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::opening::{self, Io, closed, distrust};
use crate::backend::redis::protocol::names::KeyNames;
use crate::backend::redis::sentinel::Master;
use crate::backend::setup::Setup;
use crate::backend::transport::endpoint::Route;
use crate::backend::transport::logins::Logins;
use crate::types::authority::Host;
use crate::types::error::Cause;

/// How many pipelines may wait to be written.
pub(super) const PIPELINES: usize = 1024;

/// An open connection.
pub(crate) struct Opened {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) io: Io,
    /// One more to the same server, on which its replicas are asked, if they are.
    pub(crate) replicas: Option<(MultiplexedConnection, Io)>,
    /// For how long nothing must be granted on it.
    pub(crate) quarantine: Option<Duration>,
    /// The role of the server, if a change of it begins a quarantine.
    pub(crate) standing: Option<Standing>,
    /// `None` if the user has no right to ask for it.
    pub(crate) identity: Option<Identity>,
    /// Which server it is, if sentinels have named it.
    pub(crate) master: Option<Master>,
    /// How long the password is valid.
    pub(crate) expires_in: Option<Duration>,
    /// The names with those of the node's channels, in a cluster.
    pub(crate) names: Option<KeyNames>,
}

/// The link that asks for a connection.
pub(crate) struct Caller {
    pub(crate) names: Arc<KeyNames>,
    /// Which connection of the pool it keeps, and which one in a row this is.
    pub(crate) number: usize,
    pub(crate) generation: u64,
    /// The connection before.
    pub(crate) old: Option<Identity>,
    /// Whether there was one, and so enough replicas.
    pub(crate) proven: bool,
    /// How long the attempt may take.
    pub(crate) timeout: Duration,
}

/// An event that a connection reports by itself.
#[derive(Debug)]
pub(crate) struct Push {
    /// Which connection of the pool, and which one in a row.
    pub(crate) connection: usize,
    pub(crate) generation: u64,
    pub(crate) event: PushEvent,
}

#[derive(Debug)]
pub(crate) enum PushEvent {
    Message(Vec<u8>),
    Disconnected,
}

/// The way to the server.
#[derive(Clone)]
pub(crate) struct Dialer {
    way: Way,
    login: RedisConnectionInfo,
    pub(super) logins: Logins,
    pub(super) connect_timeout: Duration,
    /// How many replicas have to have what counts.
    pub(super) replicas: usize,
    /// The longest lease of a server that may have forgotten some.
    quarantine: Option<Duration>,
    pushes: mpsc::UnboundedSender<Push>,
    pub(super) in_cluster: bool,
}

impl Dialer {
    pub(crate) fn new(
        way: Way,
        login: RedisConnectionInfo,
        setup: &Setup,
        pushes: mpsc::UnboundedSender<Push>,
    ) -> Self {
        Self {
            way,
            login,
            logins: Logins::new(None, setup),
            connect_timeout: setup.connect_timeout,
            replicas: setup.replicas,
            quarantine: setup.quarantine,
            pushes,
            in_cluster: false,
        }
    }

    /// The same, to a node of a cluster.
    pub(crate) fn in_cluster(self) -> Self {
        Self {
            in_cluster: true,
            ..self
        }
    }

    /// Whether a new connection may lead to another server, as behind sentinels, a name or a
    /// balancer. In a cluster the topology says which node is the master.
    pub(super) fn may_change(&self) -> bool {
        !self.in_cluster || self.quarantine.is_some()
    }

    /// Whether a replica would answer. In a cluster it names the master instead.
    pub(super) fn may_find_replica(&self) -> bool {
        !self.in_cluster
    }

    /// The server that has replaced this one, as far as sentinels have said so.
    pub(super) fn successor(&self, of: &Master) -> Option<Host> {
        let master = self.way.master()?;
        (master.host != of.host).then_some(master.host)
    }

    /// Opens a connection that gets the grants of its caller; ends its predecessor, if the
    /// server allows that.
    pub(crate) async fn open(self, caller: &Caller) -> Result<Opened, Trouble> {
        match self.open_once(caller).await {
            // The password may have changed since it was asked for.
            Err(Trouble::Never(cause)) if self.logins.may_change() && is_wrong_password(&cause) => {
                self.open_once(caller).await
            }
            result => result,
        }
    }

    async fn open_once(&self, caller: &Caller) -> Result<Opened, Trouble> {
        let (login, expires_in) = self.login().await?;
        let opening = self.open_unbounded(&login, caller);
        match tokio::time::timeout(caller.timeout, opening).await {
            Ok(Ok(opened)) => Ok(Opened {
                expires_in,
                ..opened
            }),
            Ok(Err(trouble)) => Err(trouble),
            Err(_) => Err(Trouble::not_now(self.way.silence())),
        }
    }

    /// The credentials, and for how long they are valid.
    async fn login(&self) -> Result<(RedisConnectionInfo, Option<Duration>), Trouble> {
        let login = self.login.clone();
        let latest = self.logins.latest().await.map_err(Trouble::NotNow)?;
        let Some(credentials) = latest else {
            return Ok((login, None));
        };
        let login = login.set_password(&credentials.password);
        let login = match &credentials.user {
            Some(user) => login.set_username(user),
            None => login,
        };
        Ok((login, credentials.expires_in))
    }

    async fn open_unbounded(
        &self,
        login: &RedisConnectionInfo,
        caller: &Caller,
    ) -> Result<Opened, Trouble> {
        let (route, master) = self.way.find(caller.timeout / 2).await?;
        let trouble = |error| trouble(error, &caller.names);
        let opening = self.open_along(&route, login, caller);
        let mut opened = opening.await.map_err(trouble)?;
        opened.master = master;
        if let Some(longest) = self.quarantine {
            let names = opened.names.as_ref().unwrap_or(&caller.names);
            let connection = (&mut opened.connection, &mut opened.io);
            let (standing, left) = quarantine::left(connection, names, longest).await?;
            opened.standing = Some(standing);
            opened.quarantine = left;
        }
        if self.replicas > 0 {
            let config = AsyncConnectionConfig::new();
            let opening = opening::open(&route, login, config);
            let mut replicas = opening.await.map_err(trouble)?;
            let (connection, io) = &mut replicas;
            let same = tokio::select! {
                same = demand_same(connection, opened.identity.as_ref()) => same,
                () = io => Err(closed()),
            };
            same.map_err(trouble)?;
            if !caller.proven {
                replicas::prove(&mut replicas, self.replicas).await?;
            }
            opened.replicas = Some(replicas);
        }
        Ok(opened)
    }

    async fn open_along(
        &self,
        route: &Route,
        login: &RedisConnectionInfo,
        caller: &Caller,
    ) -> RedisResult<Opened> {
        let pushes = self.pushes.clone();
        let (number, generation) = (caller.number, caller.generation);
        let config = AsyncConnectionConfig::new()
            .set_pipeline_buffer_size(PIPELINES)
            .set_push_sender(move |push: PushInfo| match event(push) {
                Some(event) => pushes.send(Push {
                    connection: number,
                    generation,
                    event,
                }),
                None => Ok(()),
            });
        let (mut connection, mut io) = opening::open(route, login, config).await?;
        let preparing = async {
            let writes = caller.names.layout.has_counter();
            if self.way.may_change() || !writes && !self.in_cluster {
                demand_master(&mut connection, self.way.may_change()).await?;
            }
            let own = if self.in_cluster {
                Some(caller.names.at_node(&node(&mut connection).await?))
            } else {
                None
            };
            let names = own.as_ref().unwrap_or(&caller.names);
            let identity = prepare(&mut connection, names, caller.old.as_ref()).await?;
            RedisResult::Ok((identity, own))
        };
        let (identity, names) = tokio::select! {
            prepared = preparing => prepared?,
            () = &mut io => return Err(closed()),
        };
        Ok(Opened {
            connection,
            io,
            replicas: None,
            quarantine: None,
            standing: None,
            identity,
            master: None,
            expires_in: None,
            names,
        })
    }
}

fn is_wrong_password(cause: &Cause) -> bool {
    let error = cause.downcast_ref::<RedisError>();
    error.is_some_and(|error| {
        error.kind() == ErrorKind::AuthenticationFailed || error.code() == Some("WRONGPASS")
    })
}

fn trouble(error: RedisError, names: &KeyNames) -> Trouble {
    if let Some(distrust) = distrust(&error) {
        return Trouble::Never(Arc::new(distrust));
    }
    Trouble::from_connecting(error, names)
}

fn event(push: PushInfo) -> Option<PushEvent> {
    match push.kind {
        PushKind::Message => match push.data.into_iter().nth(1) {
            Some(Value::BulkString(message)) => Some(PushEvent::Message(message)),
            _ => None,
        },
        PushKind::Disconnection => Some(PushEvent::Disconnected),
        _ => None,
    }
}
