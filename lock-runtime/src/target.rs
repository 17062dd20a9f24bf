//! Where the locks are: what the URL of a configuration says.

use std::fmt;

use crate::error::LockError;

/// The backend, and how to reach it.
#[derive(Clone)]
pub(crate) enum Target {
    Memory {
        name: Option<Box<str>>,
    },
    #[cfg(feature = "redis")]
    Redis(Box<redis::ConnectionInfo>),
}

impl Target {
    pub(crate) fn parse(url: &str) -> Result<Self, LockError> {
        let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
        match scheme {
            "memory" => Ok(Self::Memory {
                name: (!rest.is_empty()).then(|| rest.into()),
            }),
            "redis" | "redis+unix" => Self::parse_redis(url),
            // The URL is not shown, there may be a password in it.
            _ => Err(LockError::invalid(
                "url",
                "it must begin with `memory:`, `redis://` or `redis+unix://`",
            )),
        }
    }

    #[cfg(feature = "redis")]
    fn parse_redis(url: &str) -> Result<Self, LockError> {
        use redis::IntoConnectionInfo as _;

        let info = url
            .into_connection_info()
            .map_err(|error| LockError::invalid("url", error.category()))?;
        Ok(Self::Redis(Box::new(info)))
    }

    #[cfg(not(feature = "redis"))]
    fn parse_redis(_url: &str) -> Result<Self, LockError> {
        Err(LockError::invalid(
            "url",
            "lock-runtime was built without its feature `redis`",
        ))
    }
}

/// Names the place and never the password.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { name } => write!(f, "memory:{}", name.as_deref().unwrap_or("")),
            #[cfg(feature = "redis")]
            Self::Redis(info) => write!(f, "redis at {}", info.addr()),
        }
    }
}
