//! The users and passwords that a manager has had, with all of which it logs in: a node
//! belongs to a user *and* a password, so that those which it created with an earlier
//! password are closed to it with the latest one alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::backend::transport::logins::Logins;
use crate::types::credentials::Credentials;
use crate::types::error::Cause;

/// Enough for the length of a session. The first one is kept: the nodes above the locks may
/// belong to it.
const MOST: usize = 8;

/// The users that log in, now and before.
#[derive(Clone)]
pub(super) struct AllLogins {
    pub(super) latest: Logins,
    /// The same for all clones.
    known: Arc<Mutex<Vec<Credentials>>>,
}

impl AllLogins {
    pub(super) fn new(latest: Logins) -> Self {
        Self {
            latest,
            known: Arc::default(),
        }
    }

    /// Those to log in with. If some are known, the latest ones have to come in time: servers
    /// refuse no login, so that the session goes on with those that are known.
    pub(super) async fn all(&self, timeout: Duration) -> Result<Vec<Credentials>, Cause> {
        let known = self.known().clone();
        let asked = self.latest.latest();
        if known.is_empty() {
            return Ok(self.learned(asked.await?));
        }
        Ok(match tokio::time::timeout(timeout, asked).await {
            Ok(Ok(latest)) => self.learned(latest),
            Ok(Err(_)) | Err(_) => known,
        })
    }

    fn known(&self) -> MutexGuard<'_, Vec<Credentials>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the latest ones, and gives out all.
    fn learned(&self, latest: Option<Credentials>) -> Vec<Credentials> {
        let mut known = self.known();
        if let Some(latest) = latest {
            let same = |it: &Credentials| it.user == latest.user && it.password == latest.password;
            if !known.iter().any(same) {
                known.push(latest);
            }
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
        let logins = AllLogins::new(Logins::default());
        for number in 0..20 {
            for _ in 0..2 {
                logins.learned(Some(Credentials::new("me", number.to_string())));
            }
        }
        let known = logins.known();
        let passwords: Vec<_> = known.iter().map(|it| &*it.password).collect();
        assert_eq!(passwords, ["0", "13", "14", "15", "16", "17", "18", "19"]);
    }
}
