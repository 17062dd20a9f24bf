//! A primary of PostgreSQL and its standby under torture.

use std::{net::SocketAddr, time::Duration};

use tokio::time::sleep;

use super::{
    Profile, Protection,
    fault::about_a_lease,
    history::monotonic,
    store::{Doing, Fleet},
};
use crate::{Fate, PostgresPair, PostgresPeer, PostgresServer, SCHEMA, TIME_LIMIT, eventually};

const SERVERS: usize = 2;

/// How often statements are cancelled while they are.
const CANCEL_EVERY: Duration = Duration::from_millis(3);

/// Starts servers of which the standby has everything that was confirmed, if the profile depends on that.
pub(super) async fn start(test: &str, profile: Profile) -> Option<PostgresPair> {
    if profile == Profile::Failover(Protection::Replicas) {
        PostgresPair::start_synchronous(test).await
    } else {
        PostgresPair::start(test).await
    }
}

/// Does something to the connections of managers, or to the whole primary.
pub(super) async fn connections(pair: &mut PostgresPair) -> &'static str {
    match fastrand::u8(..7) {
        0 => {
            pair.primary().terminate_all().await;
            "connections terminated"
        }
        1 => {
            cancel(pair.primary()).await;
            "statements cancelled"
        }
        2 => {
            let backends = pair.primary().backends().await;
            if let Some(pid) = fastrand::choice(backends) {
                pair.primary().kill_backend(pid).await;
            }
            "backends killed"
        }
        3 => {
            let place = pair.place();
            pair.server_mut(place).restart().await;
            "servers killed"
        }
        4 => {
            let place = pair.place();
            pair.server_mut(place).restart_cleanly().await;
            "servers restarted"
        }
        5 => {
            lock_tables(pair.primary()).await;
            "tables locked"
        }
        _ => {
            use_up(pair.primary()).await;
            "connections used up"
        }
    }
}

/// The standby takes the place of the primary, which ends and comes back as its standby.
pub(super) async fn fail_over(pair: &mut PostgresPair) -> &'static str {
    let name = match fastrand::u8(..3) {
        0 => {
            pair.fail_over(Fate::Killed).await;
            "primaries killed"
        }
        1 => {
            pair.fail_over(Fate::ShutDown).await;
            "primaries shut down"
        }
        _ => {
            let place = pair.place();
            pair.server_mut(place).stop();
            sleep(about_a_lease()).await;
            pair.fail_over(Fate::Killed).await;
            "primaries stopped"
        }
    };
    sleep(about_a_lease()).await;
    pair.mend().await;
    name
}

/// Cancels whatever runs, again and again.
async fn cancel(server: &PostgresServer) {
    let mut peer = server.peer().await;
    let end = monotonic() + about_a_lease();
    while monotonic() < end {
        peer.rows(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        )
        .await;
        sleep(CANCEL_EVERY).await;
    }
}

/// Locks the tables as a change of the schema does.
async fn lock_tables(server: &PostgresServer) {
    let mut peer = server.peer().await;
    let lock = format!("BEGIN; LOCK TABLE {SCHEMA}.lock, {SCHEMA}.waiter IN ACCESS EXCLUSIVE MODE");
    // It is chosen to end a deadlock, now and then.
    if peer.try_rows(&lock).await.is_ok() {
        sleep(about_a_lease()).await;
    }
    let _ = peer.try_rows("ROLLBACK").await;
}

/// Opens all connections that the server has left, and ends those of managers.
async fn use_up(server: &PostgresServer) {
    let mut peer = server.peer().await;
    let mut opened = Vec::new();
    let own = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE backend_type = 'client backend' AND application_name <> '' AND pid <> pg_backend_pid()";
    let end = monotonic() + about_a_lease();
    while monotonic() < end {
        peer.rows(own).await;
        while let Ok(more) = PostgresPeer::try_connect(server.addr(), "postgres", "postgres").await
        {
            opened.push(more);
        }
        sleep(CANCEL_EVERY).await;
    }
}

impl Fleet for PostgresPair {
    fn addresses(&self) -> Vec<SocketAddr> {
        Self::addresses(self).into()
    }

    fn stop(&mut self, server: usize) {
        self.server_mut(server).stop();
    }

    fn resume(&mut self, server: usize) {
        self.server_mut(server).resume();
    }

    fn leader(&mut self) -> Doing<'_, usize> {
        Box::pin(async { self.place() })
    }

    fn witnesses(&self, leader: usize) -> Vec<usize> {
        vec![SERVERS - 1 - leader]
    }

    fn cut_off<'a>(&'a mut self, _servers: &'a [usize]) -> Doing<'a, ()> {
        panic!("a standby does not take the place of a primary by itself")
    }

    fn rejoin<'a>(&'a mut self, _servers: &'a [usize]) -> Doing<'a, ()> {
        panic!("nobody was cut off")
    }

    fn replace(&mut self, _leader: usize) -> Doing<'_, ()> {
        Box::pin(async {
            fail_over(self).await;
        })
    }

    fn blind(&mut self, witness: usize) {
        self.server_mut(witness).stop();
    }

    fn see(&mut self, witness: usize) {
        self.server_mut(witness).resume();
    }

    fn settled(&mut self) -> Doing<'_, ()> {
        Box::pin(async {
            eventually(TIME_LIMIT, async || self.primary().is_up().await).await;
        })
    }

    fn left_behind(&mut self) -> Doing<'_, Vec<String>> {
        // Waiters of clients that are gone leave the queue when its lock is asked for.
        Box::pin(async {
            let mut left = self.primary().traces(SCHEMA).await;
            left.retain(|it| !it.starts_with("waiter "));
            left
        })
    }
}
