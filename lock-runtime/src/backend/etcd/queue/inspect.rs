//! Inspections: who holds a lock, which locks there are, and taking one away.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use super::order::Recipient;
use crate::backend::Outcome;
use crate::backend::etcd::protocol::call::{Call, Reply, Sent};
use crate::backend::etcd::protocol::entry::{self, Entry};
use crate::backend::etcd::protocol::keys::{Keys, Span};
use crate::backend::etcd::protocol::messages::{KeyValue, RangeResponse};
use crate::backend::etcd::protocol::trouble::{Trouble, cause};
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::health::Health;
use crate::types::holder::Status;
use crate::types::key::LockKey;
use crate::types::overview::{MOST_HOLDERS, Overview, Summary};
use crate::types::query::{Found, Pattern, Query, QueryId};

/// Whoever asks does not wait for longer.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// How many keys are read at once.
const PAGE: i64 = 1_000;
/// How many waiters of one lock a status names.
const MOST_IN_LINE: usize = 1_000;
/// How many entries one call deletes; a member refuses 128.
const AT_ONCE: usize = 100;

/// The queries that are not answered yet, and the answers to the others.
#[derive(Debug, Default)]
pub(super) struct Inspections {
    open: HashMap<QueryId, Inspection>,
    answers: VecDeque<Outcome>,
}

#[derive(Debug)]
enum Inspection {
    /// The entries that were read so far.
    Status(LockKey, Vec<KeyValue>),
    List {
        pattern: Pattern,
        found: BTreeSet<LockKey>,
    },
    /// The entries that were read so far.
    Overview(Pattern, Vec<KeyValue>),
    /// The entries that are still to be deleted, and how many were.
    ForceRelease(Vec<Vec<u8>>, usize),
    /// When it was asked.
    Health(Moment),
}

/// What follows from an answer.
enum Next {
    Call(Call),
    Answer(Found),
}

impl Inspections {
    /// The first call for a query.
    pub(super) fn begin(
        &mut self,
        now: Moment,
        id: QueryId,
        query: Query,
        keys: &Keys,
    ) -> Sent<Recipient> {
        let (inspection, call) = match query {
            Query::Status(key) => {
                let call = Call::page(keys.line(&key), PAGE, false);
                (Inspection::Status(key, Vec::new()), call)
            }
            Query::List(pattern) => {
                let found = BTreeSet::new();
                let call = Call::page(keys.all(), PAGE, true);
                (Inspection::List { pattern, found }, call)
            }
            Query::Overview(pattern) => {
                let call = Call::page(keys.all(), PAGE, false);
                (Inspection::Overview(pattern, Vec::new()), call)
            }
            Query::ForceRelease(key) => {
                let inspection = Inspection::ForceRelease(Vec::new(), 0);
                (inspection, Call::keys(keys.line(&key)))
            }
            // The backend asks the members by itself for findings.
            Query::Health | Query::Diagnose => {
                let call = Call::get(keys.nothing());
                (Inspection::Health(now), call)
            }
        };
        self.open.insert(id, inspection);
        sent(now, id, call)
    }

    pub(super) fn next_answer(&mut self) -> Option<Outcome> {
        self.answers.pop_front()
    }

    /// Takes in an answer; gives out the call that follows from it.
    pub(super) fn answered(
        &mut self,
        now: Moment,
        id: QueryId,
        result: Result<Reply, Trouble>,
        keys: &Keys,
    ) -> Option<Sent<Recipient>> {
        let inspection = self.open.get_mut(&id)?;
        let next = match result {
            Ok(reply) => inspection.answered(now, reply, keys),
            Err(trouble) => Err(trouble.cause()),
        };
        let result = match next {
            Ok(Next::Call(call)) => return Some(sent(now, id, call)),
            Ok(Next::Answer(found)) => Ok(found),
            Err(cause) => Err(cause),
        };
        self.open.remove(&id);
        self.answers.push_back(Outcome::Answered { id, result });
        None
    }

    pub(super) fn fail_all(&mut self, trouble: &Trouble) {
        for (id, _) in self.open.drain() {
            let result = Err(trouble.cause());
            self.answers.push_back(Outcome::Answered { id, result });
        }
    }
}

impl Inspection {
    fn answered(&mut self, now: Moment, reply: Reply, keys: &Keys) -> Result<Next, Cause> {
        Ok(match (self, reply) {
            (Self::Status(key, read), Reply::Range(range)) => {
                let rest = rest(&range, keys.line(key));
                read.extend(range.kvs);
                if let Some(rest) = rest {
                    return Ok(Next::Call(Call::page(rest, PAGE, false)));
                }
                let line = entry::line(keys, std::mem::take(read));
                let held = entry::holders(&line);
                let (holders, waiters) = line.split_at(held);
                let named = waiters.iter().take(MOST_IN_LINE);
                Next::Answer(Found::Status(Status {
                    holders: holders.iter().map(Entry::holder).collect(),
                    waiting: waiters.len(),
                    waiters: named.map(Entry::waiter).collect(),
                    ..Status::free(key.clone())
                }))
            }
            (Self::List { pattern, found }, Reply::Range(range)) => {
                let rest = rest(&range, keys.all());
                let read = range.kvs.iter().filter_map(|kv| keys.read(&kv.key));
                found.extend(read.map(|(lock, ..)| lock).filter(|it| pattern.matches(it)));
                if let Some(rest) = rest {
                    return Ok(Next::Call(Call::page(rest, PAGE, true)));
                }
                let found = std::mem::take(found);
                Next::Answer(Found::List(found.into_iter().collect()))
            }
            (Self::Overview(pattern, read), Reply::Range(range)) => {
                let rest = rest(&range, keys.all());
                read.extend(range.kvs);
                if let Some(rest) = rest {
                    return Ok(Next::Call(Call::page(rest, PAGE, false)));
                }
                let entries = entry::line(keys, std::mem::take(read));
                Next::Answer(Found::Overview(overview(entries, pattern)))
            }
            (Self::ForceRelease(left, _), Reply::Range(range)) => {
                let mut line = entry::line(keys, range.kvs);
                line.truncate(entry::holders(&line));
                left.extend(line.into_iter().map(|entry| entry.key));
                delete_some(left, 0)
            }
            (Self::ForceRelease(left, count), Reply::Txn(txn)) => {
                *count += txn.deleted();
                delete_some(left, *count)
            }
            (Self::Health(asked), Reply::Range(_)) => {
                Next::Answer(Found::Health(Health::reached(now.since(*asked))))
            }
            _ => return Err(cause("the answer belongs to another call")),
        })
    }
}

fn sent(at: Moment, id: QueryId, call: Call) -> Sent<Recipient> {
    Sent {
        to: Recipient::Query(id),
        call,
        at,
        call_timeout: PATIENCE,
    }
}

/// What is left to read after a page.
fn rest(page: &RangeResponse, all: Span) -> Option<Span> {
    let last = page.kvs.last().filter(|_| page.more)?;
    Some(Span {
        // The first key after it.
        key: [&last.key[..], &[0]].concat(),
        end: all.end,
    })
}

/// The locks that match, from the entries of all.
fn overview(entries: Vec<Entry>, pattern: &Pattern) -> Overview {
    let mut lines = BTreeMap::<_, Vec<_>>::new();
    for entry in entries {
        if pattern.matches(&entry.lock) {
            lines.entry(entry.lock.clone()).or_default().push(entry);
        }
    }
    let summaries = lines.into_iter().map(|(key, line)| summary(key, &line));
    Overview::new(summaries.collect(), None)
}

fn summary(key: LockKey, line: &[Entry]) -> Summary {
    let (held, waiting) = line.split_at(entry::holders(line));
    let holders: Vec<_> = held.iter().map(Entry::holder).collect();
    let working = holders.iter().position(|it| !it.resting);
    Summary {
        key,
        kind: working.map(|at| held[at].kind),
        held_by: holders.len(),
        holders: holders.into_iter().take(MOST_HOLDERS).collect(),
        waiting: waiting.len(),
        longest_wait: waiting.first().map(Entry::age),
    }
}

fn delete_some(left: &mut Vec<Vec<u8>>, deleted: usize) -> Next {
    let some = left.len().saturating_sub(AT_ONCE);
    match left.split_off(some) {
        none if none.is_empty() => Next::Answer(Found::ForceRelease(deleted)),
        some => Next::Call(Call::delete_all(some)),
    }
}
