//! What the server is told of the acquisitions, so that the same rules serve the search and the histories of runs.

use std::fmt::Debug;
use std::hash::Hash;
use std::ops::{Add, AddAssign, Sub};

use super::rules::{Bug, Rules};

/// A number of the model: a byte where states are searched, wide enough for a clock in a history.
pub trait Number:
    Copy + Ord + Debug + Default + Hash + From<u8> + Add<Output = Self> + AddAssign + Sub<Output = Self>
{
}

impl Number for u8 {}
impl Number for u64 {}

/// #chains: what an acquisition says of others of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Company {
    /// Nothing: `x`.
    Unsaid,
    /// More of them want the lock: `x+`.
    More,
    /// It is granted alone: `x-`.
    Alone,
}

/// The acquisitions, by the numbers of their tasks, and the times of the protocol.
pub trait Setting<N> {
    /// The times, and the broken rule.
    fn rules(&self) -> &Rules<N>;
    /// The client of an acquisition.
    fn client(&self, task: N) -> usize;
    /// The lock of an acquisition.
    fn lock(&self, task: N) -> usize;
    /// The ttl of its lease.
    fn ttl(&self, task: N) -> N;
    /// How long the lock cools down after it.
    fn cooldown(&self, task: N) -> N;
    /// How long its ticket lasts.
    fn ticket(&self, task: N) -> N;
    /// What it says of others.
    fn company(&self, task: N) -> Company;

    /// Whether this rule is broken.
    fn breaks(&self, bug: Bug) -> bool {
        self.rules().bug == Some(bug)
    }
}
