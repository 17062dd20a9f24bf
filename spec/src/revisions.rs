//! The history of a lock on etcd, which the rules of the searched queue accept or refuse step by step: what each revision
//! has done to the entries, and under which fences bodies have begun.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use crate::entries::{self, Entry};

/// How many steps a refusal shows.
const SHOWN: usize = 50;

/// A revision, and what happened at it.
#[derive(Clone, Debug)]
pub struct Step {
    /// The revision.
    pub at: u64,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// An entry was made, or written again.
    Written {
        /// Its key.
        key: String,
        /// The revision that made it.
        made: u64,
        /// Whose it is; `None` while a cooldown or a ticket keeps the lock closed.
        owner: Option<Owner>,
    },
    /// An entry was deleted, or ended with its lease.
    Deleted(String),
    /// A body of this process began, with this revision as its fence.
    Began(u32),
}

/// Whose an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process.
    pub process: u32,
    /// What tells the acquisition from all others.
    pub token: String,
}

/// A lock, as its history has it until now.
#[derive(Debug, Default)]
pub struct Revisions {
    queue: Vec<Entry<u64, String>>,
    owners: BTreeMap<String, Option<Owner>>,
    /// The acquisitions whose bodies have begun.
    begun: HashSet<String>,
    steps: Vec<Step>,
}

/// The first step that the rules do not have.
#[derive(Debug)]
pub struct Refusal {
    steps: Vec<Step>,
    state: String,
    why: &'static str,
}

impl Revisions {
    /// How many steps were accepted.
    pub fn accepted(&self) -> usize {
        self.steps.len()
    }

    /// Takes the next step: those of a revision before the bodies that begin at it.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if no run of the model has it after the earlier ones.
    pub fn step(&mut self, step: Step) -> Result<(), Refusal> {
        let taken = self.take(step.at, &step.event);
        self.steps.push(step);
        taken.map_err(|why| {
            let first = self.steps.len().saturating_sub(SHOWN);
            let steps = self.steps.split_off(first);
            let state = format!("{:?}, of {:?}", self.queue, self.owners);
            Refusal { steps, state, why }
        })
    }

    /// Changes nothing where it refuses.
    fn take(&mut self, at: u64, event: &Event) -> Result<(), &'static str> {
        match event {
            Event::Written { key, made, owner } if *made == at => {
                if self.owners.contains_key(key) {
                    return Err("there is such an entry already");
                }
                if self.queue.iter().any(|it| it.revision >= at) {
                    return Err("a later entry is in the queue, or one that is as old");
                }
                entries::join(&mut self.queue, at, key.clone());
                self.owners.insert(key.clone(), owner.clone());
            }
            Event::Written { key, made, owner } => {
                let (own, _) = entries::look(&self.queue, key);
                if own.is_none_or(|own| own.revision != *made) {
                    return Err("there is no such entry");
                }
                // It is closed before somebody else adopts it.
                if let (Some(Some(former)), Some(next)) = (self.owners.get(key), owner)
                    && former != next
                {
                    return Err("the entry belongs to another acquisition");
                }
                self.owners.insert(key.clone(), owner.clone());
            }
            Event::Deleted(key) => {
                if entries::remove(&mut self.queue, |it| it == key).is_empty() {
                    return Err("there is no such entry");
                }
                self.owners.remove(key);
            }
            Event::Began(process) => {
                let is_first = |key: &&String| entries::look(&self.queue, key).1.is_empty();
                let first = self.owners.keys().find(is_first);
                let owner = first.and_then(|key| self.owners[key].as_ref());
                let Some(owner) = owner.filter(|it| it.process == *process) else {
                    return Err("the first entry is not one of this process");
                };
                if !self.begun.insert(owner.token.clone()) {
                    return Err("a body of this acquisition has begun already");
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, state, why } = self;
        writeln!(f, "the model refuses the last of these steps: {why}")?;
        for Step { at, event } in steps {
            writeln!(f, "  {at}: {event:?}")?;
        }
        write!(f, "state before it:\n  {state}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: u64, key: &str, process: u32) -> Step {
        // The key serves as the token.
        of(at, key, at, process, key)
    }

    fn of(at: u64, key: &str, made: u64, process: u32, token: &str) -> Step {
        let token = token.to_owned();
        written(at, key, made, Some(Owner { process, token }))
    }

    /// A cooldown or a ticket keeps the lock closed.
    fn closed(at: u64, key: &str, made: u64) -> Step {
        written(at, key, made, None)
    }

    fn written(at: u64, key: &str, made: u64, owner: Option<Owner>) -> Step {
        let key = key.to_owned();
        let event = Event::Written { key, made, owner };
        Step { at, event }
    }

    fn deleted(at: u64, key: &str) -> Step {
        let event = Event::Deleted(key.to_owned());
        Step { at, event }
    }

    fn began(at: u64, process: u32) -> Step {
        let event = Event::Began(process);
        Step { at, event }
    }

    fn run(steps: Vec<Step>) -> Result<usize, String> {
        let mut lock = Revisions::default();
        for step in steps {
            lock.step(step).map_err(|it| it.to_string())?;
        }
        Ok(lock.accepted())
    }

    #[test]
    fn a_lock_goes_from_entry_to_entry_and_from_a_ticket_to_its_adopter() {
        let steps = vec![
            entry(2, "a", 1),
            began(2, 1),
            entry(3, "b", 2),
            closed(5, "a", 2),
            of(6, "a", 2, 3, "adopter"),
            began(6, 3),
            deleted(9, "a"),
            began(9, 2),
        ];
        assert_eq!(run(steps), Ok(8));
    }

    #[test]
    fn what_no_run_of_the_model_has_is_refused_with_its_reason() {
        let first = || entry(2, "a", 1);
        for (steps, why) in [
            (vec![entry(3, "b", 2), began(3, 2)], "the first entry"),
            (vec![began(2, 1), began(4, 1)], "begun already"),
            (vec![closed(4, "a", 2), began(4, 1)], "the first entry"),
            (vec![deleted(4, "a"), began(4, 1)], "the first entry"),
            (vec![deleted(4, "b")], "no such entry"),
            (vec![closed(4, "b", 3)], "no such entry"),
            (vec![entry(2, "b", 2)], "as old"),
            (vec![closed(5, "a", 5)], "such an entry already"),
            (vec![of(5, "a", 2, 3, "thief")], "another acquisition"),
        ] {
            let refusal = run([vec![first()], steps].concat()).expect_err(why);
            assert!(refusal.contains(why), "{refusal}");
        }
    }
}
