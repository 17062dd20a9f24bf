//! Requests and answers about downgrades that are lost.

use std::net::SocketAddr;
use std::time::Duration;

use lock_runtime::LockError;
use tests::{LONG, Lost, Scene, TIME_LIMIT, queued, release, take, within};

use super::{downgrade, read, waits, write};

/// `url` names the server by an address.
pub(super) async fn scene<S>(
    server: S,
    addr: SocketAddr,
    url: impl Fn(&S, SocketAddr) -> String,
) -> Scene<S> {
    let scene = Scene::new(server, addr, url).await;
    // The server has to know what is called, so that an answer is not that it does not.
    release(downgrade(take(&scene.ours, "key", LONG).await).await).await;
    scene
}

pub(super) async fn a_downgrade_is_asked_for_until_it_is_answered<S>(scene: &Scene<S>, lost: Lost) {
    let writer = take(&scene.ours, "key", LONG).await;
    let token = writer.fencing_token();
    let next = queued(&scene.others, read(&scene.others)).await;
    let mut downgrading = Box::pin(writer.downgrade());
    scene.proxy.lose(lost, &mut downgrading).await;
    let reader = within(TIME_LIMIT, downgrading).await.expect("an answer");
    let next = within(TIME_LIMIT, next).await.expect("it enters beside it");
    assert!(reader.is_held() && reader.fencing_token() == token);
    let status = scene.others.status("key").await.expect("an answer");
    assert_eq!(status.holders.len(), 2, "{status:?}");
    let mut writer = queued(&scene.others, write(&scene.others)).await;
    release(next).await;
    waits(&scene.others, &mut writer).await;
    release(reader).await;
    release(within(TIME_LIMIT, writer).await.expect("it is next")).await;
}

pub(super) async fn a_downgrade_without_an_answer_ends_with_the_lease<S>(
    scene: &Scene<S>,
    lost: Lost,
) {
    // A machine that stands still does so for less.
    let ttl = Duration::from_secs(3);
    let writer = take(&scene.ours, "key", ttl).await;
    let mut downgrading = Box::pin(writer.downgrade());
    scene.lose_for_good(lost, &mut downgrading).await;
    let failed = within(TIME_LIMIT, downgrading).await;
    let failed = failed.expect_err("nobody answers");
    assert!(matches!(failed, LockError::Lost { .. }), "{failed}");
    release(take(&scene.others, "key", LONG).await).await;
    scene.proxy.requests().pass();
    scene.ours.shutdown().await;
}

pub(super) async fn a_downgrade_that_is_awaited_no_more_releases_the_lock<S>(
    scene: &Scene<S>,
    lost: Lost,
) {
    let writer = take(&scene.ours, "key", LONG).await;
    let mut downgrading = Box::pin(writer.downgrade());
    scene.proxy.lose(lost, &mut downgrading).await;
    drop(downgrading);
    release(take(&scene.others, "key", LONG).await).await;
}
