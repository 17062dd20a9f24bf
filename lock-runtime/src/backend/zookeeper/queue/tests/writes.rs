//! Acquisitions that create and delete their nodes together.

use std::collections::BTreeMap;

use super::*;
use crate::backend::zookeeper::protocol::op::Access;
use crate::types::key::LockKey;

/// What a server keeps: the nodes in each container.
#[derive(Default)]
struct Server {
    containers: BTreeMap<String, Vec<String>>,
    /// The number of the last change.
    changed: i64,
    /// The number that the next node gets.
    next: u32,
    /// The transactions and other calls that it was asked for.
    asked: Vec<Op>,
}

impl Server {
    /// One that has the containers of these locks, as the queue knows.
    fn of(scene: &mut Scene, keys: &[&str]) -> Self {
        let mut server = Self::default();
        for key in keys {
            server.containers.insert(path(key), Vec::new());
            scene.queue.containers.used(scene.now, &LockKey::of(key));
        }
        server
    }

    fn nodes(&self) -> usize {
        self.containers.values().map(Vec::len).sum()
    }

    fn asked(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.asked)
    }

    /// Does what it is asked for, and keeps its answer.
    fn serve(&mut self, op: &Op) -> Result<Reply, Trouble> {
        self.asked.push(op.clone());
        self.changed += 1;
        let Op::Multi(parts) = op else {
            return self.execute(op);
        };
        let before = self.containers.clone();
        let replies: Result<_, _> = parts.iter().map(|it| self.execute(it)).collect();
        replies
            .map(Reply::Parts)
            .inspect_err(|_| self.containers = before)
    }

    fn execute(&mut self, op: &Op) -> Result<Reply, Trouble> {
        match op {
            Op::Create {
                path,
                mode: Mode::Sequential,
                ..
            } => {
                let (container, stem) = path.rsplit_once('/').unwrap();
                let nodes = self.containers.get_mut(container).ok_or(Trouble::NoNode)?;
                nodes.push(format!("{stem}{:010}", self.next));
                let path = format!("{path}{:010}", self.next);
                self.next += 1;
                Ok(Reply::Created { path })
            }
            Op::Create { path, .. } => {
                self.containers.entry(path.clone()).or_default();
                Ok(Reply::Created { path: path.clone() })
            }
            Op::Delete { path } => {
                let (container, name) = path.rsplit_once('/').unwrap();
                let nodes = self.containers.get_mut(container).ok_or(Trouble::NoNode)?;
                let at = nodes.iter().position(|it| it == name);
                nodes.remove(at.ok_or(Trouble::NoNode)?);
                Ok(Reply::Done)
            }
            Op::Children { path, .. } => {
                let names = self.containers.get(path).ok_or(Trouble::NoNode)?;
                Ok(children(names.clone(), self.changed))
            }
            Op::Read { .. } => Ok(Reply::Data {
                data: Vec::new(),
                stat: owned_by(7),
            }),
            Op::Sync { .. } => Ok(Reply::Done),
            other => panic!("{other:?}"),
        }
    }
}

impl Scene {
    fn acquire_key(&mut self, id: u64, key: &str) {
        let terms = Terms::of(LeaseId(id), key, TIMEOUT);
        self.queue.acquire(self.now, Arc::new(terms));
    }

    /// Has the server answer until nothing is asked any more.
    fn served_by(&mut self, server: &mut Server) {
        loop {
            let calls = self.calls();
            if calls.is_empty() {
                return;
            }
            for call in calls {
                let reply = server.serve(&call.op);
                self.reply(call, reply);
            }
        }
    }

    /// Who was granted a lock.
    fn holders(&mut self) -> Vec<u64> {
        let granted = |it| match it {
            Outcome::Granted { id, .. } => Some(id.0),
            _ => None,
        };
        self.outcomes().into_iter().filter_map(granted).collect()
    }

    /// What releases have reported.
    fn released(&mut self) -> Vec<(u64, bool)> {
        let released = |it| match it {
            Outcome::Released { id, result } => Some((id.0, result.expect("an answer"))),
            _ => None,
        };
        self.outcomes().into_iter().filter_map(released).collect()
    }
}

fn path(key: &str) -> String {
    format!("/lock/{key}")
}

/// Of each transaction, how many nodes it creates or deletes; other writes are one.
fn sizes(ops: &[Op]) -> Vec<usize> {
    let size = |op: &Op| match op {
        Op::Multi(parts) => Some(parts.len()),
        Op::Create { .. } | Op::Delete { .. } => Some(1),
        _ => None,
    };
    ops.iter().filter_map(size).collect()
}

#[test]
fn the_locks_of_a_turn_are_taken_and_released_by_one_transaction() {
    let mut scene = Scene::new();
    let mut server = Server::of(&mut scene, &["a", "b", "c"]);
    for (id, key) in [(1, "a"), (2, "b"), (3, "c")] {
        scene.acquire_key(id, key);
    }
    scene.served_by(&mut server);
    assert_eq!(scene.holders(), [1, 2, 3]);
    let asked = server.asked();
    assert_eq!(sizes(&asked), [3]);
    assert_eq!(asked.len(), 4, "each looks at its queue: {asked:?}");
    for id in 1..=3 {
        scene.queue.release(scene.now, LeaseId(id));
    }
    scene.served_by(&mut server);
    assert_eq!(scene.released(), [(1, true), (2, true), (3, true)]);
    assert_eq!(sizes(&server.asked()), [3]);
    assert_eq!(server.nodes(), 0);
}

// Section: zookeeper.md#how-a-lock-is-taken
#[test]
fn a_transaction_creates_one_node_in_a_queue() {
    let mut scene = Scene::new();
    let mut server = Server::of(&mut scene, &["a", "b"]);
    for (id, key) in [(1, "a"), (2, "a"), (3, "b"), (4, "a")] {
        scene.acquire_key(id, key);
    }
    scene.served_by(&mut server);
    assert_eq!(scene.holders(), [1, 3]);
    let asked = server.asked();
    assert_eq!(sizes(&asked), [2, 1, 1], "{asked:?}");
    // And those of one queue keep their order.
    let tokens = [1, 2, 4].map(|id| scene.claim(LeaseId(id)).token.to_string());
    let nodes = &server.containers[&path("a")];
    for (node, token) in nodes.iter().zip(tokens) {
        assert!(node.contains(&token), "{nodes:?}");
    }
}

// Section: zookeeper.md#how-a-lock-is-taken
#[test]
fn a_node_is_created_by_itself_where_its_container_may_be_gone() {
    let mut scene = Scene::new();
    let mut server = Server::of(&mut scene, &["a", "b"]);
    for (id, key) in [(1, "a"), (2, "unknown"), (3, "b")] {
        scene.acquire_key(id, key);
    }
    scene.served_by(&mut server);
    assert_eq!(scene.holders(), [1, 3, 2]);
    assert_eq!(sizes(&server.asked())[..2], [2, 1]);
    // It is known from then on, for a time.
    scene.queue.release(scene.now, LeaseId(1));
    scene.queue.release(scene.now, LeaseId(2));
    scene.served_by(&mut server);
    server.asked();
    scene.acquire_key(4, "a");
    scene.acquire_key(5, "unknown");
    scene.served_by(&mut server);
    assert_eq!(sizes(&server.asked()), [2]);
}

// Section: zookeeper.md#how-a-lock-is-taken
#[test]
fn creations_that_fail_together_are_asked_for_one_by_one() {
    let mut scene = Scene::new();
    let mut server = Server::of(&mut scene, &["a", "b", "c"]);
    server.containers.remove(&path("b"));
    for (id, key) in [(1, "a"), (2, "b"), (3, "c")] {
        scene.acquire_key(id, key);
    }
    scene.served_by(&mut server);
    assert_eq!(scene.holders(), [1, 3, 2]);
    assert_eq!(sizes(&server.asked())[..4], [3, 1, 1, 1]);
    assert_eq!(server.nodes(), 3, "one for each");
}

// Section: zookeeper.md#how-a-lock-is-taken
#[test]
fn deletions_that_fail_together_are_asked_for_one_by_one() {
    let mut scene = Scene::new();
    let mut server = Server::of(&mut scene, &["a", "b", "c"]);
    for (id, key) in [(1, "a"), (2, "b"), (3, "c")] {
        scene.acquire_key(id, key);
    }
    scene.served_by(&mut server);
    assert_eq!(scene.holders(), [1, 2, 3]);
    server.asked();
    // Somebody revokes one.
    server.containers.insert(path("b"), Vec::new());
    for id in 1..=3 {
        scene.queue.release(scene.now, LeaseId(id));
    }
    scene.served_by(&mut server);
    assert_eq!(scene.released(), [(1, true), (2, false), (3, true)]);
    assert_eq!(sizes(&server.asked()), [3, 1, 1, 1]);
    assert_eq!(server.nodes(), 0);
}

#[test]
fn writes_gather_while_two_transactions_are_in_flight() {
    let keys: Vec<_> = (0..100).map(|it| it.to_string()).collect();
    let keys: Vec<_> = keys.iter().map(|it| &**it).collect();
    let mut scene = Scene::new();
    let mut server = Server::of(&mut scene, &keys);
    let mut in_flight = Vec::new();
    for (id, key) in (0..).zip(keys) {
        scene.acquire_key(id, key);
        in_flight.extend(scene.calls());
    }
    let ops: Vec<_> = in_flight.iter().map(|it| it.op.clone()).collect();
    assert_eq!(sizes(&ops), [1, 1], "lone calls go as they are");
    for call in in_flight {
        let reply = server.serve(&call.op);
        scene.reply(call, reply);
    }
    scene.served_by(&mut server);
    assert_eq!(sizes(&server.asked()), [1, 1, 64, 34]);
    assert_eq!(scene.holders().len(), 100);
}

// Section: zookeeper.md#how-a-lock-is-taken
#[test]
fn a_transaction_is_not_larger_than_servers_take() {
    let keys: Vec<_> = (0..200).map(|it| format!("{it:/>1000}")).collect();
    let keys: Vec<_> = keys.iter().map(|it| &**it).collect();
    let mut scene = Scene::new();
    Server::of(&mut scene, &keys);
    for (id, key) in (0..).zip(&keys) {
        scene.acquire_key(id, key);
    }
    let calls = scene.calls();
    let batch = &calls[0].op;
    assert!(sizes(std::slice::from_ref(batch))[0] > 10, "{batch:?}");
    let bytes = batch.encode(1, Access::Everybody).1.len();
    assert!(bytes < 128 * 1024, "{bytes} bytes");
}

#[test]
fn nodes_whose_transaction_was_not_answered_are_found_again() {
    for happened in [true, false] {
        let mut scene = Scene::new();
        let mut server = Server::of(&mut scene, &["a", "b"]);
        for (id, key) in [(1, "a"), (2, "b")] {
            scene.acquire_key(id, key);
        }
        let calls = scene.calls();
        assert_eq!(calls.len(), 3);
        if happened {
            assert!(server.serve(&calls[0].op).is_ok());
        }
        scene.connect_again(calls, 0);
        scene.served_by(&mut server);
        assert_eq!(scene.holders(), [1, 2]);
        assert_eq!(server.nodes(), 2, "one for each");
    }
}

#[test]
fn deletions_that_were_not_answered_are_asked_for_again() {
    for happened in [true, false] {
        let mut scene = Scene::new();
        let mut server = Server::of(&mut scene, &["a", "b"]);
        for (id, key) in [(1, "a"), (2, "b")] {
            scene.acquire_key(id, key);
        }
        scene.served_by(&mut server);
        for id in [1, 2] {
            scene.queue.release(scene.now, LeaseId(id));
        }
        let calls = scene.calls();
        if happened {
            assert!(server.serve(&calls[0].op).is_ok());
        }
        scene.connect_again(calls, 0);
        scene.served_by(&mut server);
        assert_eq!(scene.released(), [(1, true), (2, true)]);
        assert_eq!(server.nodes(), 0);
    }
}

#[test]
fn writes_that_were_not_sent_are_sent_over_the_next_connection() {
    let mut scene = Scene::new();
    let mut server = Server::of(&mut scene, &["a", "b", "c"]);
    let mut in_flight = Vec::new();
    for (id, key) in [(1, "a"), (2, "b"), (3, "c")] {
        scene.acquire_key(id, key);
        in_flight.extend(scene.calls());
    }
    scene.connect_again(in_flight, 0);
    scene.served_by(&mut server);
    let mut holders = scene.holders();
    holders.sort_unstable();
    assert_eq!(holders, [1, 2, 3]);
    assert_eq!(server.nodes(), 3);
}

#[test]
fn a_node_that_nobody_wants_any_more_is_not_created() {
    let mut scene = Scene::new();
    let mut server = Server::of(&mut scene, &["a", "b"]);
    scene.acquire_key(1, "a");
    scene.acquire_key(2, "b");
    scene.queue.abandon(LeaseId(2));
    scene.served_by(&mut server);
    assert_eq!(server.nodes(), 1);
    assert_eq!(sizes(&server.asked()), [1]);
    assert_eq!(scene.released(), [(2, false)]);
}

#[test]
fn nothing_of_an_earlier_session_is_written() {
    let mut scene = Scene::new();
    let mut server = Server::of(&mut scene, &["a", "b", "c"]);
    let mut in_flight = Vec::new();
    for (id, key) in [(1, "a"), (2, "b"), (3, "c")] {
        scene.acquire_key(id, key);
        in_flight.extend(scene.calls());
    }
    for call in in_flight {
        scene.queue.unanswered(call.to);
    }
    let tokens = [1, 2, 3].map(|id| scene.claim(LeaseId(id)).token);
    scene.queue.connected(scene.now, session(8, scene.now), 0);
    scene.served_by(&mut server);
    assert_eq!(scene.holders(), [1, 2, 3]);
    assert_eq!(server.nodes(), 3);
    let names: String = server.containers.values().flatten().cloned().collect();
    for token in tokens {
        assert!(!names.contains(&token.to_string()), "a token is used once");
    }
}

#[test]
fn a_try_does_not_find_the_lock_that_its_own_process_has_left() {
    let mut scene = Scene::new();
    let keys = ["a", "b", "c"];
    let mut server = Server::of(&mut scene, &keys);
    for (id, key) in (1..).zip(keys) {
        scene.acquire_key(id, key);
    }
    scene.served_by(&mut server);
    assert_eq!(scene.holders(), [1, 2, 3]);
    // As many transactions as may be in flight, so that the next release waits for an answer.
    let mut in_flight = Vec::new();
    for id in [1, 2, 3] {
        scene.queue.abandon(LeaseId(id));
        in_flight.extend(scene.calls());
    }
    let terms = Terms {
        wait: Wait::AtMost(Duration::ZERO),
        ..Terms::of(LeaseId(4), "c", TIMEOUT)
    };
    scene.queue.acquire(scene.now, Arc::new(terms));
    let calls = scene.calls();
    for call in in_flight.into_iter().chain(calls) {
        let reply = server.serve(&call.op);
        scene.reply(call, reply);
    }
    scene.served_by(&mut server);
    assert_eq!(scene.holders(), [4]);
}

#[test]
fn nodes_of_many_new_locks_are_not_all_on_their_way_at_once() {
    let mut scene = Scene::new();
    let mut server = Server::default();
    for id in 0..1_000 {
        scene.acquire_key(id, &format!("new-{id}"));
    }
    let (mut most, mut granted) = (0, Vec::new());
    loop {
        let calls = scene.calls();
        if calls.is_empty() {
            break;
        }
        let creates = calls
            .iter()
            .filter(|it| matches!(&it.op, Op::Create { mode, .. } if *mode == Mode::Sequential));
        most = most.max(creates.count());
        for call in calls {
            let reply = server.serve(&call.op);
            scene.reply(call, reply);
        }
        granted.extend(scene.holders());
    }
    assert_eq!(granted.len(), 1_000);
    assert!(most <= 192, "{most}");
}
