//! A leader that hangs while a ticket is adopted, and goes on once another member leads.
//!
//! Section: guarantees.md#tickets

use std::time::Duration;

use lock_runtime::LockError;
use tests::{EtcdCluster, TIME_LIMIT, release, take, within};
use tokio::task::JoinSet;

use crate::{is_renewed, patient};

/// Longer than an election on a busy machine. A former leader that hangs for longer may end leases.
const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_ticket_has_one_adopter_while_the_leader_hangs() {
    let Some(cluster) = EtcdCluster::start("a leader that hangs", 3).await else {
        return;
    };
    let managers = [patient(&cluster.url()).await, patient(&cluster.url()).await];
    for _ in 0..3 {
        let guard = take(&managers[0], "key", LONG).await;
        let fence = guard.fencing_token();
        let ticket = guard.into_ticket(LONG).await.unwrap();
        let leader = cluster.leader().await;
        cluster.members[leader].stop();
        let mut adopters = JoinSet::new();
        for number in 0..8 {
            let adopter = managers[number % 2].adopt(&ticket).ttl(LONG);
            adopters.spawn(adopter.wait_forever().acquire());
        }
        let mut guards = Vec::new();
        while let Some(adopted) = within(3 * TIME_LIMIT, adopters.join_next()).await {
            match adopted.unwrap() {
                Ok(guard) => guards.push(guard),
                Err(LockError::InvalidTicket { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        // It has not heard yet that another member leads.
        cluster.members[leader].resume();
        let [guard] = <[_; 1]>::try_from(guards).unwrap();
        assert!(guard.fencing_token() > fence);
        is_renewed(&guard).await;
        let refused = managers[1].adopt(&ticket).ttl(LONG).acquire().await;
        assert!(matches!(refused, Err(LockError::InvalidTicket { .. })));
        assert!(guard.is_held());
        release(guard).await;
    }
}
