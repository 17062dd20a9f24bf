//! Reads a value as each query does, for `fuzz/`.

use redis::Value;

use super::{history, overview, scan, status};
use crate::types::graph::{Graph, Look};
use crate::types::holder::Status;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::overview::Overview;

/// The locks that are seen in it, each alone and all together.
pub(in crate::backend::redis) fn read_all(value: &Value) -> (Option<Status>, Option<Overview>) {
    let key = LockKey::of("k");
    drop(history::read(value));
    let _ = scan::read_page(value);
    let status = status::read(key.clone(), value).map(|(status, _)| status);
    if let Some(status) = &status {
        let locks = [status.clone()];
        let look = || Look::at(&locks, &[(key.clone(), Kind::Exclusive)].into());
        drop(Graph::in_both(&look(), look()).finding());
    }
    let facts = overview::facts_about(&[key], value);
    let overview = facts.map(|(count, locks)| Overview::new(locks, Some(count)));
    (status, overview)
}
