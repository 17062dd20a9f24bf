//! The entries of exclusive locks on a store that orders them, revision by revision, and the bodies that began.

use std::collections::{BTreeMap, BTreeSet};

use spec::revisions::{Event, Owner, Revisions, Step};

use super::Verdict;

/// What was done to locks.
#[derive(Debug, Default)]
pub(super) struct Locks {
    steps: BTreeMap<String, Vec<Step>>,
    /// Locks that were shared, too.
    shared: BTreeSet<String>,
    /// From where on what was done is not known whole.
    until: Option<u64>,
    /// How many steps that leaves out.
    outside: usize,
}

impl Locks {
    /// Leaves out what was done from this revision on.
    pub(super) fn until(until: Option<u64>) -> Self {
        Self {
            until,
            ..Self::default()
        }
    }

    /// An entry of a lock was written or deleted.
    pub(super) fn changed(&mut self, lock: &str, at: u64, event: Event) {
        if self.until.is_some_and(|until| at >= until) {
            self.outside += 1;
            return;
        }
        let steps = self.steps.entry(lock.to_owned()).or_default();
        steps.push(Step { at, event });
    }

    /// The model does not have what was done to this lock.
    pub(super) fn leave_out(&mut self, lock: &str) {
        self.shared.insert(lock.to_owned());
    }

    /// What the model says, if these bodies began: each with its lock, its fence and its process.
    pub(super) fn verdict(
        mut self,
        begun: impl IntoIterator<Item = (String, u64, u32)>,
    ) -> Verdict {
        for (lock, at, process) in begun {
            self.changed(&lock, at, Event::Began(process));
        }
        let mut verdict = Verdict {
            outside: self.outside,
            ..Verdict::default()
        };
        for (name, mut steps) in self.steps {
            if self.shared.contains(&name) {
                verdict.outside += steps.len();
                continue;
            }
            // A body begins behind what its revision has done.
            steps.sort_by_key(|it| it.at);
            let mut lock = Revisions::default();
            let refusal = steps.into_iter().find_map(|it| lock.step(it).err());
            verdict.accepted += lock.accepted();
            let refusal = refusal.map(|it| format!("{name}: {it}"));
            verdict.refused.extend(refusal);
        }
        verdict
    }
}

/// Whose an entry is: a token and a process are the first words of what is written about it. `None` if a cooldown or a
/// ticket keeps the lock closed.
pub(super) fn owner<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Owner> {
    let (token, process) = (words.next()?, words.next()?);
    let process = process.split('@').next()?.parse().ok()?;
    let token = token.to_owned();
    (!token.starts_with(['-', '='])).then_some(Owner { process, token })
}
