//! The stores on Redis that URLs name: one server, a service behind sentinels,
//! or several of which a majority decides.

use std::sync::Arc;

use redis::RedisConnectionInfo;

use super::Redis;
use super::address::Address;
use super::cluster::{Cluster, ClusterAddress};
use super::protocol::names::Layout;
use super::redlock::Redlock;
use super::redlock::servers::Servers;
use super::sentinel::{Sentinels, Service};
use super::transport::way::Way;
use crate::backend::capabilities::{Capabilities, Names};
use crate::backend::scheme::Scheme;
use crate::backend::setup::Setup;
use crate::backend::transport::endpoint::{Endpoint, Route};
use crate::backend::{Backend, Connecting, Quarantine, Target};
use crate::telemetry::events;
use crate::types::authority::names_if;
use crate::types::error::LockError;
use crate::types::url::Url;

/// The abilities that the setnx protocol lacks.
const WITHOUT: &str = "fencing tokens, a queue, readers, permits and cooldowns; holders rely on the clocks of all clients";

pub(crate) const SCHEMES: &[Scheme] = &[
    Scheme::plain("redis://", server),
    Scheme::plain("valkey://", server),
    Scheme::encrypted("rediss://", server),
    Scheme::encrypted("valkeys://", server),
    Scheme::plain("redis+unix://", socket),
    Scheme::plain("redis+sentinel://", service),
    Scheme::encrypted("rediss+sentinel://", service),
    Scheme::plain("redis+cluster://", cluster),
    Scheme::encrypted("rediss+cluster://", cluster),
    Scheme::plain("redis+redlock://", majority),
    Scheme::encrypted("rediss+redlock://", majority),
    Scheme::plain("redis+setnx://", setnx),
    Scheme::encrypted("rediss+setnx://", setnx),
];

fn server(url: &mut Url, encrypted: bool) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Address::server(url, encrypted)?))
}

#[cfg(unix)]
fn socket(url: &mut Url, _encrypted: bool) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Address::unix(url)?))
}

#[cfg(not(unix))]
fn socket(_url: &mut Url, _encrypted: bool) -> Result<Arc<dyn Target>, LockError> {
    let reason = "this system has no Unix sockets: write `redis://`";
    Err(LockError::invalid("url", reason))
}

fn service(url: &mut Url, encrypted: bool) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Service::parse(url, encrypted)?))
}

fn cluster(url: &mut Url, encrypted: bool) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(ClusterAddress::parse(url, encrypted)?))
}

fn majority(url: &mut Url, encrypted: bool) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Servers::parse(url, encrypted)?))
}

fn setnx(url: &mut Url, encrypted: bool) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Address::setnx(url, encrypted)?))
}

/// Reads the URLs of independent servers.
pub(crate) fn independent<U: AsRef<str>>(
    urls: impl IntoIterator<Item = U>,
) -> Result<Arc<dyn Target>, LockError> {
    let servers: Result<_, _> = urls.into_iter().map(|url| one(url.as_ref())).collect();
    let servers = Servers::of(servers?).map_err(|wrong| LockError::invalid("url", wrong))?;
    Ok(Arc::new(servers))
}

/// Reads the URL of one of them.
fn one(text: &str) -> Result<Address, LockError> {
    let mut url = Url::parse(text)?;
    let server = match &*url.scheme {
        "redis" | "valkey" => Address::server(&mut url, false)?,
        #[cfg(feature = "tls")]
        "rediss" | "valkeys" => Address::server(&mut url, true)?,
        #[cfg(unix)]
        "redis+unix" => Address::unix(&mut url)?,
        _ => {
            let reason = "an independent server is named by `redis://`, `redis+unix://` or, with the feature `tls`, \
                          `rediss://`";
            return Err(LockError::invalid("url", reason));
        }
    };
    if server.layout != Layout::Shared || url.has_parameters() {
        let reason = "it names one of several servers: give settings to the configuration, as in \
                      `LockConfig::redlock(…)?.ttl(…)`";
        return Err(LockError::invalid("url", reason));
    }
    Ok(server)
}

impl Target for Address {
    fn capabilities(&self) -> Capabilities {
        match self.layout {
            Layout::Shared | Layout::Declared => Capabilities::all("Redis"),
            Layout::Plain => Capabilities {
                // Nothing tells the keys of locks from others.
                list: false,
                graph: false,
                names: Names::TextBeside(&[":q", ":s", ":h", ":l"]),
                ..Capabilities::all("Redis with plain keys")
            },
            Layout::Setnx(_) => Capabilities {
                store: "Redis with setnx",
                read: false,
                downgrade: false,
                permits: false,
                take: false,
                several_keys: true,
                min_hold: false,
                list: false,
                force_release: true,
                // Its clients do not hear of each other.
                ask: false,
                history: false,
                fencing: false,
                fair: false,
                max_waiters: false,
                tickets: false,
                answers: true,
                graph: false,
                names: Names::Text,
            },
        }
    }

    fn encrypted_hosts(&self) -> Vec<&str> {
        self.endpoint.encrypted_host().into_iter().collect()
    }

    fn has_replicas(&self) -> bool {
        !self.layout.is_polled()
    }

    fn quarantine(&self) -> Quarantine {
        if self.layout.is_polled() {
            Quarantine::Never
        } else {
            Quarantine::IfSet
        }
    }

    fn connect<'a>(&'a self, setup: &'a Setup) -> Connecting<'a> {
        let name = Arc::from(self.to_string());
        if self.layout.is_polled() {
            events::weak_store(&name, WITHOUT);
        }
        let way = Way::Known(Route::new(self.endpoint.clone(), setup));
        connect(setup, name, way, self.login.to(self.database), self.layout)
    }
}

impl Target for Service {
    fn capabilities(&self) -> Capabilities {
        Capabilities::all("Redis with Sentinel")
    }

    fn encrypted_hosts(&self) -> Vec<&str> {
        names_if(self.encrypted, &self.sentinels)
    }

    fn has_replicas(&self) -> bool {
        true
    }

    fn quarantine(&self) -> Quarantine {
        Quarantine::IfSet
    }

    fn connect<'a>(&'a self, setup: &'a Setup) -> Connecting<'a> {
        let name = Arc::from(self.to_string());
        let way = Way::Sentinels(Arc::new(Sentinels::new(self, setup)));
        connect(
            setup,
            name,
            way,
            self.login.to(self.database),
            Layout::Shared,
        )
    }
}

impl Target for ClusterAddress {
    fn capabilities(&self) -> Capabilities {
        Capabilities::all("Redis Cluster")
    }

    fn encrypted_hosts(&self) -> Vec<&str> {
        names_if(self.encrypted, &self.seeds)
    }

    fn has_replicas(&self) -> bool {
        true
    }

    fn quarantine(&self) -> Quarantine {
        Quarantine::IfSet
    }

    fn connect<'a>(&'a self, setup: &'a Setup) -> Connecting<'a> {
        Box::pin(async {
            let cluster = Cluster::connect(setup, self).await?;
            Ok(Box::new(cluster) as Box<dyn Backend>)
        })
    }
}

impl Target for Servers {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            // A majority could let in more than there are permits.
            permits: false,
            take: false,
            // Only as far as the clocks of the servers agree.
            fair: false,
            // Where the writer only waits, it would have to wait as a reader.
            downgrade: false,
            // A majority could have two halves of a ticket.
            tickets: false,
            // Each server has a queue of its own.
            max_waiters: false,
            // Each server would remember another part of it.
            history: false,
            // Each server knows an acquisition by another token and number.
            graph: false,
            ..Capabilities::all("Redlock")
        }
    }

    fn encrypted_hosts(&self) -> Vec<&str> {
        self.endpoints()
            .filter_map(Endpoint::encrypted_host)
            .collect()
    }

    fn quarantine(&self) -> Quarantine {
        Quarantine::UnlessZero
    }

    fn connect<'a>(&'a self, setup: &'a Setup) -> Connecting<'a> {
        Box::pin(async {
            let redlock = Redlock::connect(setup, self).await?;
            Ok(Box::new(redlock) as Box<dyn Backend>)
        })
    }
}

fn connect(
    setup: &Setup,
    name: Arc<str>,
    way: Way,
    login: RedisConnectionInfo,
    layout: Layout,
) -> Connecting<'_> {
    Box::pin(async move {
        let redis = Redis::connect(setup, &name, way, login, layout).await?;
        Ok(Box::new(redis) as Box<dyn Backend>)
    })
}
