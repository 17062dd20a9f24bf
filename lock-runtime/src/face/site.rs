//! What is known at compile time about one annotated function.

use std::time::Duration;

use crate::face::config::{MAX_TTL, MIN_TTL};
use crate::vocabulary::kind::Kind;
use crate::vocabulary::terms::Wait;

/// One annotated function; built in a constant by the attribute's expansion.
#[derive(Debug)]
pub struct Site {
    pub(crate) module: &'static str,
    pub(crate) function: &'static str,
    pub(crate) ttl: Option<Duration>,
    pub(crate) wait: Option<Wait>,
    pub(crate) renew: bool,
    pub(crate) kind: Kind,
    pub(crate) reentrant: bool,
    pub(crate) min_hold: Option<Duration>,
    pub(crate) max_hold: Option<Duration>,
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
            kind: Kind::Exclusive,
            reentrant: false,
            min_hold: None,
            max_hold: None,
        }
    }

    /// `ttl = "…"`, in milliseconds.
    #[track_caller]
    pub const fn ttl_ms(self, milliseconds: u64) -> Self {
        self.ttl(Duration::from_millis(milliseconds))
    }

    /// `ttl = PATH`.
    ///
    /// # Panics
    ///
    /// In constant evaluation, where the value is out of range.
    #[track_caller]
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

    /// `mode = "read"`.
    pub const fn read(mut self) -> Self {
        self.kind = Kind::Read;
        self
    }

    /// `permits = …`.
    ///
    /// # Panics
    ///
    /// In constant evaluation, where it is zero.
    #[track_caller]
    pub const fn permits(mut self, permits: u32) -> Self {
        assert!(permits >= 1, "`permits` must be at least 1");
        self.kind = Kind::Permits(permits);
        self
    }

    /// `reentrant = true`.
    pub const fn reentrant(mut self) -> Self {
        self.reentrant = true;
        self
    }

    /// `min_hold = "…"`, in milliseconds.
    #[track_caller]
    pub const fn min_hold_ms(self, milliseconds: u64) -> Self {
        self.min_hold(Duration::from_millis(milliseconds))
    }

    /// `min_hold = PATH`.
    ///
    /// # Panics
    ///
    /// In constant evaluation, where it is out of range or longer than `max_hold`.
    #[track_caller]
    pub const fn min_hold(mut self, time: Duration) -> Self {
        assert!(!time.is_zero(), "`min_hold` must be more than 0s");
        assert!(
            time.as_nanos() <= MAX_TTL.as_nanos(),
            "`min_hold` must be at most 24h"
        );
        self.min_hold = Some(time);
        self.check_holds()
    }

    /// `max_hold = "…"`, in milliseconds.
    #[track_caller]
    pub const fn max_hold_ms(self, milliseconds: u64) -> Self {
        self.max_hold(Duration::from_millis(milliseconds))
    }

    /// `max_hold = PATH`.
    ///
    /// # Panics
    ///
    /// In constant evaluation, where it is out of range or shorter than `min_hold`.
    #[track_caller]
    pub const fn max_hold(mut self, time: Duration) -> Self {
        assert!(!time.is_zero(), "`max_hold` must be more than 0s");
        assert!(
            time.as_nanos() <= MAX_TTL.as_nanos(),
            "`max_hold` must be at most 24h"
        );
        self.max_hold = Some(time);
        self.check_holds()
    }

    #[track_caller]
    const fn check_holds(self) -> Self {
        if let (Some(least), Some(most)) = (self.min_hold, self.max_hold) {
            assert!(
                least.as_nanos() <= most.as_nanos(),
                "`min_hold` must not be longer than `max_hold`"
            );
        }
        self
    }
}
