//! The last answer of each sentinel, and the master that follows from them: without I/O.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use super::question::Master;
use crate::types::authority::Host;

/// How long a majority has to name the same server before it holds against a larger
/// epoch: after a failover, sentinels tell each other sooner.
const STEADY: Duration = Duration::from_secs(10);
/// How long a word counts that its sentinel does not repeat.
const KEPT: Duration = Duration::from_secs(60);

/// The latest words of all sentinels of a service.
#[derive(Debug)]
pub(super) struct Words {
    begun: Instant,
    latest: Vec<Latest>,
}

/// The last answer of one sentinel.
#[derive(Clone, Debug)]
enum Latest {
    Nothing,
    /// It knows no service of that name.
    Unknown,
    Named(Word),
}

#[derive(Clone, Debug)]
struct Word {
    master: Master,
    /// The time at which it was said first. A sentinel's first answer may be as old as we are.
    since: Instant,
    /// When it was said last.
    heard: Instant,
}

impl Words {
    pub(super) fn new(now: Instant, sentinels: usize) -> Self {
        Self {
            begun: now,
            latest: vec![Latest::Nothing; sentinels],
        }
    }

    /// A sentinel has answered.
    pub(super) fn said(&mut self, now: Instant, sentinel: usize, master: Option<Master>) {
        let Some(latest) = self.latest.get_mut(sentinel) else {
            return;
        };
        let since = match (&*latest, &master) {
            (Latest::Nothing, _) => self.begun,
            (Latest::Named(word), Some(master)) if word.master == *master => word.since,
            _ => now,
        };
        *latest = master.map_or(Latest::Unknown, |master| {
            Latest::Named(Word {
                master,
                since,
                heard: now,
            })
        });
    }

    /// The master, if a sentinel has named one of late: the one with the largest epoch, as
    /// sentinels agree on it, unless a majority has steadily named another one since. Epochs
    /// restart if operators let sentinels watch a service again.
    pub(super) fn master(&self, now: Instant) -> Option<&Master> {
        let words: Vec<_> = self.words(now).collect();
        let named = |host: &Host| words.iter().filter(|it| it.master.host == *host).count();
        let first = words.iter().enumerate().max_by_key(|(number, word)| {
            let Master { host, epoch } = &word.master;
            (*epoch, named(host), word.since, Reverse(*number))
        });
        let (_, first) = first?;
        let overruled = words.iter().find(|word| {
            let formed = self.majority_since(&words, &word.master.host);
            formed.is_some_and(|formed| formed >= first.since && now >= formed + STEADY)
        });
        Some(&overruled.unwrap_or(first).master)
    }

    fn words(&self, now: Instant) -> impl Iterator<Item = &Word> {
        let named = self.latest.iter().filter_map(|it| match it {
            Latest::Named(word) => Some(word),
            Latest::Nothing | Latest::Unknown => None,
        });
        named.filter(move |word| now < word.heard + KEPT)
    }

    /// Since when a majority of all names this server, if it does.
    fn majority_since(&self, words: &[&Word], host: &Host) -> Option<Instant> {
        let named = words.iter().filter(|it| it.master.host == *host);
        let mut since: Vec<_> = named.map(|it| it.since).collect();
        since.sort_unstable();
        since.get(self.latest.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three sentinels, and the time.
    struct Scene {
        words: Words,
        now: Instant,
    }

    impl Scene {
        fn new() -> Self {
            let now = Instant::now();
            let words = Words::new(now, 3);
            Self { words, now }
        }

        fn said(&mut self, sentinel: usize, epoch: u64, host: &str) {
            let (name, port) = (host.to_owned(), 1);
            let host = Host { name, port };
            let master = Master { host, epoch };
            self.words.said(self.now, sentinel, Some(master));
        }

        /// All say this, for so many seconds.
        fn pass(&mut self, seconds: u64, said: [(u64, &str); 3]) {
            for _ in 0..seconds {
                self.now += Duration::from_secs(1);
                for (sentinel, (epoch, host)) in said.into_iter().enumerate() {
                    self.said(sentinel, epoch, host);
                }
            }
        }

        fn master(&self) -> Option<&str> {
            let master = self.words.master(self.now)?;
            Some(&master.host.name)
        }
    }

    #[test]
    fn the_latest_failover_holds_at_once_and_for_good() {
        let mut scene = Scene::new();
        scene.pass(100, [(4, "old"), (4, "old"), (4, "old")]);
        scene.said(0, 5, "new");
        assert_eq!(scene.master(), Some("new"));
        scene.said(1, 4, "old");
        assert_eq!(scene.master(), Some("new"));
        scene.pass(1_000, [(5, "new"), (4, "old"), (4, "old")]);
        assert_eq!(scene.master(), Some("new"));
    }

    // Section: guarantees.md#when-a-replica-takes-over
    #[test]
    fn a_majority_that_watches_another_server_anew_is_followed_in_time() {
        let mut scene = Scene::new();
        scene.pass(100, [(5, "old"), (5, "old"), (5, "old")]);
        scene.pass(1, [(0, "new"), (5, "old"), (5, "old")]);
        scene.pass(10, [(0, "new"), (0, "new"), (5, "old")]);
        assert_eq!(scene.master(), Some("old"), "others may tell them better");
        scene.pass(1, [(0, "new"), (0, "new"), (5, "old")]);
        assert_eq!(scene.master(), Some("new"));
        // The last one hears of it, and is the first to fail over.
        scene.pass(1, [(0, "new"), (0, "new"), (0, "new")]);
        assert_eq!(scene.master(), Some("new"));
        scene.said(2, 1, "next");
        assert_eq!(scene.master(), Some("next"));
    }

    #[test]
    fn all_that_watch_another_server_anew_are_followed_at_once() {
        let mut scene = Scene::new();
        scene.pass(100, [(5, "old"), (5, "old"), (5, "old")]);
        scene.pass(1, [(0, "new"), (0, "new"), (0, "new")]);
        assert_eq!(scene.master(), Some("new"));
    }

    #[test]
    fn who_comes_later_follows_the_majority_too() {
        let mut scene = Scene::new();
        scene.pass(1, [(0, "new"), (0, "new"), (5, "old")]);
        assert_eq!(scene.master(), Some("old"), "it may know of a failover");
        scene.pass(10, [(0, "new"), (0, "new"), (5, "old")]);
        assert_eq!(scene.master(), Some("new"));
    }

    #[test]
    fn a_word_counts_while_its_sentinel_may_still_mean_it() {
        let mut scene = Scene::new();
        assert_eq!(scene.master(), None);
        scene.said(0, 5, "new");
        scene.said(1, 4, "old");
        for _ in 0..59 {
            scene.now += Duration::from_secs(1);
            scene.said(1, 4, "old");
        }
        assert_eq!(scene.master(), Some("new"));
        scene.now += Duration::from_secs(1);
        scene.said(1, 4, "old");
        assert_eq!(scene.master(), Some("old"));
        scene.words.said(scene.now, 1, None);
        assert_eq!(scene.master(), None);
    }

    #[test]
    fn of_two_with_the_same_epoch_the_one_that_more_name_holds() {
        let mut scene = Scene::new();
        scene.pass(1, [(0, "a"), (0, "b"), (0, "b")]);
        assert_eq!(scene.master(), Some("b"));
    }
}
