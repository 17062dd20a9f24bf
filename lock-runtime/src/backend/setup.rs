//! The part of the configuration that a store needs.

use std::time::Duration;

use crate::base::clock::Clock;
use crate::types::credentials::Provider;
#[cfg(feature = "tls")]
use crate::types::tls::Tls;

#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The start of every name in the store.
    pub(crate) prefix: Box<str>,
    /// The ttl of locks that name none, for stores whose locks share a lease.
    pub(crate) ttl: Duration,
    pub(crate) connect_timeout: Duration,
    /// Whether to connect in the background.
    pub(crate) lazy: bool,
    /// How many connections to keep, where the store keeps any.
    pub(crate) pool_size: usize,
    /// How many grants of each lock to remember.
    pub(crate) history: usize,
    /// How many replicas have to have what counts.
    pub(crate) replicas: usize,
    /// The longest lease that a server may forget, if it is waited for.
    pub(crate) quarantine: Option<Duration>,
    pub(crate) clock: Clock,
    /// The source of user and password, unless the URL contains them.
    pub(crate) credentials: Option<Provider>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
}
