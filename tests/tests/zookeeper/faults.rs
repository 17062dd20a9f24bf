//! Connections that break: no node is created twice or left behind, no place is lost.

use std::time::Duration;

use lock_runtime::{LockManager, LockRequest};
use tests::{
    LONG, PATIENCE, Proxy, ZooKeeperServer, in_line, poll_once, release, settled, take_turn, within,
};

use crate::{manager, server};

/// What of an exchange is lost.
#[derive(Clone, Copy, PartialEq)]
enum Lost {
    Request,
    Reply,
}

struct Scene {
    server: ZooKeeperServer,
    proxy: Proxy,
    ours: LockManager,
    theirs: LockManager,
}

impl Scene {
    async fn new() -> Option<Self> {
        let server = server().await?;
        let proxy = Proxy::start(server.addr());
        let url = format!("zookeeper://{}/faults", proxy.addr());
        Some(Self {
            ours: manager(&url, LONG).await,
            theirs: manager(&server.url("faults"), LONG).await,
            proxy,
            server,
        })
    }

    async fn line(&self) -> Vec<String> {
        self.server.peer().await.children("/faults/lock/key").await
    }

    /// Begins what asks the server, and cuts the connection when the request, or the reply, is on its way.
    async fn cut(&self, lost: Lost, asks: &mut (impl Future + Unpin)) {
        let way = match lost {
            Lost::Request => self.proxy.requests(),
            Lost::Reply => self.proxy.replies(),
        };
        way.hold();
        assert!(poll_once(asks).await.is_pending());
        within(PATIENCE, way.held()).await;
        self.proxy.cut().await;
        way.pass();
    }
}

fn request(locks: &LockManager) -> LockRequest {
    locks.lock("key").ttl(LONG).wait_forever()
}

#[tokio::test]
async fn a_create_whose_answer_is_lost_is_one_node() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    take_turn(&scene.ours, "key").await;
    for lost in [Lost::Reply, Lost::Request] {
        let mut acquire = request(&scene.ours).acquire();
        scene.cut(lost, &mut acquire).await;
        let guard = within(PATIENCE, acquire).await.unwrap();
        assert_eq!(scene.line().await.len(), 1);
        release(guard).await;
        assert_eq!(scene.line().await, [""; 0]);
    }
}

#[tokio::test]
async fn a_waiter_keeps_its_place() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let guard = take(&scene.theirs).await;
    let first = in_line(&scene.ours, request(&scene.ours)).await;
    let mut second = in_line(&scene.theirs, request(&scene.theirs)).await;
    let before = scene.line().await;
    scene.proxy.cut().await;
    settled(&scene.ours).await;
    assert_eq!(scene.line().await, before);
    release(guard).await;
    let first = within(PATIENCE, first).await.unwrap();
    assert!(poll_once(&mut second).await.is_pending());
    release(first).await;
    release(within(PATIENCE, second).await.unwrap()).await;
}

#[tokio::test]
async fn a_turn_that_comes_while_the_connection_is_cut_is_taken() {
    let Some(mut scene) = Scene::new().await else {
        return;
    };
    let guard = take(&scene.theirs).await;
    let waiter = in_line(&scene.ours, request(&scene.ours)).await;
    scene.proxy.refuse().await;
    scene.proxy.cut().await;
    release(guard).await;
    scene.proxy.admit();
    release(within(PATIENCE, waiter).await.unwrap()).await;
}

#[tokio::test]
async fn a_lock_is_held_over_another_connection() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let guard = take(&scene.ours).await;
    for _ in 0..3 {
        scene.proxy.cut().await;
        settled(&scene.ours).await;
        assert!(guard.is_held());
    }
    // And noticed when it is taken away.
    assert_eq!(scene.theirs.force_release("key").await.unwrap(), 1);
    within(Duration::from_secs(3), guard.lost()).await;
}

#[tokio::test]
async fn a_release_is_sent_until_it_is_confirmed() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    for lost in [Lost::Reply, Lost::Request] {
        let guard = take(&scene.ours).await;
        settled(&scene.ours).await;
        let mut released = Box::pin(guard.release_confirmed());
        scene.cut(lost, &mut released).await;
        assert!(within(PATIENCE, released).await.unwrap());
        assert_eq!(scene.line().await, [""; 0]);
    }
}

#[tokio::test]
async fn whoever_is_dropped_meanwhile_leaves_nothing() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    take_turn(&scene.ours, "key").await;
    for lost in [Lost::Reply, Lost::Request] {
        let mut acquire = request(&scene.ours).acquire();
        scene.cut(lost, &mut acquire).await;
        drop(acquire);
        settled(&scene.ours).await;
        tests::eventually(PATIENCE, async || scene.line().await.is_empty()).await;
    }
}

async fn take(locks: &LockManager) -> lock_runtime::LockGuard {
    within(PATIENCE, request(locks).acquire()).await.unwrap()
}
