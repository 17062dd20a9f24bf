//! A client of the release before there were chains, which takes turns with those of this one while a service is
//! updated.

use std::time::Duration;

use redis::RedisResult;
use tokio::time::sleep;

use crate::{Peer, log::monotonic};

/// How often it asks where it stands; clients of that release hear of their grants as well.
const ASKS_EVERY: Duration = Duration::from_millis(5);

/// One acquisition at a time, on any lock.
#[derive(Debug)]
pub(crate) struct Earlier {
    peer: Peer,
    /// Of its last token.
    number: u32,
    ttl: Duration,
}

/// What it was granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) fence: u64,
    /// Until when it may work, on the clock that all processes share.
    pub(crate) until: Duration,
}

impl Earlier {
    /// One that is connected to the server with this URL; all its leases are that long.
    ///
    /// # Errors
    ///
    /// Why the server cannot be reached.
    pub(crate) async fn connect(server: &str, ttl: Duration) -> RedisResult<Self> {
        let peer = Peer::try_new(server, "", true).await?;
        Ok(Self {
            peer: peer.of_before(),
            number: 0,
            ttl,
        })
    }

    /// Waits for a lock until it has it.
    ///
    /// # Errors
    ///
    /// What the server says, or that it cannot be reached: the token may be in line, or have the lock.
    pub(crate) async fn take(&mut self, lock: &str) -> RedisResult<Turn> {
        lock.clone_into(&mut self.peer.lock);
        let ttl = u32::try_from(self.ttl.as_millis()).unwrap_or(u32::MAX);
        loop {
            self.number = fastrand::u32(..);
            let mut asked = monotonic();
            let mut answer = self.peer.try_acquire(self.number, ttl, true).await?;
            while answer[1] == "waiting" {
                sleep(ASKS_EVERY).await;
                asked = monotonic();
                answer = self.peer.try_ask(self.number, ttl).await?;
            }
            if answer[1] == "granted" {
                return Ok(Turn {
                    fence: answer[2].parse().expect("a fence"),
                    until: asked + self.ttl * 3 / 4,
                });
            }
        }
    }

    /// Lets go of what it has.
    ///
    /// # Errors
    ///
    /// What the server says, or that it cannot be reached.
    pub(crate) async fn release(&mut self) -> RedisResult<bool> {
        self.peer.try_release(self.number).await
    }
}
