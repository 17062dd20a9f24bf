//! The users and passwords that a manager has had, with all of which it logs in: a node
//! belongs to a user *and* a password, so that those which it created with an earlier
//! password are closed to it with the latest one alone.

use std::sync::{Arc, Mutex, PoisonError};

use crate::types::credentials::Credentials;

/// More than a session lasts for. The first one is kept: what stands above the locks may
/// belong to it.
const MOST: usize = 8;

/// The same for all clones.
#[derive(Clone, Default)]
pub(super) struct Logins(Arc<Mutex<Vec<Credentials>>>);

impl Logins {
    pub(super) fn known(&self) -> Vec<Credentials> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Adds the latest ones, and gives out all.
    pub(super) fn learned(&self, latest: Credentials) -> Vec<Credentials> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |it: &Credentials| it.user == latest.user && it.password == latest.password;
        if !known.iter().any(same) {
            known.push(latest);
        }
        if known.len() > MOST {
            known.remove(1);
        }
        known.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one_and_the_latest_ones_are_kept_once() {
        let logins = Logins::default();
        for number in 0..20 {
            for _ in 0..2 {
                logins.learned(Credentials::new("me", number.to_string()));
            }
        }
        let known = logins.known();
        let passwords: Vec<_> = known.iter().map(|it| &*it.password).collect();
        assert_eq!(passwords, ["0", "13", "14", "15", "16", "17", "18", "19"]);
    }
}
