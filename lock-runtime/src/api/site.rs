//! The settings of one annotated function, most of them known at compile time.

use std::panic::Location;
use std::time::Duration;

use crate::api::settings::Settings;
use crate::types::kind::Kind;
use crate::types::terms::Wait;

/// One annotated function; built in a constant by the attribute's expansion.
#[derive(Debug)]
pub struct Site(pub(crate) Settings);

impl Site {
    /// A function that takes every setting from the configuration. The expansion calls it in place
    /// of the attribute, so that it has the attribute's location.
    #[track_caller]
    #[allow(clippy::new_without_default, reason = "it depends on the caller")]
    pub const fn new() -> Self {
        Self(Settings {
            asked_at: Some(Location::caller()),
            ..Settings::DEFAULT
        })
    }

    /// The text of the keys, before their values.
    pub const fn template(mut self, template: &'static str) -> Self {
        self.0.template = Some(template);
        self
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
    /// In constant evaluation, if the value is out of range.
    #[track_caller]
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.0.ttl = Some(ttl);
        self.checked()
    }

    /// `wait = "…"`, in milliseconds.
    pub const fn wait_ms(self, milliseconds: u64) -> Self {
        self.wait(Duration::from_millis(milliseconds))
    }

    /// `wait = PATH`.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.0.wait = Some(Wait::AtMost(wait));
        self
    }

    /// `wait = "forever"`.
    pub const fn wait_forever(mut self) -> Self {
        self.0.wait = Some(Wait::Forever);
        self
    }

    /// `renew = false`.
    pub const fn fixed_lease(mut self) -> Self {
        self.0.renew = false;
        self
    }

    /// `mode = "read"`.
    pub const fn read(mut self) -> Self {
        self.0.kind = Kind::Read;
        self
    }

    /// `permits = …`.
    ///
    /// # Panics
    ///
    /// In constant evaluation, if it is zero.
    #[track_caller]
    pub const fn permits(mut self, permits: u32) -> Self {
        self.0.kind = Kind::Permits(permits);
        self.checked()
    }

    /// `take = …`.
    ///
    /// # Panics
    ///
    /// In constant evaluation, if it is zero or more than `permits`.
    #[track_caller]
    pub const fn take(mut self, permits: u32) -> Self {
        self.0.take = Some(permits);
        self.checked()
    }

    /// `max_waiters = …`.
    ///
    /// # Panics
    ///
    /// In constant evaluation, if it is zero, or if nobody is to wait.
    #[track_caller]
    pub const fn max_waiters(mut self, waiters: u32) -> Self {
        self.0.max_waiters = Some(waiters);
        self.checked()
    }

    /// `reentrant = true`.
    pub const fn reentrant(mut self) -> Self {
        self.0.reentrant = true;
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
    /// In constant evaluation, if it is out of range or longer than `max_hold`.
    #[track_caller]
    pub const fn min_hold(mut self, time: Duration) -> Self {
        self.0.min_hold = Some(time);
        self.checked()
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
    /// In constant evaluation, if it is out of range or shorter than `min_hold`.
    #[track_caller]
    pub const fn max_hold(mut self, time: Duration) -> Self {
        self.0.max_hold = Some(time);
        self.checked()
    }

    /// `ttl = …` with an expression that is no constant: checked when the lock is taken.
    #[must_use]
    pub fn with_ttl(&self, ttl: Duration) -> Self {
        self.with(|settings| settings.ttl = Some(ttl))
    }

    /// `wait = …`, in the same way.
    #[must_use]
    pub fn with_wait(&self, wait: Duration) -> Self {
        self.with(|settings| settings.wait = Some(Wait::AtMost(wait)))
    }

    /// `min_hold = …`, in the same way.
    #[must_use]
    pub fn with_min_hold(&self, time: Duration) -> Self {
        self.with(|settings| settings.min_hold = Some(time))
    }

    /// `max_hold = …`, in the same way.
    #[must_use]
    pub fn with_max_hold(&self, time: Duration) -> Self {
        self.with(|settings| settings.max_hold = Some(time))
    }

    /// `permits = …`, in the same way.
    #[must_use]
    pub fn with_permits(&self, permits: u32) -> Self {
        self.with(|settings| settings.kind = Kind::Permits(permits))
    }

    /// `take = …`, in the same way.
    #[must_use]
    pub fn with_take(&self, permits: u32) -> Self {
        self.with(|settings| settings.take = Some(permits))
    }

    /// `max_waiters = …`, in the same way.
    #[must_use]
    pub fn with_max_waiters(&self, waiters: u32) -> Self {
        self.with(|settings| settings.max_waiters = Some(waiters))
    }

    fn with(&self, set: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.0.clone();
        set(&mut settings);
        Self(settings)
    }

    #[track_caller]
    const fn checked(self) -> Self {
        match self.0.check() {
            Ok(()) => self,
            Err(fault) => panic!("{}", fault.sentence),
        }
    }
}
