//! The entries ahead of an entry, as far as they decide about its position, however long the
//! queue is.

use super::entry::{self, Entry};
use super::keys::{Keys, Span};
use super::messages::{RangeRequest, RangeResponse};
use crate::backend::queue_order::{self, Position};
use crate::backend::share::Share;
use crate::types::crowd::Crowd;
use crate::types::holder::Holder;
use crate::types::key::LockKey;
use crate::types::kind::Kind;

/// How many of the first are read with their values, which say who they are.
const FRONT: i64 = 4;
const ASCEND: i32 = 1;
const DESCEND: i32 = 2;
/// To sort by the revision that created a key.
const CREATE: i32 = 2;

/// The reads that [`Ahead::read`] takes: of all entries, or of those that were created before a
/// revision. Limited reads are complete if all keys are entries.
pub(crate) fn reads(
    keys: &Keys,
    lock: &LockKey,
    mine: Kind,
    before: Option<i64>,
    limited: bool,
) -> Vec<RangeRequest> {
    let queue = keys.queue(lock);
    let max_create_revision = before.map_or(0, |created| created.saturating_sub(1));
    let sorted = |span: Span, sort_order, limit| RangeRequest {
        key: span.key,
        range_end: span.end,
        limit: if limited { limit } else { 0 },
        sort_order,
        sort_target: CREATE,
        keys_only: true,
        max_create_revision,
        ..RangeRequest::default()
    };
    let last = |span| sorted(span, DESCEND, 1);
    let mut reads = vec![RangeRequest {
        keys_only: false,
        ..front(queue.clone())
    }];
    reads[0].max_create_revision = max_create_revision;
    if !limited {
        reads[0].limit = 0;
    }
    match mine {
        Kind::Exclusive => reads.push(last(queue)),
        Kind::Read => {
            let readers = keys.readers(lock);
            let Span { key, end } = queue;
            reads.push(last(Span {
                key,
                end: readers.key,
            }));
            reads.push(last(Span {
                key: readers.end,
                end,
            }));
        }
        Kind::Permits(most) => {
            reads.push(last(queue.clone()));
            reads.push(sorted(queue, ASCEND, i64::from(most) + 1));
        }
    }
    reads
}

/// Reads the first of a queue.
pub(crate) fn front(queue: Span) -> RangeRequest {
    RangeRequest {
        key: queue.key,
        range_end: queue.end,
        limit: FRONT,
        sort_order: ASCEND,
        sort_target: CREATE,
        ..RangeRequest::default()
    }
}

/// Those ahead of an entry, as far as they matter.
#[derive(Debug)]
pub(crate) struct Ahead {
    pub(crate) front: Front,
    /// The keys of the entries that decide.
    decide: queue_order::Ahead<Vec<u8>>,
}

impl Ahead {
    /// Takes in the answers to [`reads`] for an entry of kind `mine`. `None` if foreign keys have
    /// crowded out entries.
    pub(crate) fn read(
        keys: &Keys,
        mine: Kind,
        answers: &mut impl Iterator<Item = RangeResponse>,
        limited: bool,
    ) -> Option<Self> {
        let front = Front::read(keys, answers.next().unwrap_or_default());
        let mut foreign = false;
        let mut queue = || {
            let kvs = answers.next().unwrap_or_default().kvs;
            let found = kvs.len();
            let queue = entry::queue(keys, kvs);
            foreign |= queue.len() < found;
            queue
        };
        let mut last = || queue().pop();
        let decide = match mine {
            Kind::Exclusive => {
                let last = last().map(|entry| entry.key);
                let taken = usize::from(last.is_some());
                queue_order::Ahead {
                    taken,
                    last,
                    last_other: None,
                }
            }
            Kind::Read => {
                // A writer that goes on as a reader is the first of all.
                let reads = front.first().filter(|it| it.share.kind == mine);
                let is_other = |it: &Entry| reads.is_none_or(|reads| reads.key != it.key);
                let others = [last(), last()].into_iter().flatten().filter(is_other);
                let last = others.max_by_key(|entry| entry.created);
                let last = last.map(|entry| entry.key);
                let taken = usize::from(last.is_some());
                queue_order::Ahead {
                    taken,
                    last: last.clone(),
                    last_other: last,
                }
            }
            Kind::Permits(_) => {
                let last = last().map(|entry| entry.key);
                let all = queue();
                let other = all.iter().any(|entry| entry.share.kind != mine);
                let last_other = last.clone().filter(|_| other);
                queue_order::Ahead {
                    taken: all.iter().map(|entry| entry.share.permits()).sum(),
                    last,
                    last_other,
                }
            }
        };
        (!limited || !foreign).then_some(Self { front, decide })
    }

    /// Whether there is one alone.
    pub(crate) fn is_one(&self) -> bool {
        self.front.read == 1 && self.front.entries.len() == 1
    }

    /// The position of an entry with the share `mine` behind them.
    pub(crate) fn position(self, mine: Share) -> Position<Vec<u8>> {
        Position::after(mine, self.decide)
    }
}

/// The first of a queue, and how many it has.
#[derive(Debug)]
pub(crate) struct Front {
    entries: Vec<Entry>,
    /// How many keys were read, of entries and others.
    read: usize,
    count: usize,
}

impl Front {
    /// Takes in the answer to [`front`].
    pub(crate) fn read(keys: &Keys, answer: RangeResponse) -> Self {
        Self {
            count: usize::try_from(answer.count).unwrap_or(0),
            read: answer.kvs.len(),
            entries: entry::queue(keys, answer.kvs),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether keys of others are all that was read.
    pub(crate) fn is_foreign(&self) -> bool {
        self.count > 0 && self.entries.is_empty()
    }

    fn first(&self) -> Option<&Entry> {
        self.entries.first()
    }

    /// The first holder, and who waits beside `asking`, whether that is in the queue or not.
    pub(crate) fn holder(&self, asking: usize) -> Option<Box<Holder>> {
        let first = self.first()?;
        Some(Box::new(Holder {
            crowd: self.crowd(asking),
            ..first.holder()
        }))
    }

    /// Who waits beside `asking`, as [`holder`](Self::holder) counts them, if all that hold the lock
    /// were read.
    pub(crate) fn waiters(&self, asking: usize) -> usize {
        let held = entry::holders(&self.entries);
        self.count.saturating_sub(held + asking)
    }

    /// Nothing is known where more hold the lock than were read.
    fn crowd(&self, asking: usize) -> Crowd {
        let held = entry::holders(&self.entries);
        let waiters = self.waiters(asking);
        match self.entries.get(held) {
            Some(first) if waiters > 0 => Crowd {
                waiting: u32::try_from(waiters).unwrap_or(u32::MAX),
                longest: first.age(),
                ..Crowd::default()
            },
            _ => Crowd::default(),
        }
    }
}
