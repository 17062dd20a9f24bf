//! The nodes that keep locks closed after their holders, which are deleted when that time has passed.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::base::clock::Moment;

/// Later than the end by the server's clock, which may run more slowly: a ticket can be adopted until then.
const LATER: Duration = Duration::from_secs(1);
/// By which part of the time clocks differ at most.
const DRIFT: u32 = 50;

/// The paths of the nodes, by when they are deleted. Mostly, whoever takes the lock next deletes them before; without them,
/// a lock that nobody takes again would leave its node for ever.
#[derive(Debug, Default)]
pub(super) struct Closed(BTreeSet<(Moment, String)>);

impl Closed {
    /// A node was created now, and keeps its lock closed for this time.
    pub(super) fn add(&mut self, now: Moment, time: Duration, path: String) {
        let end = now.after(time + time / DRIFT + LATER);
        self.0.insert((end, path));
    }

    /// When the next one is to be deleted.
    pub(super) fn next_end(&self) -> Option<Moment> {
        self.0.first().map(|(end, _)| *end)
    }

    /// The path of one that is to be deleted.
    pub(super) fn ended(&mut self, now: Moment) -> Option<String> {
        self.next_end().filter(|end| *end <= now)?;
        self.0.pop_first().map(|(_, path)| path)
    }
}
