//! Downgrades on an etcd server whose requests and answers are lost.
//!
//! Section: guarantees.md#from-writer-to-reader

use tests::{EtcdServer, Scene};

use super::under_faults;

async fn scene() -> Option<Scene<EtcdServer>> {
    let server = EtcdServer::start("tests/downgrade").await?;
    let addr = server.addr();
    Some(under_faults::scene(server, addr, |_, addr| format!("etcd://{addr}")).await)
}

tests::tests_under_faults! {
    scene(),
    a_downgrade_is_asked_for_until_it_is_answered,
    a_downgrade_without_an_answer_ends_with_the_lease,
    a_downgrade_that_is_awaited_no_more_releases_the_lock,
}
