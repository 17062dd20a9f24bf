//! The part of the configuration that a store needs.

use std::time::Duration;

use crate::base::clock::Clock;

#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// What every name in the store begins with.
    pub(crate) prefix: Box<str>,
    #[cfg_attr(not(feature = "redis"), allow(dead_code))]
    pub(crate) connect_timeout: Duration,
    /// How many connections to keep, where the store keeps any.
    #[cfg_attr(not(feature = "redis"), allow(dead_code))]
    pub(crate) pool_size: usize,
    pub(crate) clock: Clock,
}
