//! Downgrades on a ZooKeeper server whose requests and answers are lost.
//!
//! Section: guarantees.md#from-writer-to-reader

use tests::{Scene, ZooKeeperServer};

use super::under_faults;

async fn scene() -> Option<Scene<ZooKeeperServer>> {
    let server = ZooKeeperServer::start("tests/downgrade").await?;
    let addr = server.addr();
    let url = |_: &_, addr| format!("zookeeper://{addr}/downgrade");
    Some(under_faults::scene(server, addr, url).await)
}

tests::tests_under_faults! {
    scene(),
    a_downgrade_is_asked_for_until_it_is_answered,
    a_downgrade_without_an_answer_ends_with_the_lease,
    a_downgrade_that_is_awaited_no_more_releases_the_lock,
}
