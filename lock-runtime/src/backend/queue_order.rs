//! The queue of a lock in a store that keeps its entries in order: the entries that may enter, and
//! the watches of the others.
//!
//! The holders are the front of the queue: all entries that have entered and not left.

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
    /// It is next to get a permit, and looks again when anybody leaves.
    Next,
}

#[cfg(any(test, feature = "zookeeper"))]
impl Position {
    /// That of an entry of kind `mine`.
    pub(crate) fn of(ahead: &[Kind], mine: Kind) -> Self {
        Self::after(
            mine,
            Ahead {
                count: ahead.len(),
                last: ahead.len().checked_sub(1),
                last_other: ahead.iter().rposition(|kind| *kind != mine),
            },
        )
    }
}

/// The facts that decide about a position behind others.
#[derive(Debug)]
pub(crate) struct Ahead<T> {
    /// How many there are.
    pub(crate) count: usize,
    pub(crate) last: Option<T>,
    /// The last one of another kind.
    pub(crate) last_other: Option<T>,
}

impl<T> Position<T> {
    /// That of an entry of kind `mine` behind those `ahead`.
    pub(crate) fn after(mine: Kind, ahead: Ahead<T>) -> Self {
        let Some(last) = ahead.last else {
            return Self::Enter;
        };
        match (mine, ahead.last_other) {
            (_, None) if mine.admits(ahead.count) => Self::Enter,
            // Readers do not wait for each other.
            (Kind::Read, Some(other)) => Self::Behind(other),
            (Kind::Permits(_), None) if mine.admits(ahead.count - 1) => Self::Next,
            _ => Self::Behind(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Exclusive as X, Permits as P, Read as R};
    use Position::{Behind, Enter, Next};

    #[test]
    fn the_kind_decides_who_may_enter_and_what_the_others_watch() {
        for (ahead, mine, position) in [
            (&[][..], X, Enter),
            (&[X], X, Behind(0)),
            (&[R, X, R], X, Behind(2)),
            (&[R, R], R, Enter),
            (&[R, X, R], R, Behind(1)),
            (&[P(2), P(2), R], R, Behind(1)),
            (&[P(3), P(3)], P(3), Enter),
            (&[P(2), P(2)], P(2), Next),
            (&[P(2), P(2), P(2)], P(2), Behind(2)),
            (&[P(2), X], P(2), Behind(1)),
            (&[P(2)], P(3), Behind(0)),
            (&[P(2), P(2)], P(3), Behind(1)),
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

    struct Queue(Vec<(u32, Kind, Option<Watch>)>);

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
            let first = self.0.first().map(|it| it.1);
            let same = self.0.iter().take_while(|it| Some(it.1) == first);
            let may = same.enumerate().filter(|(at, it)| it.1.admits(*at)).count();
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
                    let kind = [X, R, P(2), P(2), P(3)][random.usize(..5)];
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
