//! The calls beside those of claims: steps of queries, and the upkeep of the tables.

use std::sync::Arc;

use super::protocol::row::Row;
use super::protocol::statement::Statement;
use crate::backend::queue;
use crate::backend::queue::protocol::step::Step;
use crate::backend::queue::protocol::{call, reply};
use crate::types::key::LockKey;

/// The queue of a connection to PostgreSQL.
pub(super) type Queue = queue::Queue<Inspect>;
pub(super) type Call = call::Call<Inspect>;
pub(super) type Sent = call::Sent<Inspect>;
pub(super) type Reply = reply::Reply<Inspect>;

/// A call that is about no claim.
#[derive(Clone, Debug)]
pub(super) enum Inspect {
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
    /// Something that locks depend on.
    Look(Arc<Statement>),
}

/// A part of the locks, in the order of their names.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// The pattern for their full names.
    pub(super) glob: Box<str>,
    /// The name that it begins behind.
    pub(super) after: Box<str>,
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
