//! Since when locks are held, and whether their holders answer, where a list of them does not say: by asking the
//! holders, or by having watched.

use std::collections::HashMap;
use std::time::SystemTime;

use futures_util::future::join_all;
use lock_runtime::inspect::{Holder, Overview, Summary};
use lock_runtime::{LockKey, LockManager};

use crate::log;

/// How many locks are asked about for one list: each costs two short calls.
pub(crate) const MOST_ASKED: usize = 100;

/// How many locks are asked about whenever a live list is looked at again.
const MOST_ASKED_AGAIN: usize = 20;

/// Asks the holders of the first locks of a list. One that does not answer takes 300 ms, for all of them together; what
/// it does not say is looked up in the history of its lock.
pub(crate) async fn ask<'a>(locks: &LockManager, list: impl Iterator<Item = &'a mut Summary>) {
    if !locks.capabilities().answers {
        return;
    }
    let held = list.filter(|lock| lock.holders.iter().any(can_answer));
    join_all(held.take(MOST_ASKED).map(async |lock| {
        // Without an answer it stays unknown.
        let Ok(mut status) = locks.status(&lock.key).await else {
            return;
        };
        log::complete(locks, &mut status).await;
        for holder in lock.holders.iter_mut().filter(|it| can_answer(it)) {
            if let Some(told) = status.holders.iter().find(|it| it.id == holder.id) {
                holder.since = told.since.or(holder.since);
                holder.fencing_token = told.fencing_token.or(holder.fencing_token);
                holder.answers = told.answers;
            }
        }
    }))
    .await;
}

/// Asks the holders of the locks that are held for longest. Those that the store does not date are young.
pub(crate) async fn ask_again(locks: &LockManager, list: &mut [Summary]) {
    let mut longest: Vec<_> = list.iter_mut().collect();
    longest.sort_by_key(|it| (since(it).is_none(), since(it)));
    ask(locks, longest.into_iter().take(MOST_ASKED_AGAIN)).await;
}

fn since(lock: &Summary) -> Option<SystemTime> {
    lock.holders.iter().filter_map(|it| it.since).min()
}

fn can_answer(holder: &Holder) -> bool {
    holder.process.is_some() && !holder.cooling_down && !holder.ticket
}

/// What looks at the same store have seen so far.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// Since when each holder holds its lock, if that is known.
    since: HashMap<LockKey, HashMap<Box<str>, Option<SystemTime>>>,
    has_looked: bool,
}

impl Watched {
    /// A look has failed: nobody knows since when those are there that the next one finds.
    pub(crate) fn missed(&mut self) {
        self.has_looked = false;
    }

    /// Completes a look with what is known of those that were there before. Whoever was not there has got its lock since
    /// the look before this one.
    pub(crate) fn complete(&mut self, overview: &mut Overview, now: SystemTime) {
        let before = std::mem::take(&mut self.since);
        for lock in &mut overview.locks {
            let known = before.get(&lock.key);
            let newly = self.has_looked.then_some(now);
            let mut since = HashMap::new();
            for holder in lock.holders.iter_mut().filter(|it| !it.cooling_down) {
                let seen = known.and_then(|it| it.get(&holder.id)).copied();
                holder.since = holder.since.or_else(|| seen.unwrap_or(newly));
                since.insert(holder.id.clone(), holder.since);
            }
            self.since.insert(lock.key.clone(), since);
        }
        self.has_looked = true;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn whoever_came_while_nobody_could_look_has_no_time() {
        let locks = LockManager::connect("memory:").await.expect("a store");
        let mut watched = Watched::default();
        let mut seen = locks.overview("*").await.expect("an overview");
        watched.complete(&mut seen, SystemTime::now());
        watched.missed();
        let _held = locks.lock("key").acquire().await.expect("a lock");
        let mut seen = locks.overview("*").await.expect("an overview");
        seen.locks[0].holders[0].since = None;
        watched.complete(&mut seen, SystemTime::now());
        assert_eq!(seen.locks[0].holders[0].since, None);
    }

    #[tokio::test]
    async fn whoever_was_there_before_keeps_its_time_and_a_newcomer_has_that_of_the_look() {
        let locks = LockManager::connect("memory:").await.expect("a store");
        let _first = locks.lock("first").acquire().await.expect("a lock");
        let mut watched = Watched::default();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let mut look = async |now| {
            let mut seen = locks.overview("*").await.expect("an overview");
            // As a store that does not know.
            for lock in &mut seen.locks {
                lock.holders[0].since = None;
            }
            watched.complete(&mut seen, at(now));
            let since = |it: &Summary| (it.key.to_string(), it.holders[0].since);
            seen.locks.iter().map(since).collect::<Vec<_>>()
        };
        assert_eq!(look(1).await, [("first".to_owned(), None)]);
        let second = locks.lock("second").acquire().await.expect("a lock");
        let both = [
            ("first".to_owned(), None),
            ("second".to_owned(), Some(at(2))),
        ];
        assert_eq!(look(2).await, both);
        assert_eq!(look(3).await, both);
        let freed = second.release_confirmed().await;
        assert!(freed.expect("a release"));
        let _third = locks.lock("second").acquire().await.expect("a lock");
        assert_eq!(look(4).await[1].1, Some(at(4)));
    }
}
