//! One member that serves nobody keeps nobody from the others: a learner, or one that refuses the login.
//!
//! Section: etcd.md#configuration

use std::{net::SocketAddr, time::Duration};

use tests::{EtcdServer, Gateway, TIME_LIMIT, connect, eventually, release, take};

use crate::is_renewed;

const STREAMS: u32 = 100;
const TTL: Duration = Duration::from_secs(2);

fn url(login: &str, members: [SocketAddr; 2]) -> String {
    format!("etcd://{login}{},{}", members[0], members[1])
}

#[tokio::test]
async fn a_learner_is_asked_for_nothing() {
    let Some(server) = EtcdServer::start("a learner").await else {
        return;
    };
    let learner = Gateway::start(server.addr(), STREAMS);
    learner.learn(true);
    for login in ["", "shop:pass@"] {
        // The second member is the first that is asked.
        let locks = connect(url(login, [server.addr(), learner.addr()])).await;
        let guard = take(&locks, "key", TTL).await;
        is_renewed(&guard).await;
        release(guard).await;
    }
}

#[tokio::test]
async fn a_learner_serves_once_it_votes() {
    let Some(server) = EtcdServer::start("a learner that is promoted").await else {
        return;
    };
    let members = [(); 2].map(|()| Gateway::start(server.addr(), STREAMS));
    members[0].learn(true);
    let locks = connect(url("", [members[0].addr(), members[1].addr()])).await;
    members[0].learn(false);
    members[1].learn(true);
    members[1].retire();
    eventually(TIME_LIMIT, async || {
        let taken = locks.lock("key").acquire().await;
        taken.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_member_that_refuses_for_good_keeps_nobody_from_connecting() {
    let Some(server) = EtcdServer::start("a member that refuses").await else {
        return;
    };
    let refuses = Gateway::start(server.addr(), STREAMS);
    refuses.deny("Auth/Authenticate");
    for _ in 0..5 {
        let locks = connect(url("shop:pass@", [server.addr(), refuses.addr()])).await;
        release(take(&locks, "key", TTL).await).await;
    }
}
