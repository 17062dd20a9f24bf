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
use crate::backend::capabilities::Capabilities;
use crate::backend::setup::Setup;
#[cfg(feature = "tls")]
use crate::backend::transport::endpoint::Endpoint;
use crate::backend::transport::endpoint::Route;
use crate::backend::{Backend, Connecting, Target};
use crate::telemetry::events;
#[cfg(feature = "tls")]
use crate::types::authority::names_if;
use crate::types::error::LockError;
use crate::types::url::Url;

/// What the timestamp protocol lacks.
const WITHOUT: &str =
    "fencing tokens, a line, readers, permits and rests; holders rely on the clocks of all clients";

/// Reads `redis://`.
pub(crate) fn tcp(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Address::tcp(url)?))
}

/// Reads `rediss://`.
#[cfg(feature = "tls")]
pub(crate) fn tls(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Address::tls(url)?))
}

/// Reads `redis+unix://`.
#[cfg(unix)]
pub(crate) fn unix(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Address::unix(url)?))
}

#[cfg(not(unix))]
pub(crate) fn unix(_url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    let reason = "this system has no Unix sockets: write `redis://`";
    Err(LockError::invalid("url", reason))
}

/// Reads `redis+sentinel://`.
pub(crate) fn sentinel(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Service::parse(url, false)?))
}

/// Reads `rediss+sentinel://`.
#[cfg(feature = "tls")]
pub(crate) fn sentinel_tls(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Service::parse(url, true)?))
}

/// Reads `redis+cluster://`.
pub(crate) fn cluster(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(ClusterAddress::parse(url, false)?))
}

/// Reads `rediss+cluster://`.
#[cfg(feature = "tls")]
pub(crate) fn cluster_tls(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(ClusterAddress::parse(url, true)?))
}

/// Reads `redis+setnx://`.
pub(crate) fn setnx(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Address::stamps(url, false)?))
}

/// Reads `rediss+setnx://`.
#[cfg(feature = "tls")]
pub(crate) fn setnx_tls(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Address::stamps(url, true)?))
}

/// Reads `redis+redlock://`.
pub(crate) fn redlock(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Servers::parse(url, false)?))
}

/// Reads `rediss+redlock://`.
#[cfg(feature = "tls")]
pub(crate) fn redlock_tls(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Servers::parse(url, true)?))
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
        "redis" | "valkey" => Address::tcp(&mut url)?,
        #[cfg(feature = "tls")]
        "rediss" | "valkeys" => Address::tls(&mut url)?,
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
                ..Capabilities::all("Redis with plain keys")
            },
            Layout::Stamps(_) => Capabilities {
                store: "Redis with timestamps",
                read: false,
                permits: false,
                several_keys: true,
                min_hold: false,
                list: false,
                force_release: true,
                fencing: false,
                fair: false,
            },
        }
    }

    #[cfg(feature = "tls")]
    fn encrypted_hosts(&self) -> Vec<&str> {
        match &self.endpoint {
            Endpoint::Tls(host) => vec![&host.name],
            _ => Vec::new(),
        }
    }

    fn has_replicas(&self) -> bool {
        !self.layout.is_polled()
    }

    fn has_quarantine(&self) -> bool {
        !self.layout.is_polled()
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

    #[cfg(feature = "tls")]
    fn encrypted_hosts(&self) -> Vec<&str> {
        names_if(self.encrypted, &self.sentinels)
    }

    fn has_replicas(&self) -> bool {
        true
    }

    fn has_quarantine(&self) -> bool {
        true
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

    #[cfg(feature = "tls")]
    fn encrypted_hosts(&self) -> Vec<&str> {
        names_if(self.encrypted, &self.seeds)
    }

    fn has_replicas(&self) -> bool {
        true
    }

    fn has_quarantine(&self) -> bool {
        true
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
            // Only as far as the clocks of the servers agree.
            fair: false,
            ..Capabilities::all("Redlock")
        }
    }

    #[cfg(feature = "tls")]
    fn encrypted_hosts(&self) -> Vec<&str> {
        let hosts = self.endpoints().filter_map(|endpoint| match endpoint {
            Endpoint::Tls(host) => Some(host.name.as_str()),
            _ => None,
        });
        hosts.collect()
    }

    fn has_quarantine(&self) -> bool {
        true
    }

    fn needs_quarantine(&self) -> bool {
        true
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
