//! Queries: who holds a lock, which locks there are, and taking one away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::protocol::call::{Call, Reply};
use super::protocol::entry::{self, Entry};
use super::protocol::keys::{Keys, Span};
use super::protocol::messages::{KeyValue, RangeResponse};
use super::protocol::notes::{self, Note};
use super::protocol::trouble::{Trouble, cause};
use super::queue::AskedBy;
use crate::backend::queries::Asker;
use crate::base::clock::Clock;
use crate::types::error::Cause;
use crate::types::history::{self, Grant};
use crate::types::holder::{Holder, Status};
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::overview::{MOST_HOLDERS, Overview, Summary};
use crate::types::query::Pattern;

/// How many keys are read at once.
const PAGE: i64 = 1_000;
/// How many waiters of one lock a status names.
const MOST_NAMED: usize = 1_000;
/// How many holders are dated from their grants: each costs a short call.
const MOST_DATED: usize = 100;
/// How many entries one call deletes; a member refuses 128.
const AT_ONCE: usize = 100;

/// A question of a query to a member.
pub(super) type Asked = (Call, AskedBy);

/// Asks the member that is asked at the time, by way of the backend.
#[derive(Clone)]
pub(super) struct Inspector {
    pub(super) asker: Asker<Asked>,
    pub(super) keys: Arc<Keys>,
    pub(super) clock: Clock,
}

impl Inspector {
    pub(super) async fn status(self, key: LockKey) -> Result<Status, Cause> {
        let mut read = Vec::new();
        let span = self.keys.queue(&key);
        self.pages(span, false, |kvs| read.extend(kvs)).await?;
        let queue = entry::queue(&self.keys, read);
        let (holders, waiters) = queue.split_at(entry::holders(&queue));
        let named = waiters.iter().take(MOST_NAMED);
        let mut described: Vec<_> = holders.iter().map(Entry::holder).collect();
        self.date(described.iter_mut().zip(holders)).await;
        Ok(Status {
            kind: held_as(&described, holders),
            holders: described,
            waiting: waiters.len(),
            waiters: named.map(Entry::waiter).collect(),
            ..Status::free(key)
        })
    }

    pub(super) async fn list(self, pattern: Pattern) -> Result<Vec<LockKey>, Cause> {
        let mut found = BTreeSet::new();
        let mut take_in = |kvs: Vec<KeyValue>| {
            let read = kvs.iter().filter_map(|kv| self.keys.read(&kv.key));
            found.extend(read.map(|(lock, ..)| lock).filter(|it| pattern.matches(it)));
        };
        for span in self.keys.all() {
            self.pages(span, true, &mut take_in).await?;
        }
        Ok(found.into_iter().collect())
    }

    pub(super) async fn overview(self, pattern: Pattern) -> Result<Overview, Cause> {
        let mut read = Vec::new();
        for span in self.keys.all() {
            self.pages(span, false, |kvs| read.extend(kvs)).await?;
        }
        let mut queues = BTreeMap::<_, Vec<_>>::new();
        for entry in entry::queue(&self.keys, read) {
            if pattern.matches(&entry.lock) {
                queues.entry(entry.lock.clone()).or_default().push(entry);
            }
        }
        let summaries = queues
            .iter()
            .map(|(key, queue)| summary(key.clone(), queue));
        let mut summaries: Vec<_> = summaries.collect();
        let locks = summaries.iter_mut().zip(queues.values());
        let first = locks.filter_map(|(it, queue)| it.holders.first_mut().zip(queue.first()));
        self.date(first).await;
        Ok(Overview::new(summaries, None))
    }

    /// Finds out which holders entered the lock without a wait, from the queue at the revision of
    /// their entries.
    async fn date(&self, holders: impl Iterator<Item = (&mut Holder, &Entry)>) {
        let ask_about = |(holder, entry)| {
            let entry: &Entry = entry;
            let call = Call::keys_at(self.keys.queue(&entry.lock), entry.created);
            (holder, entry, self.asker.ask(|by| (call, by)))
        };
        let asked: Vec<_> = holders.take(MOST_DATED).map(ask_about).collect();
        for (holder, entry, asked) in asked {
            // A revision that is compacted tells nothing.
            if let Ok(Ok(Reply::Range(then))) = asked.await {
                let queue = entry::queue(&self.keys, then.kvs);
                holder.may_have_waited = !entry.entered_at_once(&queue);
            }
        }
    }

    pub(super) async fn force_release(self, key: LockKey) -> Result<usize, Cause> {
        let mut read = Vec::new();
        let span = self.keys.queue(&key);
        self.pages(span, false, |kvs| read.extend(kvs)).await?;
        let mut queue = entry::queue(&self.keys, read);
        queue.truncate(entry::holders(&queue));
        let last = queue.last().map_or(0, |entry| entry.created);
        let mut released = 0;
        loop {
            // Those that hold it later stay.
            let (mut held, notes) = self.with_notes(&key).await?;
            held.retain(|entry| entry.created <= last);
            if held.is_empty() {
                return Ok(released);
            }
            for some in held.rchunks(AT_ONCE) {
                // Their holders may release them meanwhile, and take the slots again, or write the notes.
                let revoked = some.iter().map(|entry| {
                    let note = notes.iter().find(|it| entry.is_noted(it)).cloned();
                    Note::revoke(entry.key.clone(), entry.created, note)
                });
                match self.ask(Call::all_of(revoked)).await? {
                    Reply::Txn(txn) => released += txn.deleted(),
                    _ => return Err(mismatch()),
                }
            }
        }
    }

    /// The grants that the notes of a lock remember, the newest first.
    pub(super) async fn history(self, key: LockKey) -> Result<Vec<Grant>, Cause> {
        let (queue, notes) = self.with_notes(&key).await?;
        let mut grants = notes::grants(&self.keys, &key, &notes);
        let held: BTreeSet<_> = queue.iter().map(|it| it.holder().id).collect();
        history::note_expired(&mut grants, |it| held.contains(&it.id));
        grants.reverse();
        Ok(grants)
    }

    /// The first of a queue and the notes of its lock, as they were together.
    async fn with_notes(&self, key: &LockKey) -> Result<(Vec<Entry>, Vec<KeyValue>), Cause> {
        let reads = [
            notes::first(self.keys.queue(key), PAGE),
            notes::all(self.keys.notes(key)),
        ];
        let call = Call::all_of(reads);
        let Reply::Txn(txn) = self.ask(call).await? else {
            return Err(mismatch());
        };
        let mut read = txn.ranges().map(|it| it.kvs);
        let queue = entry::queue(&self.keys, read.next().unwrap_or_default());
        Ok((queue, read.next().unwrap_or_default()))
    }

    /// Notes in the entries of the holders that somebody would like to have the lock; they watch them.
    pub(super) async fn ask_to_yield(self, key: LockKey) -> Result<usize, Cause> {
        let mut read = Vec::new();
        let span = self.keys.queue(&key);
        self.pages(span, false, |kvs| read.extend(kvs)).await?;
        let mut queue = entry::queue(&self.keys, read);
        queue.truncate(entry::holders(&queue));
        let mut told = 0;
        for entry in queue {
            told += usize::from(self.ask_holder(entry).await?);
        }
        Ok(told)
    }

    /// Asks one holder, whatever it writes into its entry meanwhile, unless it releases the lock.
    async fn ask_holder(&self, mut entry: Entry) -> Result<bool, Cause> {
        loop {
            let holder = entry.holder();
            if holder.cooling_down || holder.ticket || holder.process.is_none() {
                return Ok(false);
            }
            let (key, created) = (entry.key.clone(), entry.created);
            let call = Call::rewrite_as_read(key, entry.modified, entry.asked());
            let Reply::Txn(txn) = self.ask(call).await? else {
                return Err(mismatch());
            };
            if txn.succeeded {
                return Ok(true);
            }
            let now = txn.ranges().next().unwrap_or_default().kvs;
            match entry::queue(&self.keys, now).pop() {
                Some(same) if same.created == created => entry = same,
                _ => return Ok(false),
            }
        }
    }

    /// How long a member takes to read a key.
    pub(super) async fn echo(self) -> Result<Duration, Cause> {
        let asked = self.clock.now();
        self.range(Call::get(self.keys.nothing())).await?;
        Ok(self.clock.now().since(asked))
    }

    /// Reads all of a span.
    async fn pages(
        &self,
        mut span: Span,
        keys_only: bool,
        mut take_in: impl FnMut(Vec<KeyValue>),
    ) -> Result<(), Cause> {
        loop {
            let page = Call::page(span.clone(), PAGE, keys_only);
            let page = self.range(page).await?;
            let last = page.kvs.last().filter(|_| page.more);
            // The first key after it.
            let next = last.map(|it| [&it.key[..], &[0]].concat());
            take_in(page.kvs);
            match next {
                // Else there would be no end.
                Some(key) if key <= span.key => return Err(mismatch()),
                Some(key) => span.key = key,
                None => return Ok(()),
            }
        }
    }

    async fn range(&self, call: Call) -> Result<RangeResponse, Cause> {
        match self.ask(call).await? {
            Reply::Range(range) => Ok(range),
            _ => Err(mismatch()),
        }
    }

    async fn ask(&self, call: Call) -> Result<Reply, Trouble> {
        let answer = self.asker.ask(|by| (call, by)).await;
        answer.unwrap_or_else(|_| Err(Trouble::said("the connection was given up")))
    }
}

fn mismatch() -> Cause {
    cause("the answer belongs to another call")
}

/// The kind in which these holders, described by these entries, hold a lock.
fn held_as(holders: &[Holder], entries: &[Entry]) -> Option<Kind> {
    let working = holders.iter().position(|it| !it.cooling_down);
    working.map(|at| entries[at].share.kind)
}

fn summary(key: LockKey, queue: &[Entry]) -> Summary {
    let (held, waiting) = queue.split_at(entry::holders(queue));
    let holders: Vec<_> = held.iter().map(Entry::holder).collect();
    Summary {
        key,
        kind: held_as(&holders, held),
        held_by: holders.len(),
        holders: holders.into_iter().take(MOST_HOLDERS).collect(),
        waiting: waiting.len(),
        longest_wait: waiting.first().map(Entry::age),
    }
}
