//! A leader, as those who observe an election see it.

use std::time::SystemTime;

use crate::types::fence::FencingToken;
use crate::types::holder::{Holder, Status};

/// A leader of an [`Election`](crate::Election).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// What the [candidate](crate::Election::candidate) publishes.
    pub data: Box<str>,
    /// Its fencing token, which is larger than those of the leaders that were shown before. On
    /// ZooKeeper and etcd, it is the number of the leader's position in the queue, which is smaller
    /// than its own token if it has waited.
    pub fencing_token: FencingToken,
    /// Since when it leads; `None` if the store knows only when it joined the queue: on ZooKeeper, and
    /// on etcd if it has waited.
    pub since: Option<SystemTime>,
    /// The number of its process.
    pub process: Option<u32>,
    /// The name of its machine.
    pub host: Option<Box<str>>,
}

impl Leader {
    /// The holder who leads, if it has published its data and its fencing token is known.
    pub(crate) fn among(status: Status) -> Option<Self> {
        status.holders.into_iter().find_map(Self::of)
    }

    fn of(holder: Holder) -> Option<Self> {
        if holder.cooling_down || holder.ticket {
            return None;
        }
        Some(Self {
            data: holder.data?,
            fencing_token: holder.fencing_token?,
            since: holder.since.filter(|_| !holder.may_have_waited),
            process: holder.process,
            host: holder.host,
        })
    }
}
