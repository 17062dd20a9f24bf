//! The settings of one acquisition: the one place for defaults and checks of the attribute and of
//! requests.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::api::bounds::{
    Fault, MAX_TTL, MIN_HOLD, check_longest, check_take, check_ttl, check_waiters, fault, longer,
};
use crate::api::shared::Shared;
use crate::backend::capabilities::{Capabilities, Names};
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::keys::Keys;
use crate::types::kind::Kind;
use crate::types::terms::{Terms, Wait};
use crate::types::ticket::Ticket;
use crate::types::ticket_id::TicketId;

/// A setting without a value is taken from the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) ttl: Option<Duration>,
    pub(crate) wait: Option<Wait>,
    pub(crate) renew: bool,
    pub(crate) kind: Kind,
    pub(crate) take: Option<u32>,
    pub(crate) reentrant: bool,
    pub(crate) min_hold: Option<Duration>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) max_waiters: Option<u32>,
    pub(crate) function: Option<&'static str>,
    pub(crate) template: Option<&'static str>,
    pub(crate) asked_at: Option<&'static Location<'static>>,
    /// The ticket that is adopted, and the kind in which it keeps the lock closed.
    pub(crate) adopts: Option<(TicketId, Kind)>,
    /// What the holder publishes, if it leads.
    pub(crate) data: Option<Arc<str>>,
}

impl Settings {
    pub(crate) const DEFAULT: Self = Self {
        ttl: None,
        wait: None,
        renew: true,
        kind: Kind::Exclusive,
        take: None,
        reentrant: false,
        min_hold: None,
        max_hold: None,
        max_waiters: None,
        function: None,
        template: None,
        asked_at: None,
        adopts: None,
        data: None,
    };

    /// Takes the lock of a ticket, as its former holder held it.
    pub(crate) fn adopt(&mut self, ticket: &Ticket) {
        self.kind = ticket.kind;
        self.adopts = Some((ticket.id, ticket.kind));
    }

    /// Usable in constants, so that the compiler checks the attribute's values.
    pub(crate) const fn check(&self) -> Result<(), Fault> {
        if let Some(ttl) = self.ttl
            && let Err(fault) = check_ttl(ttl)
        {
            return Err(fault);
        }
        if let Kind::Permits(0) = self.kind {
            return fault!("permits", "must be at least 1");
        }
        if let Err(fault) = check_take(self.take, self.kind) {
            return Err(fault);
        }
        match self.min_hold {
            Some(Duration::ZERO) => return fault!("min_hold", "must be more than 0s"),
            Some(time) if longer(time, MAX_TTL) => {
                return fault!("min_hold", "must be at most 24h");
            }
            _ => {}
        }
        match self.max_hold {
            Some(Duration::ZERO) => return fault!("max_hold", "must be more than 0s"),
            Some(time) if longer(MIN_HOLD, time) => {
                return fault!("max_hold", "must be at least 10ms");
            }
            Some(time) if longer(time, MAX_TTL) => {
                return fault!("max_hold", "must be at most 24h");
            }
            _ => {}
        }
        if let (Some(least), Some(most)) = (self.min_hold, self.max_hold)
            && longer(least, most)
        {
            return fault!("min_hold", "must not be longer than `max_hold`");
        }
        check_waiters(self.max_waiters, self.wait)
    }

    /// The terms of the first key, and the other keys.
    pub(crate) fn terms(
        &self,
        shared: &Shared,
        keys: Keys,
    ) -> Result<(Terms, Vec<LockKey>), LockError> {
        self.check()?;
        self.check_against(&shared.capabilities, &keys)?;
        self.check_ticket()?;
        self.check_permits()?;
        let keys = named(&shared.capabilities, keys)?;
        let config = &shared.config;
        let ttl = self.ttl.unwrap_or(config.ttl);
        let wait = self.wait.unwrap_or(config.wait);
        let waits = !wait.is_try() && self.adopts.is_none();
        if let Some(longest) = config.longest_ttl() {
            check_longest(ttl, longest)?;
        }
        let terms = Terms {
            id: shared.next_id(),
            key: keys.first,
            ttl,
            wait,
            renew: self.renew,
            kind: self.kind,
            take: self.take.unwrap_or(1),
            min_hold: self.min_hold,
            max_hold: self.max_hold,
            function: self.function,
            template: self.template,
            asked_at: self.asked_at,
            more_keys: !keys.rest.is_empty(),
            max_waiters: self.max_waiters.or(config.max_waiters).filter(|_| waits),
            adopts: self.adopts.map(|(id, _)| Box::new(id)),
            data: self.data.clone(),
            holds: Box::default(),
        };
        Ok((terms, keys.rest))
    }

    /// Refuses to take several permits of a lock that has none.
    fn check_permits(&self) -> Result<(), LockError> {
        match (self.take, self.kind) {
            (Some(_), Kind::Exclusive | Kind::Read) => Err(LockError::invalid(
                "take",
                "it is how many of the `permits` are taken: give `permits`, too",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses what would not take the lock of a ticket as the ticket has it.
    fn check_ticket(&self) -> Result<(), LockError> {
        match self.adopts {
            Some((_, kind)) if kind != self.kind => Err(LockError::invalid(
                "ticket",
                format_args!(
                    "the lock was taken as {kind}, and must be adopted as such: leave out `mode` and `permits`"
                ),
            )),
            Some(_) if self.take.is_some() => Err(LockError::invalid(
                "ticket",
                "a ticket carries one permit: leave out `take`",
            )),
            Some(_) if self.reentrant => Err(LockError::invalid(
                "ticket",
                "a ticket is adopted, and does not join a lock: leave out `reentrant`",
            )),
            Some(_) if self.max_waiters.is_some() => Err(LockError::invalid(
                "ticket",
                "an adopter does not wait in the queue: leave out `max_waiters`",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses settings that the store does not support.
    fn check_against(&self, can: &Capabilities, keys: &Keys) -> Result<(), LockError> {
        let needs = [
            ("mode", self.kind == Kind::Read, can.read),
            (
                "permits",
                matches!(self.kind, Kind::Permits(_)),
                can.permits,
            ),
            ("min_hold", self.min_hold.is_some(), can.min_hold),
            ("max_waiters", self.max_waiters.is_some(), can.max_waiters),
            ("key", !keys.rest.is_empty(), can.several_keys),
            ("ticket", self.adopts.is_some(), can.tickets),
            ("election", self.data.is_some(), can.fencing),
        ];
        for (setting, asked, able) in needs {
            if asked && !able {
                return Err(can.lacks(setting));
            }
        }
        if self.take.is_some_and(|take| take > 1) && !can.take {
            return Err(can.lacks_take());
        }
        Ok(())
    }
}

/// The keys under the names that the store uses, sorted by these names: all programs sort alike.
fn named(capabilities: &Capabilities, keys: Keys) -> Result<Keys, LockError> {
    if capabilities.names == Names::Escaped {
        return Ok(keys);
    }
    let keys = std::iter::once(keys.first).chain(keys.rest);
    Keys::new(keys.map(|key| capabilities.name(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::bounds::MIN_TTL;

    fn keys(names: &[&str]) -> Keys {
        Keys::new(names.iter().map(|name| Ok(LockKey::of(name)))).expect("there are some")
    }

    #[test]
    fn a_store_refuses_every_argument_that_it_has_no_capability_for() {
        let nothing = Capabilities::none("chalkboard");
        let minute = Some(Duration::from_secs(60));
        let default = Settings::DEFAULT;
        for (setting, settings, names) in [
            (
                "mode",
                Settings {
                    kind: Kind::Read,
                    ..default.clone()
                },
                &["a"][..],
            ),
            (
                "permits",
                Settings {
                    kind: Kind::Permits(2),
                    ..default.clone()
                },
                &["a"],
            ),
            (
                "min_hold",
                Settings {
                    min_hold: minute,
                    ..default.clone()
                },
                &["a"],
            ),
            (
                "max_waiters",
                Settings {
                    max_waiters: Some(8),
                    ..default.clone()
                },
                &["a"],
            ),
            (
                "take",
                Settings {
                    take: Some(2),
                    ..default.clone()
                },
                &["a"],
            ),
            ("key", default.clone(), &["a", "b"]),
            (
                "election",
                Settings {
                    data: Some("10.0.0.7:80".into()),
                    ..default.clone()
                },
                &["a"],
            ),
        ] {
            let refused = settings.check_against(&nothing, &keys(names));
            let text = refused.expect_err(setting).to_string();
            assert!(
                text.contains(setting) && text.contains("chalkboard"),
                "{text}"
            );
            let all = Capabilities::all("cabinet");
            assert!(settings.check_against(&all, &keys(names)).is_ok());
        }
    }

    #[test]
    fn what_every_store_can_do_needs_no_capability() {
        let settings = Settings {
            ttl: Some(MIN_TTL),
            wait: Some(Wait::Forever),
            renew: false,
            reentrant: true,
            max_hold: Some(MAX_TTL),
            function: Some("shop::buy"),
            ..Settings::DEFAULT
        };
        let nothing = Capabilities::none("chalkboard");
        assert!(settings.check().is_ok());
        assert!(settings.check_against(&nothing, &keys(&["a"])).is_ok());
    }
}
