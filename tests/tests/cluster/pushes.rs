//! A grant that is pushed counts as one that the server knows to have been heard.
//!
//! Section: guarantees.md#when-locks-move-in-a-cluster

use redis::Value;
use tests::{ClusterFleet, LONG, RedisServer, TIME_LIMIT, connect, granted, queue, release, take};

/// The numbers of the connections that listen at a node.
async fn connections(server: &RedisServer) -> Vec<String> {
    let said = server.cmd(&["CLIENT", "LIST", "TYPE", "PUBSUB"]).await;
    let id = |line: &str| {
        let word = line.split(' ').find_map(|word| word.strip_prefix("id="));
        word.expect("an id").to_owned()
    };
    text(&said).lines().map(id).collect()
}

#[tokio::test]
async fn a_grant_that_was_taken_back_is_not_believed_by_another_nodes_push() {
    let fleet = ClusterFleet::start().await;
    let node = &fleet.nodes()[fleet.master_of("key").await];
    let holder = connect(fleet.url()).await;
    let guard = take(&holder, "key", LONG).await;
    let before = connections(node).await;
    let deaf = connect(format!("{}?pool_size=1", fleet.url())).await;
    let after = connections(node).await;
    let theirs = after
        .iter()
        .find(|id| !before.contains(id))
        .expect("one more");
    let heard = connect(fleet.url()).await;
    let first = queue(node, &deaf, "key", LONG, 1).await;
    let second = queue(node, &heard, "key", LONG, 2).await;

    // At once: the first waiter has no connection to this node when the lock is handed over, but to the others.
    let key = RedisServer::owner_key("key");
    let owner = node.cmd(&["GET", &key]).await;
    let keys = ["", ":f", ":q", ":s", ":h"].map(|part| format!("{key}{part}"));
    let mut pipe = redis::pipe();
    pipe.atomic();
    pipe.cmd("CLIENT").arg("KILL").arg("ID").arg(theirs);
    pipe.cmd("EVAL")
        .arg(tests::script_text("release"))
        .arg(5)
        .arg(&keys);
    pipe.arg(text(&owner)).arg(format!(":{}", id(node).await));
    let answers: Vec<Value> = pipe
        .query_async(&mut node.connection().await)
        .await
        .expect("killed and released");
    let [Value::Int(1), released] = &*answers else {
        panic!("{answers:?}");
    };
    assert_eq!(*released, owner, "it was not released");

    let second = granted(TIME_LIMIT, second).await;
    assert!(!first.is_finished(), "two hold the lock");
    assert!(second.is_held());
    release(second).await;
    release(granted(TIME_LIMIT, first).await).await;
    drop(guard);
}

fn text(value: &Value) -> String {
    redis::from_redis_value_ref(value).expect("text")
}

/// What a node adds to the names of channels.
async fn id(node: &RedisServer) -> String {
    text(&node.cmd(&["CLUSTER", "MYID"]).await)
}
