//! What a store of locks has to offer, in words of leases and not of any store.

pub(crate) mod memory;
#[cfg(feature = "redis")]
pub(crate) mod redis;

use std::error::Error;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::clock::Moment;
use crate::config::LockConfig;
use crate::error::LockError;
use crate::holder::Holder;
use crate::query::Query;
use crate::target::Target;
use crate::terms::{LeaseId, Terms};

/// What a backend says of a failure; shared, since one broken connection fails
/// many operations.
pub(crate) type Cause = Arc<dyn Error + Send + Sync>;

/// What the driver asks of a backend.
#[derive(Debug)]
pub(crate) enum Request {
    /// Take the lock, waiting in line unless it is a try. Goes on until it is
    /// granted, fails, or is abandoned.
    Acquire(Arc<Terms>),
    /// Nobody wants this acquisition any more: leave the line, and let go of a
    /// grant that raced, which does not rest. Answered with [`Outcome::Released`].
    Abandon(LeaseId),
    /// Extend the lease to its full ttl.
    Renew(LeaseId),
    /// Let go, if it is still ours. Answered with [`Outcome::Released`].
    Release(LeaseId),
    /// Answered by itself.
    Query(Query),
}

/// What a backend answers. Every moment called `since` lies before the command
/// was sent that the answer rests on, so that deadlines count from there.
#[derive(Debug)]
// Nothing fails in memory.
#[cfg_attr(not(feature = "redis"), allow(dead_code))]
pub(crate) enum Outcome {
    /// The lock is ours for `ttl` from `since`, which may be shorter than what
    /// was asked for; a renewal makes it whole.
    Granted {
        id: LeaseId,
        fence: u64,
        since: Moment,
        ttl: Duration,
    },
    /// In line, and the server answers.
    Waiting {
        id: LeaseId,
        holder: Option<Box<Holder>>,
    },
    /// The one try found it held.
    Busy {
        id: LeaseId,
        holder: Option<Box<Holder>>,
    },
    /// It is held with another number of permits.
    Differs {
        id: LeaseId,
        permits: u32,
    },
    /// Cannot be asked at the moment; the backend keeps trying.
    Trouble {
        id: LeaseId,
        cause: Cause,
    },
    /// Will never be granted.
    Failed {
        id: LeaseId,
        cause: Cause,
    },
    Renewed {
        id: LeaseId,
        since: Moment,
    },
    /// A renewal found the lock gone or somebody else's.
    NotHeld {
        id: LeaseId,
    },
    /// It is not known whether the renewal was done.
    RenewFailed {
        id: LeaseId,
        cause: Cause,
    },
    /// The lock is not ours any more; `Ok(true)` where it was until now.
    Released {
        id: LeaseId,
        result: Result<bool, Cause>,
    },
}

/// A store of locks. Lives on the driver's thread; nothing in it may block.
///
/// Between an [`Acquire`](Request::Acquire) and the outcome that ends it, any
/// number of [`Waiting`](Outcome::Waiting) and [`Trouble`](Outcome::Trouble)
/// may come; after an [`Abandon`](Request::Abandon) no grant of it follows.
pub(crate) trait Backend: Send {
    /// Takes note of one request; it is sent by the next poll, together with
    /// all others.
    fn submit(&mut self, now: Moment, request: Request);

    /// The next outcome. Sends what was submitted.
    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome>;

    /// Whether a request that is sent now would not be better sent with others:
    /// no answer is waited for that will make room for them.
    fn is_quiet(&self) -> bool;
}

/// The backend that the configuration names, connected.
pub(crate) async fn connect(config: &LockConfig) -> Result<Box<dyn Backend>, LockError> {
    match &config.target {
        Target::Memory { name } => {
            // No prefix has a control character in it.
            let name = name
                .as_ref()
                .map(|name| format!("{}\0{name}", config.prefix));
            let memory = memory::Memory::open(name.as_deref(), config.clock.clone());
            Ok(Box::new(memory))
        }
        #[cfg(feature = "redis")]
        Target::Redis(info) => Ok(Box::new(redis::Redis::connect(config, info).await?)),
    }
}
