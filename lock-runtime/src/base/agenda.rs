//! What is due when.

use std::collections::BTreeSet;

use super::clock::Moment;

/// Keys in the order in which they are due. A key that is to be found here again is kept
/// together with its moment elsewhere.
#[derive(Debug)]
pub(crate) struct Agenda<K>(BTreeSet<(Moment, K)>);

impl<K> Default for Agenda<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<K: Ord> Agenda<K> {
    pub(crate) fn insert(&mut self, at: Moment, key: K) {
        self.0.insert((at, key));
    }

    pub(crate) fn remove(&mut self, at: Moment, key: K) {
        self.0.remove(&(at, key));
    }

    /// Takes out the first key that is due at `now`.
    pub(crate) fn due(&mut self, now: Moment) -> Option<K> {
        self.next().filter(|at| *at <= now)?;
        self.0.pop_first().map(|(_, key)| key)
    }

    /// When something is due next.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.0.first().map(|(at, _)| *at)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_due_in_order_and_those_that_were_removed_are_not() {
        let at = Moment::from_nanos;
        let mut agenda = Agenda::default();
        for (nanos, key) in [(3, 'c'), (1, 'a'), (2, 'b'), (1, 'z')] {
            agenda.insert(at(nanos), key);
        }
        agenda.remove(at(1), 'z');
        assert_eq!(agenda.next(), Some(at(1)));
        let due: Vec<_> = std::iter::from_fn(|| agenda.due(at(2))).collect();
        assert_eq!(due, ['a', 'b']);
        assert!(!agenda.is_empty());
        agenda.clear();
        assert_eq!((agenda.next(), agenda.due(at(9))), (None, None));
    }
}
