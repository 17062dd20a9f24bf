//! The queue of a lock in a store that keeps its entries in order: the entries that may enter, and
//! the watches of the others.
//!
//! The holders are the front of the queue: all entries that have entered and not left.

use crate::backend::share::Share;
use crate::types::kind::Kind;

/// The position of an entry, found from the entries ahead of it. `T` identifies those: by
/// default, counted from the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position<T = usize> {
    /// The lock is its own.
    Enter,
    /// It looks again when this one leaves; and for permits also when this one enters,
    /// which it has to announce therefore.
    Behind(T),
    /// It is next to get its permits, and looks again when anybody leaves.
    Next,
}

#[cfg(any(test, feature = "zookeeper"))]
impl Position {
    /// That of an entry with the share `mine`.
    pub(crate) fn of(ahead: &[Share], mine: Share) -> Self {
        Self::after(
            mine,
            Ahead {
                taken: ahead.iter().map(|it| it.permits()).sum(),
                last: ahead.len().checked_sub(1),
                last_other: ahead.iter().rposition(|it| it.kind != mine.kind),
            },
        )
    }
}

/// How many of a queue hold the lock: the front of one kind, as far as it fits.
pub(crate) fn holders(queue: impl Iterator<Item = Share>) -> usize {
    let mut queue = queue.peekable();
    let first = queue.peek().map(|it| it.kind);
    let same = queue.take_while(|it| Some(it.kind) == first);
    let mut taken = 0;
    same.take_while(|it| {
        let fits = it.fits(taken);
        taken += it.permits();
        fits
    })
    .count()
}

/// The facts that decide about a position behind others.
#[derive(Debug)]
pub(crate) struct Ahead<T> {
    /// How many permits they take together; an entry without permits counts as one.
    pub(crate) taken: usize,
    pub(crate) last: Option<T>,
    /// The last one of another kind.
    pub(crate) last_other: Option<T>,
}

impl<T> Position<T> {
    /// That of an entry with the share `mine` behind those `ahead`.
    pub(crate) fn after(mine: Share, ahead: Ahead<T>) -> Self {
        let Some(last) = ahead.last else {
            return Self::Enter;
        };
        match (mine.kind, ahead.last_other) {
            (_, None) if mine.fits(ahead.taken) => Self::Enter,
            // Readers do not wait for each other.
            (Kind::Read, Some(other)) => Self::Behind(other),
            // All of them have entered.
            (kind @ Kind::Permits(_), None) if kind.admits(ahead.taken - 1) => Self::Next,
            _ => Self::Behind(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Position::{Behind, Enter, Next};

    const X: Share = Share {
        kind: Kind::Exclusive,
        take: 1,
    };
    const R: Share = Share {
        kind: Kind::Read,
        take: 1,
    };

    /// So many of the permits.
    const fn take(take: u32, most: u32) -> Share {
        Share {
            kind: Kind::Permits(most),
            take,
        }
    }

    const fn p(most: u32) -> Share {
        take(1, most)
    }

    #[test]
    fn the_kind_decides_who_may_enter_and_what_the_others_watch() {
        for (ahead, mine, position) in [
            (&[][..], X, Enter),
            (&[X], X, Behind(0)),
            (&[R, X, R], X, Behind(2)),
            (&[R, R], R, Enter),
            (&[R, X, R], R, Behind(1)),
            (&[p(2), p(2), R], R, Behind(1)),
            (&[p(3), p(3)], p(3), Enter),
            (&[p(2), p(2)], p(2), Next),
            (&[p(2), p(2), p(2)], p(2), Behind(2)),
            (&[p(2), X], p(2), Behind(1)),
            (&[p(2)], p(3), Behind(0)),
            (&[p(2), p(2)], p(3), Behind(1)),
            (&[p(4)], take(3, 4), Enter),
            (&[take(3, 4)], p(4), Enter),
            (&[take(3, 4)], take(2, 4), Next),
            (&[take(3, 4), take(2, 4)], p(4), Behind(1)),
            (&[take(3, 4), p(4)], take(4, 4), Next),
        ] {
            assert_eq!(Position::of(ahead, mine), position, "{ahead:?} {mine:?}");
        }
    }

    /// An entry in a queue, and what it watches: the number of an entry, or anybody.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Watch {
        Entry(u32),
        Anybody,
    }

    struct Queue(Vec<(u32, Share, Option<Watch>)>);

    impl Queue {
        /// The entry looks. If it enters, the entries that watch it look too.
        fn look(&mut self, number: u32) {
            let Some(at) = self.0.iter().position(|it| it.0 == number) else {
                return;
            };
            let ahead: Vec<_> = self.0[..at].iter().map(|it| it.1).collect();
            let watch = match Position::of(&ahead, self.0[at].1) {
                Enter => None,
                Behind(other) => Some(Watch::Entry(self.0[other].0)),
                Next => Some(Watch::Anybody),
            };
            let waited = self.0[at].2.is_some();
            self.0[at].2 = watch;
            if waited && watch.is_none() {
                self.wake(|it| it == Watch::Entry(number));
            }
        }

        fn leave(&mut self, at: usize) {
            let (number, ..) = self.0.remove(at);
            self.wake(|it| it == Watch::Entry(number) || it == Watch::Anybody);
        }

        fn wake(&mut self, woken: impl Fn(Watch) -> bool) {
            let woken = self.0.iter().filter(|it| it.2.is_some_and(&woken));
            let numbers: Vec<_> = woken.map(|it| it.0).collect();
            for number in numbers {
                self.look(number);
            }
        }

        /// Checks that the entries that have entered may hold the lock together, and are those that may enter.
        fn check(&self) {
            let may = holders(self.0.iter().map(|it| it.1));
            let held = &self.0[..may];
            let taken: usize = held.iter().map(|it| it.1.permits()).sum();
            if let Some((_, Share { kind, .. }, _)) = held.first() {
                assert!(held.iter().all(|it| it.1.kind == *kind), "{:?}", self.0);
                assert!(kind.admits(taken - 1), "{:?}", self.0);
            }
            for (at, entry) in self.0.iter().enumerate() {
                assert_eq!(entry.2.is_none(), at < may, "{:?}", self.0);
            }
        }
    }

    #[test]
    fn nobody_sleeps_who_may_enter() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut queue = Queue(Vec::new());
            for number in 0..200 {
                if queue.0.len() < 8 && random.bool() {
                    let kind = [X, R, p(2), p(3), take(2, 3), take(3, 3)][random.usize(..6)];
                    queue.0.push((number, kind, Some(Watch::Anybody)));
                    queue.look(number);
                } else if !queue.0.is_empty() {
                    queue.leave(random.usize(..queue.0.len()));
                }
                queue.check();
            }
        }
    }
}
