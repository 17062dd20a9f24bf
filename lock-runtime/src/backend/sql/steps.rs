//! The calls beside those of claims: steps of queries, and the upkeep of the tables.

use std::sync::Arc;

use super::row::Row;
use crate::backend::queue;
use crate::backend::queue::protocol::step::Step;
use crate::backend::queue::protocol::{call, reply};
use crate::types::key::LockKey;

/// The queue of a connection to a database.
pub(crate) type Queue = queue::Queue<Inspect>;
pub(crate) type Call = call::Call<Inspect>;
pub(crate) type Sent = call::Sent<Inspect>;
pub(crate) type Reply = reply::Reply<Inspect>;

/// A call that is about no claim.
#[derive(Clone, Debug)]
pub(crate) enum Inspect {
    Status(LockKey),
    /// The names of held locks behind this one.
    List(Page),
    /// The basic facts about the locks behind this one.
    Overview(Page),
    ForceRelease(LockKey),
    /// Asks its holders to yield.
    Ask(LockKey),
    /// Its last grants.
    History(LockKey),
    /// A statement that shows something that locks depend on.
    Look(Arc<str>),
}

/// How many locks one page has.
pub(crate) const PAGE: usize = 500;

/// A part of the locks, in the order of their names.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// The pattern for their full names.
    pub(crate) glob: Box<str>,
    /// The name that it begins behind.
    pub(crate) after: Box<str>,
}

impl Step for Inspect {
    type Answer = Vec<Row>;
    type Route = ();

    fn may_grant(&self) -> Option<&LockKey> {
        match self {
            Self::ForceRelease(key) => Some(key),
            _ => None,
        }
    }

    fn key(&self) -> Option<&LockKey> {
        match self {
            Self::Status(key) | Self::ForceRelease(key) | Self::Ask(key) | Self::History(key) => {
                Some(key)
            }
            _ => None,
        }
    }
}
