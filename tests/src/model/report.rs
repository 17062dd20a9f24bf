//! What a run has shown, and whether that is enough.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::plan::Kind;
use crate::Chains;

/// Counts, and what must not be.
#[derive(Debug, Default)]
pub struct Report {
    /// How many operations began.
    pub operations: usize,
    /// How many were granted to one holder alone.
    pub exclusive: usize,
    /// How many were granted to readers.
    pub read: usize,
    /// How many were granted one of several permits.
    pub permits: usize,
    /// How many of all these were for several keys.
    pub several: usize,
    /// How often somebody held a key beside somebody else, as readers and permits may.
    pub together: usize,
    /// How many callers learnt of a loss.
    pub losses: usize,
    /// How many callers lost interest.
    pub cancelled: usize,
    /// How many callers were refused, by the error.
    pub errors: BTreeMap<String, usize>,
    /// How often a process was killed.
    pub kills: usize,
    /// How often a process stood still.
    pub stops: usize,
    /// How often the connections of a process were closed.
    pub cuts: usize,
    /// How often a lock was revoked.
    pub revoked: usize,
    /// What came of those to whom a lock was handed together with another one, if the store shows that.
    pub chains: Option<Chains>,
    /// What must not be.
    pub violations: Vec<Violation>,
}

/// What no lock would do.
#[derive(Debug, Default)]
pub struct Violation {
    /// When it happened.
    pub at: Duration,
    /// How many operations had begun by then.
    pub after: usize,
    /// The number of the operation.
    pub operation: usize,
    /// What it did.
    pub what: String,
}

impl Report {
    pub(super) fn complain(&mut self, at: Duration, operation: usize, what: impl fmt::Display) {
        self.violations.push(Violation {
            at,
            after: 0,
            operation,
            what: what.to_string(),
        });
    }

    /// Puts the violations in their order, given when each operation began.
    pub(super) fn settle(&mut self, begun: &[Duration]) {
        for violation in &mut self.violations {
            violation.after = begun.partition_point(|begun| *begun <= violation.at);
        }
        self.violations.sort_by_key(|violation| violation.at);
    }

    pub(super) fn count(&mut self, kind: Kind, keys: usize) {
        self.several += usize::from(keys > 1);
        match kind {
            Kind::Exclusive => self.exclusive += 1,
            Kind::Read => self.read += 1,
            Kind::Permits(_) => self.permits += 1,
        }
    }

    /// Counts what another run has shown to this one.
    pub fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.exclusive += other.exclusive;
        self.read += other.read;
        self.permits += other.permits;
        self.several += other.several;
        self.together += other.together;
        self.losses += other.losses;
        self.cancelled += other.cancelled;
        for (error, count) in other.errors {
            *self.errors.entry(error).or_default() += count;
        }
        self.kills += other.kills;
        self.stops += other.stops;
        self.cuts += other.cuts;
        self.revoked += other.revoked;
        self.chains = match (self.chains.take(), other.chains) {
            (Some(mut chains), Some(others)) => {
                chains.formed += others.formed;
                chains.entered += others.entered;
                Some(chains)
            }
            (chains, others) => chains.or(others),
        };
        self.violations.extend(other.violations);
    }

    /// What is wrong with the run, also if it has shown too little.
    pub fn complaints(&self, operations: usize) -> Vec<String> {
        let violations = self.violations.iter().take(10);
        let violations = violations.map(ToString::to_string);
        violations.chain(self.lacks(operations)).collect()
    }

    /// Of what it has shown too little for so many operations.
    pub fn lacks(&self, operations: usize) -> Vec<String> {
        let mut lacks = Vec::new();
        let chains = self.chains.as_ref().map(|chains| {
            [
                ("chains", chains.formed, 2),
                ("hand-overs in chains", chains.entered, 2),
            ]
        });
        let chains = chains.into_iter().flatten();
        // So many in every thousand operations: half of what is usual at the most.
        for (what, count, least) in [
            ("operations", self.operations, 1000),
            ("exclusive grants", self.exclusive, 60),
            ("read grants", self.read, 60),
            ("permits", self.permits, 60),
            ("grants of several keys", self.several, 25),
            ("holders beside others", self.together, 30),
            ("losses", self.losses, 2),
            ("cancellations", self.cancelled, 10),
            ("kills", self.kills, 1),
            ("stops", self.stops, 1),
            ("cuts", self.cuts, 1),
            ("locks revoked", self.revoked, 1),
        ]
        .into_iter()
        .chain(chains)
        {
            if count < least * operations / 1000 {
                lacks.push(format!("only {count} {what}: the run shows nothing"));
            }
        }
        lacks
    }

    /// The names of the numbers of a line.
    pub const HEAD: &str = "operations exclusive   read permits several together losses cancelled contended unavailable invalid kills stops  cuts revoked chains longest followed again gone";
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            at,
            after,
            operation,
            what,
        } = self;
        write!(
            f,
            "after {after} operations: operation {operation} {what} at {at:?}"
        )
    }
}

/// The numbers under [`Report::HEAD`].
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = |error| self.errors.get(error).copied().unwrap_or(0);
        let none = Chains::default();
        let chains = self.chains.as_ref().unwrap_or(&none);
        write!(
            f,
            "{:>10} {:>9} {:>6} {:>7} {:>7} {:>8} {:>6} {:>9} {:>9} {:>11} {:>7} {:>5} {:>5} {:>5} {:>7} {:>6} {:>7} {:>8} {:>5} {:>4}",
            self.operations,
            self.exclusive,
            self.read,
            self.permits,
            self.several,
            self.together,
            self.losses,
            self.cancelled,
            failed("contended"),
            failed("unavailable"),
            failed("invalid-options"),
            self.kills,
            self.stops,
            self.cuts,
            self.revoked,
            chains.formed,
            chains.longest,
            chains.entered,
            chains.started_over,
            chains.gone(),
        )
    }
}
