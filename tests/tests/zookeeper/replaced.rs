//! Nodes that give way to others in the same position while somebody asks their holders to yield, or revokes a lock.

use std::sync::Arc;

use lock_runtime::{LockError, LockManager};
use tests::{LONG, Proxy, TIME_LIMIT, Verdict, ZooKeeperServer, poll_once, release, take, within};

use crate::{
    manager,
    packets::{GET_CHILDREN, GET_DATA, Packets},
    server,
};

struct Scene {
    locks: LockManager,
    /// Connected through the proxy.
    others: LockManager,
    proxy: Arc<Proxy>,
}

impl Scene {
    async fn new(server: &ZooKeeperServer) -> Self {
        let proxy = Arc::new(Proxy::start(server.addr()));
        let url = format!("zookeeper://{}/replaced", proxy.addr());
        Self {
            locks: manager(&server.url("replaced"), LONG).await,
            others: manager(&url, LONG).await,
            proxy,
        }
    }

    /// Begins what asks the server, and keeps back the request that follows the first one of this kind.
    async fn begin(&self, asks: &mut (impl Future + Unpin), kind: i32) {
        let (packets, proxy) = (Packets::default(), Arc::downgrade(&self.proxy));
        self.proxy.requests().inspect(move |bytes| {
            let mut read = packets.read(bytes).into_iter();
            if read.any(|it| it.operation() == kind)
                && let Some(proxy) = proxy.upgrade()
            {
                proxy.requests().hold();
            }
            Verdict::Pass
        });
        assert!(poll_once(asks).await.is_pending());
        within(TIME_LIMIT, self.proxy.requests().held()).await;
        self.proxy.requests().ignore();
    }

    fn go_on(&self) {
        self.proxy.requests().pass();
    }
}

async fn queue(server: &ZooKeeperServer) -> Vec<String> {
    server.peer().await.children("/replaced/lock/key").await
}

#[tokio::test]
async fn a_reader_that_was_a_writer_is_asked_to_yield() {
    let Some(server) = server().await else { return };
    for kind in [GET_CHILDREN, GET_DATA] {
        let scene = Scene::new(&server).await;
        let writer = take(&scene.locks, "key", LONG).await;
        let mut asks = Box::pin(scene.others.ask("key"));
        scene.begin(&mut asks, kind).await;
        let reader = within(TIME_LIMIT, writer.downgrade()).await.unwrap();
        scene.go_on();
        assert_eq!(within(TIME_LIMIT, asks).await.unwrap(), 1);
        within(TIME_LIMIT, reader.asked()).await;
        assert!(reader.is_held());
        release(reader).await;
    }
}

#[tokio::test]
async fn the_lock_of_a_reader_that_was_a_writer_is_revoked() {
    let Some(server) = server().await else { return };
    let scene = Scene::new(&server).await;
    let writer = take(&scene.locks, "key", LONG).await;
    let mut forced = Box::pin(scene.others.force_release("key"));
    scene.begin(&mut forced, GET_CHILDREN).await;
    let reader = within(TIME_LIMIT, writer.downgrade()).await.unwrap();
    scene.go_on();
    assert_eq!(within(TIME_LIMIT, forced).await.unwrap(), 1);
    within(TIME_LIMIT, reader.lost()).await;
    assert_eq!(queue(&server).await, [""; 0]);
}

#[tokio::test]
async fn a_ticket_of_a_former_holder_is_revoked() {
    let Some(server) = server().await else { return };
    let scene = Scene::new(&server).await;
    let guard = take(&scene.locks, "key", LONG).await;
    let mut forced = Box::pin(scene.others.force_release("key"));
    scene.begin(&mut forced, GET_CHILDREN).await;
    let ticket = within(TIME_LIMIT, guard.into_ticket(LONG)).await.unwrap();
    scene.go_on();
    assert_eq!(within(TIME_LIMIT, forced).await.unwrap(), 1);
    let adopted = within(TIME_LIMIT, scene.locks.adopt(&ticket).ttl(LONG).acquire()).await;
    assert!(
        matches!(adopted, Err(LockError::InvalidTicket { .. })),
        "{adopted:?}"
    );
    assert_eq!(queue(&server).await, [""; 0]);
}

#[tokio::test]
async fn the_lock_of_an_adopter_is_revoked() {
    let Some(server) = server().await else { return };
    let scene = Scene::new(&server).await;
    let guard = take(&scene.locks, "key", LONG).await;
    let ticket = within(TIME_LIMIT, guard.into_ticket(LONG)).await.unwrap();
    let mut forced = Box::pin(scene.others.force_release("key"));
    // It reads how long the ticket keeps the lock closed.
    scene.begin(&mut forced, GET_DATA).await;
    let adopted = scene.locks.adopt(&ticket).ttl(LONG).acquire();
    let adopted = within(TIME_LIMIT, adopted).await.unwrap();
    scene.go_on();
    assert_eq!(within(TIME_LIMIT, forced).await.unwrap(), 1);
    within(TIME_LIMIT, adopted.lost()).await;
    assert_eq!(queue(&server).await, [""; 0]);
}
