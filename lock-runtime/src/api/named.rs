//! The settings that have a text form: their names, and how they are parsed.

use std::env::VarError;

use crate::api::config::LockConfig;
use crate::types::duration;
use crate::types::error::LockError;
use crate::types::terms::Wait;
#[cfg(feature = "tls")]
use crate::types::tls::{Pem, Tls};
use crate::types::url::Url;

/// A setting with a text form.
pub(super) struct Named {
    pub(super) name: &'static str,
    variable: &'static str,
    set: Set,
}

type Set = fn(LockConfig, &str) -> Result<LockConfig, String>;

pub(super) const SETTINGS: &[Named] = &[
    named("prefix", "LOCK_PREFIX", |it, text| Ok(it.prefix(text))),
    named("ttl", "LOCK_TTL", |it, text| {
        Ok(it.ttl(duration::parse(text)?))
    }),
    named("wait", "LOCK_WAIT", |it, text| {
        Ok(match duration::parse_wait(text)? {
            Wait::AtMost(wait) => it.wait(wait),
            Wait::Forever => it.wait_forever(),
        })
    }),
    named("max_waiters", "LOCK_MAX_WAITERS", |it, text| {
        let number = text.parse();
        Ok(it.max_waiters(number.map_err(|_| format!("`{text}` is not a number"))?))
    }),
    named("unavailable_wait", "LOCK_UNAVAILABLE_WAIT", |it, text| {
        Ok(match duration::parse_wait(text)? {
            Wait::AtMost(wait) => it.unavailable_wait(wait),
            Wait::Forever => it.unavailable_wait_forever(),
        })
    }),
    named("connect_timeout", "LOCK_CONNECT_TIMEOUT", |it, text| {
        Ok(it.connect_timeout(duration::parse(text)?))
    }),
    named("lazy", "LOCK_LAZY", |mut it, text| {
        let lazy = text.parse();
        it.lazy = lazy.map_err(|_| format!("`{text}` is neither `true` nor `false`"))?;
        Ok(it)
    }),
    named("shutdown_grace", "LOCK_SHUTDOWN_GRACE", |it, text| {
        Ok(it.shutdown_grace(duration::parse(text)?))
    }),
    named("pool_size", "LOCK_POOL_SIZE", |it, text| {
        let number = text.parse();
        Ok(it.pool_size(number.map_err(|_| format!("`{text}` is not a number"))?))
    }),
    named("history", "LOCK_HISTORY", |it, text| {
        let number = text.parse();
        Ok(it.history(number.map_err(|_| format!("`{text}` is not a number"))?))
    }),
    named("replicas", "LOCK_REPLICAS", |it, text| {
        let number = text.parse();
        Ok(it.replicas(number.map_err(|_| format!("`{text}` is not a number"))?))
    }),
    named("quarantine", "LOCK_QUARANTINE", |it, text| {
        Ok(it.quarantine(duration::parse(text)?))
    }),
    #[cfg(feature = "tls")]
    named("ca", "LOCK_CA", |it, path| {
        Ok(it.with_tls(|tls| tls.ca_file(path)))
    }),
    #[cfg(feature = "tls")]
    named("cert", "LOCK_CERT", |it, path| {
        Ok(it.with_tls(|tls| tls.certificate(Pem::File(path.into()))))
    }),
    #[cfg(feature = "tls")]
    // `lockctl run` gives its command the lock's name in `LOCK_KEY`.
    named("key", "LOCK_CERT_KEY", |it, path| {
        Ok(it.with_tls(|tls| tls.key(Pem::File(path.into()))))
    }),
    #[cfg(feature = "tls")]
    named("server_name", "LOCK_SERVER_NAME", |it, name| {
        Ok(it.with_tls(|tls| tls.server_name(name)))
    }),
];

const fn named(name: &'static str, variable: &'static str, set: Set) -> Named {
    Named {
        name,
        variable,
        set,
    }
}

#[cfg(feature = "tls")]
impl LockConfig {
    fn with_tls(mut self, change: impl FnOnce(Tls) -> Tls) -> Self {
        let tls = self.tls.take().unwrap_or_default();
        self.tls(change(tls))
    }
}

impl Named {
    pub(super) fn set(&self, config: LockConfig, text: &str) -> Result<LockConfig, LockError> {
        (self.set)(config, text).map_err(|reason| LockError::invalid(self.name, reason))
    }
}

/// Takes the settings out of a URL, and refuses other parameters.
pub(super) fn from_url(mut config: LockConfig, mut url: Url) -> Result<LockConfig, LockError> {
    for setting in SETTINGS {
        if let Some(text) = url.take(setting.name)? {
            config = setting.set(config, &text)?;
        }
    }
    url.finish()?;
    Ok(config)
}

/// Reads the variables of the environment.
pub(super) fn from_env(mut config: LockConfig) -> Result<LockConfig, LockError> {
    for setting in SETTINGS {
        let invalid = |reason| LockError::invalid(setting.variable, reason);
        match std::env::var(setting.variable) {
            Ok(text) => config = (setting.set)(config, &text).map_err(invalid)?,
            Err(VarError::NotPresent) => {}
            Err(VarError::NotUnicode(_)) => return Err(invalid("it is not UTF-8 text".into())),
        }
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_named_after_its_setting() {
        for setting in SETTINGS {
            let variable = match setting.name {
                "key" => "LOCK_CERT_KEY".to_owned(),
                name => format!("LOCK_{}", name.to_uppercase()),
            };
            assert_eq!(setting.variable, variable);
        }
    }

    #[test]
    fn a_url_sets_what_the_setters_set() {
        let url = "memory:shop?prefix=north&ttl=1m+30s&wait=forever&connect_timeout=2s\
             &max_waiters=8&shutdown_grace=0s&pool_size=3&history=20&lazy=true&unavailable_wait=forever";
        let config = LockConfig::new(url).expect("valid");
        let same = LockConfig::new("memory:shop").expect("valid");
        let same = same
            .prefix("north")
            .ttl(std::time::Duration::from_secs(90))
            .wait_forever()
            .max_waiters(8)
            .connect_timeout(std::time::Duration::from_secs(2))
            .shutdown_grace(std::time::Duration::ZERO)
            .pool_size(3)
            .history(20)
            .lazy()
            .unavailable_wait_forever();
        assert_eq!(format!("{config:?}"), format!("{same:?}"));
    }

    #[test]
    fn an_error_names_the_setting() {
        for (parameter, starts) in [
            ("ttl=10", "invalid ttl: `10` is not a duration"),
            ("wait=never", "invalid wait: `never` is not a duration"),
            ("pool_size=two", "invalid pool_size: `two` is not a number"),
            ("lazy=1", "invalid lazy: `1` is neither `true` nor `false`"),
            ("tttl=1s", "invalid url: it has no parameter `tttl`"),
        ] {
            let error = LockConfig::new(format!("memory:?{parameter}")).expect_err(parameter);
            assert!(error.to_string().starts_with(starts), "{error}");
        }
    }
}
