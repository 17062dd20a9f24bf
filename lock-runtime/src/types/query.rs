//! Queries about locks: status, lists, revocations.

use crate::types::answer::Reply;
#[cfg(feature = "testing")]
use crate::types::error::Cause;
use crate::types::finding::Finding;
use crate::types::health::Health;
use crate::types::history::Grant;
use crate::types::holder::Status;
use crate::types::key::{LockKey, escaped};
use crate::types::overview::Overview;

/// A query, with the sender for its answer.
#[derive(Debug)]
pub(crate) enum Query {
    Status(LockKey, Reply<Status>),
    /// The names of the held and cooling locks that match a pattern.
    List(Pattern, Reply<Vec<LockKey>>),
    /// The basic facts about the locks with holders or waiters that match a pattern.
    Overview(Pattern, Reply<Overview>),
    /// Revokes the lock; the answer is the number of holders.
    ForceRelease(LockKey, Reply<usize>),
    /// Asks the holders to yield; the answer is how many have heard of it.
    Ask(LockKey, Reply<usize>),
    /// The last grants of a lock, the newest first.
    History(LockKey, Reply<Vec<Grant>>),
    /// Whether the store answers.
    Health(Reply<Health>),
    /// Checks the assumptions of the promises on this store. A store without checks finds nothing.
    Diagnose(Reply<Vec<Finding>>),
}

#[cfg(feature = "testing")]
impl Query {
    /// The store cannot be reached.
    pub(crate) fn fail(self, cause: Cause) {
        match self {
            Self::Status(_, reply) => drop(reply.send(Err(cause))),
            Self::List(_, reply) => drop(reply.send(Err(cause))),
            Self::Overview(_, reply) => drop(reply.send(Err(cause))),
            Self::ForceRelease(_, reply) | Self::Ask(_, reply) => drop(reply.send(Err(cause))),
            Self::History(_, reply) => drop(reply.send(Err(cause))),
            Self::Health(reply) => drop(reply.send(Err(cause))),
            Self::Diagnose(reply) => drop(reply.send(Err(cause))),
        }
    }
}

/// A pattern for names: `*` stands for any text, `?` for any character.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(String);

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        Self(escaped(text, false))
    }

    /// The pattern, escaped like a name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn matches(&self, key: &LockKey) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let name: Vec<char> = key.as_str().chars().collect();
        let (mut at, mut to) = (0, 0);
        // The position of the last `*`, and the end of its match.
        let mut star = None;
        while to < name.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, to));
                    at += 1;
                }
                Some(&c) if c == '?' || c == name[to] => {
                    at += 1;
                    to += 1;
                }
                _ => match star {
                    Some((position, reach)) => {
                        star = Some((position, reach + 1));
                        at = position + 1;
                        to = reach + 1;
                    }
                    None => return false,
                },
            }
        }
        pattern[at..].iter().all(|c| *c == '*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_text() {
        let matches = |pattern, name| Pattern::new(pattern).matches(&LockKey::of(name));
        for pattern in [
            "*", "stock:7", "stock:?", "st*7", "*:*", "stock:7*", "s*o*k*",
        ] {
            assert!(matches(pattern, "stock:7"), "{pattern}");
        }
        for pattern in ["", "stock", "?", "stock:??", "*8", "stock:[7]", "ock:7"] {
            assert!(!matches(pattern, "stock:7"), "{pattern}");
        }
        assert!(matches("a*b", "aXbYb") && matches("{*}", "{7}"));
    }
}
