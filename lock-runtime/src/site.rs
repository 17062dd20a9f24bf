//! What is known at compile time about one annotated function.

use std::time::Duration;

use crate::config::{MAX_TTL, MIN_TTL};
use crate::request::Wait;

/// One annotated function; built in a constant by the attribute's expansion.
#[derive(Debug)]
pub struct Site {
    pub(crate) module: &'static str,
    pub(crate) function: &'static str,
    pub(crate) ttl: Option<Duration>,
    pub(crate) wait: Option<Wait>,
    pub(crate) renew: bool,
}

impl Site {
    /// A function that takes every setting from the configuration.
    pub const fn new(module: &'static str, function: &'static str) -> Self {
        Self {
            module,
            function,
            ttl: None,
            wait: None,
            renew: true,
        }
    }

    /// `ttl = "…"`, in milliseconds.
    pub const fn ttl_ms(self, milliseconds: u64) -> Self {
        self.ttl(Duration::from_millis(milliseconds))
    }

    /// `ttl = PATH`.
    ///
    /// # Panics
    ///
    /// In constant evaluation, where the value is out of range.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        assert!(
            ttl.as_nanos() >= MIN_TTL.as_nanos(),
            "`ttl` must be at least 100ms"
        );
        assert!(
            ttl.as_nanos() <= MAX_TTL.as_nanos(),
            "`ttl` must be at most 24h"
        );
        self.ttl = Some(ttl);
        self
    }

    /// `wait = "…"`, in milliseconds.
    pub const fn wait_ms(self, milliseconds: u64) -> Self {
        self.wait(Duration::from_millis(milliseconds))
    }

    /// `wait = PATH`.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(Wait::AtMost(wait));
        self
    }

    /// `wait = "forever"`.
    pub const fn wait_forever(mut self) -> Self {
        self.wait = Some(Wait::Forever);
        self
    }

    /// `renew = false`.
    pub const fn fixed_lease(mut self) -> Self {
        self.renew = false;
        self
    }
}
