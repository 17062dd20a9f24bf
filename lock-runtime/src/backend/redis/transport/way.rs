//! The target of a connection: a known address, or the master that sentinels
//! name.

use std::sync::Arc;
use std::time::Duration;

use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::sentinel::{Master, Sentinels};
use crate::backend::transport::endpoint::Route;

/// How to find a server.
#[derive(Clone)]
pub(crate) enum Way {
    Known(Route),
    Sentinels(Arc<Sentinels>),
}

impl Way {
    /// The route to the server, and who it is if sentinels name it within this time.
    pub(super) async fn find(&self, time: Duration) -> Result<(Route, Option<Master>), Trouble> {
        match self {
            Self::Known(route) => Ok((route.clone(), None)),
            Self::Sentinels(sentinels) => {
                let (master, route) = sentinels.find(time).await?;
                Ok((route, Some(master)))
            }
        }
    }

    /// The master, as far as sentinels have named it.
    pub(super) fn master(&self) -> Option<Master> {
        match self {
            Self::Known(_) => None,
            Self::Sentinels(sentinels) => sentinels.master(),
        }
    }

    /// Whether another server may replace the one that it leads to.
    pub(super) fn may_change(&self) -> bool {
        matches!(self, Self::Sentinels(_))
    }

    /// The message about a server that does not answer.
    pub(super) fn silence(&self) -> &'static str {
        match self {
            Self::Known(route) if route.is_encrypted() => {
                "the server did not answer in time: perhaps it does not encrypt on this port, write `redis` for `rediss` in the URL"
            }
            Self::Known(route) => route.silence(),
            Self::Sentinels(_) => "the master that the sentinels name did not answer in time",
        }
    }
}
