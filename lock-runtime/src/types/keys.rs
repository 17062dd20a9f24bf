//! The keys of one acquisition.

use crate::types::error::LockError;
use crate::types::key::LockKey;

/// The keys of one acquisition, all or none: in order, so that two acquisitions never deadlock,
/// and without duplicates.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) first: LockKey,
    /// The others in descending order, so that the next one is the last.
    pub(crate) rest: Vec<LockKey>,
}

impl Keys {
    /// Fails with the first error among them, and without any key. One key needs no allocation.
    pub(crate) fn new(
        keys: impl IntoIterator<Item = Result<LockKey, LockError>>,
    ) -> Result<Self, LockError> {
        let mut keys = keys.into_iter();
        let mut first = keys.next().ok_or(LockError::InvalidKey {
            reason: "there is none: name at least one",
        })??;
        let mut rest: Vec<_> = keys.collect::<Result<_, _>>()?;
        for key in &mut rest {
            if *key < first {
                std::mem::swap(key, &mut first);
            }
        }
        rest.retain(|key| *key != first);
        rest.sort_unstable_by(|a, b| b.cmp(a));
        rest.dedup();
        Ok(Self { first, rest })
    }

    /// All of them, in order.
    pub(crate) fn list(&self) -> Vec<&LockKey> {
        std::iter::once(&self.first)
            .chain(self.rest.iter().rev())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_order_and_once() {
        for names in [&["a"][..], &["c", "a", "b"], &["b", "c", "b", "a", "a"]] {
            let keys = Keys::new(names.iter().map(|name| Ok(LockKey::of(name)))).expect("valid");
            let listed = keys.list();
            assert_eq!(
                listed,
                ["a", "b", "c"]
                    .map(LockKey::of)
                    .iter()
                    .take(listed.len())
                    .collect::<Vec<_>>()
            );
            assert_eq!(listed.len() == 1, names.len() == 1);
        }
        assert!(Keys::new([]).is_err());
    }
}
