//! Queries that all servers are asked, and the one answer to each.

use std::collections::{BTreeMap, HashSet};

use super::claim::majority;
use super::merging::{Sight, merge};
use crate::backend::Outcome;
use crate::types::error::Cause;
use crate::types::query::{Found, QueryId};

/// The answers of the servers that have answered.
#[derive(Debug)]
pub(super) struct Inspections {
    open: BTreeMap<QueryId, Answers>,
    servers: usize,
}

#[derive(Debug, Default)]
struct Answers {
    from: HashSet<usize>,
    found: Vec<Found>,
    failed: Option<Cause>,
}

impl Inspections {
    pub(super) fn new(servers: usize) -> Self {
        Self {
            open: BTreeMap::new(),
            servers,
        }
    }

    /// Takes in the answer of a server; the answer of all, once it is the last.
    pub(super) fn answered(
        &mut self,
        server: usize,
        id: QueryId,
        result: Result<Found, Cause>,
    ) -> Option<Outcome> {
        let answers = self.open.entry(id).or_default();
        answers.from.insert(server);
        match result {
            Ok(found) => answers.found.push(found),
            Err(cause) => answers.failed = Some(cause),
        }
        if answers.from.len() < self.servers {
            return None;
        }
        let Answers { found, failed, .. } = self.open.remove(&id)?;
        let majority = majority(self.servers);
        let result = match failed {
            Some(cause) if found.len() < majority => Err(cause),
            _ => Ok(merge(found, Sight::new(self.servers, majority))),
        };
        Some(Outcome::Answered { id, result })
    }
}
