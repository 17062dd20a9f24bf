//! The long runs print what becomes of those who follow, and they print what is so.
//!
//! Section: guarantees.md#a-lock-passes-through-a-process-without-the-server

use tests::{ChainWatch, Chains, LONG};
use tokio::sync::watch;

use crate::{KEY, Scene};

#[tokio::test]
async fn what_becomes_of_those_who_follow_is_counted() {
    let mut scene = Scene::new().await;
    scene.may_go = watch::Sender::new(0);
    let chains = ChainWatch::start([&scene.server]).await;
    let (a, guard) = (scene.manager().await, scene.hold().await);
    scene.join(&a, &["a1", "a2"]).await;
    let dropped = tokio::spawn(a.lock(KEY).ttl(LONG).wait_forever().acquire());
    scene.server.queued(KEY, 3).await;
    scene.join(&a, &["a3", "a4"]).await;
    guard.release();
    scene.entered(1).await;
    dropped.abort();
    scene.may_go.send_replace(1);
    scene.entered(2).await;
    // Those behind acquire again, one beside nobody and the other one behind it.
    scene.manager().await.force_release(KEY).await.unwrap();
    scene.entered(3).await;
    scene.may_go.send_replace(usize::MAX);
    scene.all().await;
    let order = scene.order();
    assert_eq!(order, ["a1", "a2", "a3", "a4"]);
    chains.catch_up([&scene.server]).await;
    let had = scene.had.lock().unwrap();
    let counts = chains.chains(had.iter().map(|(_, fence)| (KEY, *fence)));
    let expected = Chains {
        formed: 1,
        longest: 5,
        followers: 4,
        entered: 1,
        started_over: 2,
    };
    assert_eq!(counts, expected);
    assert_eq!(counts.gone(), 1);
}
