//! A cluster of etcd under torture.

use std::{net::SocketAddr, time::Duration};

use tokio::time::sleep;

use super::{
    Profile,
    store::{Doing, Fleet},
};
use crate::EtcdCluster;

const MEMBERS: usize = 3;
/// The one that can be cut off.
const APART: usize = 0;

/// Starts one whose first member stands apart, where the profile cuts it off.
pub(super) async fn start(test: &str, profile: Profile) -> Option<EtcdCluster> {
    match profile {
        Profile::CutOff(_) | Profile::Stale => EtcdCluster::start_apart(test, MEMBERS).await,
        Profile::Limits => {
            let limits = [
                ("max-concurrent-streams", "8"),
                ("max-request-bytes", "4096"),
            ];
            EtcdCluster::start_limited(test, MEMBERS, &limits).await
        }
        _ => EtcdCluster::start(test, MEMBERS).await,
    }
}

impl Fleet for EtcdCluster {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().map(crate::EtcdServer::addr).collect()
    }

    fn stop(&mut self, server: usize) {
        self.members[server].stop();
    }

    fn resume(&mut self, server: usize) {
        self.members[server].resume();
    }

    fn halt(&mut self, server: usize, time: Duration) -> Doing<'_, &'static str> {
        let member = &mut self.members[server];
        Box::pin(async move {
            if member.ends_leases_of_others().await {
                // It would do so when it goes on: see docs/etcd.md#former-leaders.
                member.kill().await;
                sleep(time).await;
                member.start_again().await;
                return "server killed";
            }
            member.stop();
            sleep(time).await;
            member.resume();
            "server stopped"
        })
    }

    fn leader(&mut self) -> Doing<'_, usize> {
        Box::pin(Self::leader(self))
    }

    fn witnesses(&self, leader: usize) -> Vec<usize> {
        (0..MEMBERS).filter(|it| *it != leader).collect()
    }

    fn minority(&self, _leader: usize) -> Vec<usize> {
        vec![APART]
    }

    fn cut_off<'a>(&'a mut self, servers: &'a [usize]) -> Doing<'a, ()> {
        assert_eq!(servers, [APART], "only the first member stands apart");
        Box::pin(async {
            // Mostly it leads then.
            if fastrand::u8(..4) > 0 {
                self.lead(APART).await;
            }
            Self::cut_off(self);
        })
    }

    fn rejoin<'a>(&'a mut self, _servers: &'a [usize]) -> Doing<'a, ()> {
        Box::pin(async { self.join() })
    }

    fn replace(&mut self, _leader: usize) -> Doing<'_, ()> {
        Box::pin(async {})
    }

    fn blind(&mut self, witness: usize) {
        self.members[witness].stop();
    }

    fn see(&mut self, witness: usize) {
        self.members[witness].resume();
    }

    fn settled(&mut self) -> Doing<'_, ()> {
        Box::pin(async {
            for member in &self.members {
                member.ready().await;
            }
        })
    }

    fn left_behind(&mut self) -> Doing<'_, Vec<String>> {
        Box::pin(async {
            let mut left = Vec::new();
            // The second one is that of another library.
            for prefix in ["lock/torture-", "torture-"] {
                left.extend(self.members[1].keys(prefix).await);
            }
            left
        })
    }
}
