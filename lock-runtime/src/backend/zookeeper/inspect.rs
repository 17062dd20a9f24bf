//! Queries: they look at nodes and change nothing, or revoke a lock.

use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;

use super::call::{Answered, Call, Recipient, cause};
use super::protocol::entry::{self, Entry, Keeper, holders, left};
use super::protocol::op::{ANY, Op};
use super::protocol::paths::{Paths, key};
use super::protocol::reply::{Reply, Stat, Trouble};
use crate::backend::queries::Asker;
use crate::base::clock::Clock;
use crate::types::error::Cause;
use crate::types::fence::FencingToken;
use crate::types::holder::{Holder, Status, Waiter};
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::overview::{MOST_HOLDERS, Overview, Summary};
use crate::types::query::Pattern;

/// How many waiters of one lock a status names.
const MOST_NAMED: usize = 1_000;

/// How often a queue is read again whose holders change meanwhile.
const MOST_LOOKS: u32 = 5;

/// How many queues are asked for at once: heartbeats go over the same connection.
const AT_ONCE: usize = 100;

/// Asks the server, by way of the backend.
pub(super) struct Inspector {
    pub(super) asker: Asker<Call>,
    pub(super) paths: Paths,
    pub(super) clock: Clock,
    /// The node of the session, which tells the server's time when it is written.
    pub(super) session: Option<String>,
}

/// The kind in which the lock of a queue is held, unless it is free or cools down.
fn held_as(queue: &[Entry]) -> Option<Kind> {
    let mut holding = queue[..holders(queue)].iter();
    let working = holding.find(|it| it.keeper != Keeper::Cooldown);
    working.map(|it| it.share.kind)
}

/// A node of a queue, and what it says.
struct Seen {
    entry: Entry,
    data: Vec<u8>,
    stat: Stat,
}

impl Inspector {
    /// How long the server takes to answer.
    pub(super) async fn echo(self) -> Result<Duration, Cause> {
        let asked = self.clock.now();
        answer(self.ask(Op::Ping)).await?.map_err(cause)?;
        Ok(self.clock.now().since(asked))
    }

    pub(super) async fn status(self, key: LockKey) -> Result<Status, Cause> {
        let path = self.paths.lock(&key);
        let (queue, holding, time) = self.held(&path, usize::MAX).await?;
        let waiting = &queue[holders(&queue)..];
        let first = &waiting[..waiting.len().min(MOST_NAMED)];
        let first = self.read(&path, first).await?;
        Ok(Status {
            key,
            kind: held_as(&queue),
            holders: holding.iter().map(|it| it.holder(time)).collect(),
            waiting: waiting.len(),
            waiters: first.iter().map(|it| it.waiter(time)).collect(),
        })
    }

    pub(super) async fn overview(self, pattern: Pattern) -> Result<Overview, Cause> {
        let mut locks = Vec::new();
        for (key, queue) in self.queues(&pattern).await? {
            if !queue.is_empty() {
                locks.extend(self.summarize(key).await?);
            }
        }
        // Nobody counts the acquisitions.
        Ok(Overview::new(locks, None))
    }

    /// `None` if the queue is empty by now.
    async fn summarize(&self, key: LockKey) -> Result<Option<Summary>, Cause> {
        let path = self.paths.lock(&key);
        let (queue, named, time) = self.held(&path, MOST_HOLDERS).await?;
        let (holding, waiting) = queue.split_at(holders(&queue));
        let first = &waiting[..waiting.len().min(1)];
        let first = self.read(&path, first).await?;
        Ok((!queue.is_empty()).then(|| Summary {
            key,
            kind: held_as(&queue),
            holders: named.iter().map(|it| it.holder(time)).collect(),
            held_by: holding.len(),
            waiting: waiting.len(),
            longest_wait: first.first().map(|it| it.age(time)),
        }))
    }

    /// Leaves out names of which only ended cooldowns and tickets are left.
    pub(super) async fn list(self, pattern: Pattern) -> Result<Vec<LockKey>, Cause> {
        let mut held = Vec::new();
        for (key, queue) in self.queues(&pattern).await? {
            let is_held = match queue.iter().all(|it| it.is_timed()) {
                false => true,
                true if queue.is_empty() => false,
                true => {
                    let path = self.paths.lock(&key);
                    let (queue, _) = self.queue(&path).await?;
                    !queue.is_empty()
                }
            };
            held.extend(is_held.then_some(key));
        }
        held.sort_unstable();
        Ok(held)
    }

    pub(super) async fn force_release(self, key: LockKey) -> Result<usize, Cause> {
        let path = self.paths.lock(&key);
        let mut holding = self.holding(&path).await?;
        let mut released = 0;
        for _ in 0..MOST_LOOKS {
            let delete = |entry: &Entry| {
                let path = format!("{path}/{entry}");
                self.ask(Op::Delete { path })
            };
            let asked: Vec<_> = holding.iter().map(delete).collect();
            let mut gone = Vec::new();
            for (entry, asked) in holding.into_iter().zip(asked) {
                match answer(asked).await? {
                    Ok(_) => released += 1,
                    Err(Trouble::NoNode) => gone.push(entry),
                    Err(trouble) => return Err(cause(trouble)),
                }
            }
            holding = self.in_place_of(&path, &gone).await?;
            if holding.is_empty() {
                break;
            }
        }
        Ok(released)
    }

    /// Notes in the nodes of the holders that somebody would like to have the lock; they watch them.
    pub(super) async fn ask_to_yield(self, key: LockKey) -> Result<usize, Cause> {
        let path = self.paths.lock(&key);
        let mut holding = self.holding(&path).await?;
        let mut told = 0;
        for _ in 0..MOST_LOOKS {
            let read = self.read(&path, &holding).await?;
            let is_read = |entry: &Entry| read.iter().any(|it| it.entry == *entry);
            let mut gone = holding;
            gone.retain(|it| !is_read(it));
            for seen in read {
                if seen.entry.is_timed() || entry::holder(&seen.data).process.is_none() {
                    continue;
                }
                let path = format!("{path}/{}", seen.entry);
                let data = entry::asked(&seen.data);
                let version = ANY;
                let write = Op::Write {
                    path,
                    data,
                    version,
                };
                match answer(self.ask(write)).await? {
                    Ok(_) => told += 1,
                    Err(Trouble::NoNode) => gone.push(seen.entry),
                    Err(trouble) => return Err(cause(trouble)),
                }
            }
            holding = self.in_place_of(&path, &gone).await?;
            if holding.is_empty() {
                break;
            }
        }
        Ok(told)
    }

    /// The entries that hold a lock, or keep it closed.
    async fn holding(&self, path: &str) -> Result<Vec<Entry>, Cause> {
        let (mut queue, _) = self.queue(path).await?;
        queue.truncate(holders(&queue));
        Ok(queue)
    }

    /// The entries that have replaced these, which are gone: of readers that were writers, of cooldowns,
    /// of tickets and of their adopters. A released lock has none.
    async fn in_place_of(&self, path: &str, gone: &[Entry]) -> Result<Vec<Entry>, Cause> {
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        let mut queue = Entry::queue(&self.children(path).await?);
        queue.retain(|it| gone.iter().any(|gone| gone.has_position_of(*it)));
        Ok(queue)
    }

    /// The queue of a lock, what the first `most` of its holders say, and the server's time.
    async fn held(&self, path: &str, most: usize) -> Result<(Vec<Entry>, Vec<Seen>, i64), Cause> {
        let mut looks = 0;
        loop {
            let (queue, time) = self.queue(path).await?;
            let holding = &queue[..holders(&queue).min(most)];
            let seen = self.read(path, holding).await?;
            looks += 1;
            // A holder that has released since the look is followed by another one, or by a cooldown.
            if seen.len() == holding.len() || looks == MOST_LOOKS {
                return Ok((queue, seen, time));
            }
        }
    }

    /// The locks that have nodes and match a pattern, and their queues.
    async fn queues(&self, pattern: &Pattern) -> Result<Vec<(LockKey, Vec<Entry>)>, Cause> {
        let nodes = self.children(self.paths.root()).await?;
        let keys = nodes.iter().filter_map(|node| key(node));
        let keys: Vec<_> = keys.filter(|key| pattern.matches(key)).collect();
        let mut queues = Vec::new();
        for page in keys.chunks(AT_ONCE) {
            let paths = page.iter().map(|key| self.paths.lock(key));
            let asked: Vec<_> = paths.map(|path| self.ask_children(&path)).collect();
            for (key, asked) in page.iter().zip(asked) {
                let queue = Entry::queue(&names(answer(asked).await?)?);
                queues.push((key.clone(), queue));
            }
        }
        Ok(queues)
    }

    /// The queue of a lock without ended cooldowns and tickets, and the server's time if that is
    /// needed to say how long something cools down or waits.
    async fn queue(&self, path: &str) -> Result<(Vec<Entry>, i64), Cause> {
        let mut queue = Entry::queue(&self.children(path).await?);
        let cooldowns: Vec<_> = queue.iter().filter(|it| it.is_timed()).copied().collect();
        let all_hold = cooldowns.is_empty() && holders(&queue) == queue.len();
        let Some(session) = self.session.clone().filter(|_| !all_hold) else {
            return Ok((queue, 0));
        };
        let written = self.ask(Op::Write {
            path: session,
            data: Vec::new(),
            version: ANY,
        });
        let time = match answer(written).await? {
            Ok(Reply::Stat(stat)) => stat.written,
            Ok(_) => 0,
            Err(trouble) => return Err(cause(trouble)),
        };
        let seen = self.read(path, &cooldowns).await?;
        let goes_on = |it: &Seen| !it.left(time).is_zero();
        let cooldowns: Vec<_> = seen
            .iter()
            .filter(|it| goes_on(it))
            .map(|it| it.entry)
            .collect();
        queue.retain(|it| !it.is_timed() || cooldowns.contains(it));
        Ok((queue, time))
    }

    /// The nodes among these that are there still.
    async fn read(&self, path: &str, entries: &[Entry]) -> Result<Vec<Seen>, Cause> {
        let asked = entries.iter().map(|entry| {
            let path = format!("{path}/{entry}");
            self.ask(Op::Read { path, watch: false })
        });
        let asked: Vec<_> = asked.collect();
        let mut all = Vec::new();
        for (entry, asked) in entries.iter().zip(asked) {
            match answer(asked).await? {
                Ok(Reply::Data { data, stat }) => all.push(Seen {
                    entry: *entry,
                    data,
                    stat,
                }),
                Ok(_) | Err(Trouble::NoNode) => {}
                Err(trouble) => return Err(cause(trouble)),
            }
        }
        Ok(all)
    }

    /// Asks at once; the answer may be awaited later.
    pub(super) fn ask(&self, op: Op) -> oneshot::Receiver<Answered> {
        self.asker.ask(|by| Call::new(op, Recipient::Query(by)))
    }

    async fn children(&self, path: &str) -> Result<Vec<String>, Cause> {
        names(answer(self.ask_children(path)).await?)
    }

    fn ask_children(&self, path: &str) -> oneshot::Receiver<Answered> {
        let path = path.to_owned();
        self.ask(Op::Children { path, watch: false })
    }
}

pub(super) async fn answer(asked: oneshot::Receiver<Answered>) -> Answered {
    asked
        .await
        .unwrap_or_else(|_| Err(cause(Trouble::SessionOver)))
}

impl Seen {
    fn left(&self, time: i64) -> Duration {
        left(entry::holder(&self.data).remaining, self.stat, time)
    }

    /// How old its node is at a time of the server's clock.
    fn age(&self, time: i64) -> Duration {
        let age = time.saturating_sub(self.stat.created);
        Duration::from_millis(u64::try_from(age).unwrap_or(0))
    }

    fn waiter(&self, time: i64) -> Waiter {
        let who = entry::holder(&self.data);
        Waiter::new(who, self.entry.share.kind, Some(self.age(time)))
    }

    fn holder(&self, time: i64) -> Holder {
        let mut holder = entry::holder(&self.data);
        holder.permits = self.entry.share.take;
        if self.entry.is_timed() {
            holder.remaining = Some(self.left(time));
        } else {
            holder.may_have_waited = true;
            let since = u64::try_from(self.stat.created).unwrap_or(0);
            holder.since = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(since));
            holder.fencing_token = Some(FencingToken::new(self.stat.czxid.unsigned_abs()));
        }
        holder
    }
}

/// The names of a node's children; none if there is no node.
fn names(answer: Result<Reply, Trouble>) -> Result<Vec<String>, Cause> {
    match answer {
        Ok(Reply::Children { names, .. }) => Ok(names),
        Ok(_) | Err(Trouble::NoNode) => Ok(Vec::new()),
        Err(trouble) => Err(cause(trouble)),
    }
}
