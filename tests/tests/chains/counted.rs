//! The long runs print what becomes of those who follow, and they print what is so.

use tests::{ChainWatch, Chains, LONG};
use tokio::sync::watch;

use crate::{KEY, Line};

#[tokio::test]
async fn what_becomes_of_those_who_follow_is_counted() {
    let mut line = Line::new().await;
    line.may_go = watch::Sender::new(0);
    let chains = ChainWatch::start([&line.server]).await;
    let (a, guard) = (line.manager().await, line.hold().await);
    line.join(&a, &["a1", "a2"]).await;
    let dropped = tokio::spawn(a.lock(KEY).ttl(LONG).wait_forever().acquire());
    line.server.in_line(KEY, 3).await;
    line.join(&a, &["a3", "a4"]).await;
    guard.release();
    line.entered(1).await;
    dropped.abort();
    line.may_go.send_replace(1);
    line.entered(2).await;
    // Those behind acquire again, one beside nobody and the other one behind it.
    line.manager().await.force_release(KEY).await.unwrap();
    line.entered(3).await;
    line.may_go.send_replace(usize::MAX);
    line.all().await;
    let order = line.order();
    assert_eq!(order, ["a1", "a2", "a3", "a4"]);
    chains.catch_up([&line.server]).await;
    let had = line.had.lock().unwrap();
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
