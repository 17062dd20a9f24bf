//! An ensemble of ZooKeeper under torture.

use std::net::SocketAddr;

use super::{
    KEYS, Profile, lock_name,
    store::{Doing, Fleet},
};
use crate::ZooKeeperEnsemble;

const SERVERS: usize = 3;
/// Four ticks are a session.
const TICK: u32 = 500;
/// After so many silent ticks a leader is given up, and gives up.
const SYNC_LIMIT: u32 = 2;

/// Starts one whose servers give each other up as soon as those in production.
pub(super) async fn start(test: &str, profile: Profile) -> Option<ZooKeeperEnsemble> {
    let limits = if profile == Profile::Limits {
        // Just above the least that the store's own client needs.
        "jute.maxbuffer=262144"
    } else {
        "jute.maxbuffer=1048575"
    };
    ZooKeeperEnsemble::start_limited(test, TICK, SYNC_LIMIT, limits).await
}

impl Fleet for ZooKeeperEnsemble {
    fn addresses(&self) -> Vec<SocketAddr> {
        Self::addresses(self)
    }

    fn stop(&mut self, server: usize) {
        self.server(server).stop();
    }

    fn resume(&mut self, server: usize) {
        self.server(server).resume();
    }

    fn leader(&mut self) -> Doing<'_, usize> {
        Box::pin(Self::leader(self))
    }

    fn witnesses(&self, leader: usize) -> Vec<usize> {
        (0..SERVERS).filter(|it| *it != leader).collect()
    }

    fn cut_off<'a>(&'a mut self, servers: &'a [usize]) -> Doing<'a, ()> {
        Box::pin(async move {
            for server in servers {
                Self::cut_off(self, *server);
            }
        })
    }

    fn rejoin<'a>(&'a mut self, servers: &'a [usize]) -> Doing<'a, ()> {
        Box::pin(async move {
            for server in servers {
                self.join(*server);
            }
        })
    }

    fn replace(&mut self, _leader: usize) -> Doing<'_, ()> {
        Box::pin(async {})
    }

    fn blind(&mut self, witness: usize) {
        Self::cut_off(self, witness);
    }

    fn see(&mut self, witness: usize) {
        self.join(witness);
    }

    fn settled(&mut self) -> Doing<'_, ()> {
        Box::pin(async {
            for server in 0..SERVERS {
                self.serves(server).await;
            }
        })
    }

    fn left_behind(&mut self) -> Doing<'_, Vec<String>> {
        Box::pin(async {
            let mut peer = self.server(0).peer().await;
            let mut left = Vec::new();
            for name in (0..KEYS).map(lock_name) {
                // The second one is that of another library.
                for parent in ["lock", "peers"] {
                    let queue = peer.children(&format!("/{parent}/{name}")).await;
                    left.extend(queue.iter().map(|entry| format!("{name}/{entry}")));
                }
            }
            left
        })
    }
}
