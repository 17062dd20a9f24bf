//! Acquisitions against a server whose answers each test gives itself.

mod tickets;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::backend::zookeeper::call::Call;
use crate::backend::zookeeper::protocol::connect::welcome;
use crate::backend::zookeeper::protocol::entry;
use crate::backend::zookeeper::protocol::reply::{Change, Reply, Stat, Trouble};
use crate::types::error::Cause;
use crate::types::kind::Kind;
use crate::types::terms::Wait;

const TIMEOUT: Duration = Duration::from_secs(8);
const ID: LeaseId = LeaseId(1);

struct Scene {
    queue: Queue,
    now: Moment,
}

/// A session of a number.
fn session(id: i32, sent: Moment) -> Session {
    // The version, the timeout, a long number and no password.
    let numbers = [0_i32, 8_000, 0, id, 0];
    let packet: Vec<u8> = numbers.iter().flat_map(|it| it.to_be_bytes()).collect();
    let welcome = welcome(&packet).expect("a packet");
    let identity = welcome.identity.expect("a session");
    Session::new(identity, welcome.timeout, sent)
}

fn owned_by(session: i64) -> Stat {
    Stat {
        czxid: 77,
        owner: session,
        ..Stat::default()
    }
}

fn children(names: Vec<String>, changed: i64) -> Reply {
    Reply::Children { names, changed }
}

fn others(kind: &str, number: u32) -> String {
    format!("{kind}-{:032x}-{number:010}", 1000 + number)
}

impl Scene {
    fn new() -> Self {
        let now = Moment::from_nanos(1);
        let mut queue = Queue::new(Paths::new("", "lock"));
        queue.connected(now, session(7, now), 0);
        queue.calls(now);
        Self { queue, now }
    }

    /// What is to be sent.
    fn calls(&mut self) -> Vec<Call> {
        self.queue.calls(self.now)
    }

    fn claim(&self, id: LeaseId) -> &Claim {
        self.queue.claims.get(&id).expect("a claim")
    }

    fn acquire(&mut self, kind: Kind) {
        let terms = Terms {
            kind,
            ..Terms::of(ID, "k", TIMEOUT)
        };
        self.queue.acquire(self.now, Arc::new(terms));
    }

    fn reply(&mut self, call: Call, reply: Result<Reply, Trouble>) {
        self.queue.replied(self.now, call.to, reply);
    }

    /// The node is created with a number, behind these; says what was asked then.
    fn waits_behind(&mut self, ahead: &[String], number: u32) -> Vec<Call> {
        let mut calls = self.calls().into_iter();
        let (create, look) = (calls.next().unwrap(), calls.next().unwrap());
        assert!(calls.next().is_none());
        let Op::Create { path, mode, .. } = &create.op else {
            panic!("{create:?}");
        };
        assert_eq!(*mode, Mode::Sequential);
        let path = format!("{path}{number:010}");
        let mine = path.rsplit('/').next().unwrap().to_owned();
        self.reply(create, Ok(Reply::Created { path }));
        let names = ahead.iter().cloned().chain([mine]).collect();
        self.reply(look, Ok(children(names, 77)));
        self.calls()
    }

    /// The connection breaks before these are answered, and another one goes on with the session.
    fn connect_again(&mut self, unanswered: Vec<Call>, seen: i64) {
        for call in unanswered {
            self.queue.unanswered(call.to);
        }
        let cause: Cause = Arc::new(Trouble::Other(0));
        self.queue.disconnected(&cause, true);
        self.outcomes();
        self.queue.connected(self.now, session(7, self.now), seen);
    }

    /// An acquisition looks for its node, but not before the server is up to date.
    fn looks_after_a_sync(&mut self) -> Call {
        let mut calls = self.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert!(matches!(calls[0].op, Op::Sync { .. }), "{calls:?}");
        self.reply(calls.remove(0), Ok(Reply::Done));
        let look = self.calls().remove(0);
        assert!(matches!(look.op, Op::Children { .. }), "no second one");
        look
    }

    /// The session ends, and there is another one.
    fn begin_session(&mut self, id: i32) {
        self.queue.session_over(self.now);
        self.queue.connected(self.now, session(id, self.now), 0);
    }

    fn outcomes(&mut self) -> Vec<Outcome> {
        std::iter::from_fn(|| self.queue.next_outcome()).collect()
    }

    /// The fence of a grant.
    fn granted(&mut self) -> Option<u64> {
        let fence = |it| match it {
            Outcome::Granted { fence, .. } => Some(fence),
            _ => None,
        };
        self.outcomes().into_iter().find_map(fence)
    }

    fn is_granted(&mut self) -> bool {
        self.granted() == Some(77)
    }
}

/// The paths that messages are asked about.
fn watched(calls: &[Call]) -> Vec<&str> {
    let watched = calls.iter().filter_map(|call| match &call.op {
        Op::Read { path, watch: true } | Op::Children { path, watch: true } => Some(&**path),
        _ => None,
    });
    watched.collect()
}

#[test]
fn a_free_lock_is_taken_with_one_write() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    let calls = scene.waits_behind(&[], 0);
    assert!(scene.is_granted());
    assert!(calls.is_empty(), "{calls:?}");
}

/// A holder that is to watch its own node now, and the request by which it does.
fn long_held() -> (Scene, Call) {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    scene.waits_behind(&[], 0);
    assert!(scene.is_granted());
    let start = scene.now;
    scene.now = start.after(SHORT / 2);
    scene.queue.tick(scene.now);
    assert!(scene.calls().is_empty(), "not yet");
    scene.now = start.after(SHORT);
    assert_eq!(scene.queue.next_wakeup(), Some(scene.now));
    scene.queue.tick(scene.now);
    let mut calls = scene.calls();
    assert_eq!(watched(&calls).len(), 1, "{calls:?}");
    let call = calls.remove(0);
    (scene, call)
}

#[test]
fn a_holder_watches_its_node_once_it_has_held_the_lock_for_a_time() {
    let (mut scene, look) = long_held();
    let Op::Read { path, .. } = look.op.clone() else {
        panic!("{look:?}");
    };
    let (data, stat) = (Vec::new(), Stat::default());
    scene.reply(look, Ok(Reply::Data { data, stat }));
    let change = Change::Deleted;
    scene.queue.heard(&Message { change, path });
    let look = scene.calls().remove(0);
    scene.reply(look, Err(Trouble::NoNode));
    let outcomes = scene.outcomes();
    assert!(matches!(outcomes[..], [Outcome::NotHeld { id: ID }]));
}

#[test]
fn a_node_that_was_deleted_before_it_was_watched_is_a_lost_lock() {
    let (mut scene, look) = long_held();
    scene.reply(look, Err(Trouble::NoNode));
    let outcomes = scene.outcomes();
    assert!(matches!(outcomes[..], [Outcome::NotHeld { id: ID }]));
}

#[test]
fn a_release_reports_that_its_node_was_deleted_before() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    scene.waits_behind(&[], 0);
    assert!(scene.is_granted());
    scene.queue.release(scene.now, ID);
    let delete = scene.calls().remove(0);
    scene.reply(delete, Err(Trouble::NoNode));
    let released = scene.outcomes();
    let [Outcome::Released { result, .. }] = &released[..] else {
        panic!("{released:?}");
    };
    assert!(matches!(result, Ok(false)), "it was not held any more");
}

#[test]
fn a_waiter_watches_one_node_and_no_more() {
    for (kind, ahead, one) in [
        (Kind::Exclusive, ["x", "x", "x"], 2),
        (Kind::Exclusive, ["r", "r", "r"], 2),
        (Kind::Read, ["x", "x", "r"], 1),
        (Kind::Permits(2), ["p2", "p2", "p2"], 2),
    ] {
        let mut scene = Scene::new();
        scene.acquire(kind);
        let ahead = [0, 1, 2].map(|at| others(ahead[at as usize], at));
        let calls = scene.waits_behind(&ahead, 3);
        assert!(!scene.is_granted());
        assert_eq!(watched(&calls), [format!("/lock/k/{}", ahead[one])]);
    }
}

#[test]
fn it_looks_again_when_the_node_changes() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    let ahead = [others("x", 0)];
    let read = scene.waits_behind(&ahead, 1).remove(0);
    let data = entry::data("somebody", TIMEOUT);
    let stat = Stat::default();
    scene.reply(read, Ok(Reply::Data { data, stat }));
    assert!(matches!(scene.outcomes()[..], [Outcome::Waiting { .. }]));
    let (path, change) = (format!("/lock/k/{}", ahead[0]), Change::Deleted);
    scene.queue.heard(&Message { change, path });
    let look = scene.calls().remove(0);
    let mine = scene.claim(ID).node.unwrap().to_string();
    scene.reply(look, Ok(children(vec![mine], 99)));
    assert_eq!(
        scene.granted(),
        Some(99),
        "its turn came with the last change"
    );
}

#[test]
fn only_a_permit_of_the_same_number_looks_again_when_the_one_ahead_has_entered() {
    for (kind, looks) in [
        (Kind::Permits(1), true),
        (Kind::Permits(2), false),
        (Kind::Exclusive, false),
        (Kind::Read, false),
    ] {
        let mut scene = Scene::new();
        scene.acquire(kind);
        let ahead = [0, 1].map(|at| others("p1", at));
        let read = scene.waits_behind(&ahead, 2).remove(0);
        let data = entry::data("somebody", TIMEOUT);
        let version = 1;
        let stat = Stat {
            version,
            ..Stat::default()
        };
        scene.reply(read, Ok(Reply::Data { data, stat }));
        let is_look = |it: &Call| matches!(it.op, Op::Children { .. });
        assert_eq!(scene.calls().iter().any(is_look), looks, "{kind:?}");
        let waits = matches!(scene.outcomes()[..], [Outcome::Waiting { .. }]);
        assert_eq!(waits, !looks, "{kind:?}");
    }
}

#[test]
fn a_node_whose_creation_was_not_confirmed_is_found_again() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    let calls = scene.calls();
    let token = scene.claim(ID).token;
    scene.connect_again(calls, 0);
    let look = scene.looks_after_a_sync();
    let mine = format!("x-{token}-0000000004");
    let names = vec![mine.clone()];
    scene.reply(look, Ok(children(names.clone(), 77)));
    let read = scene.calls().remove(0);
    let (data, stat) = (Vec::new(), owned_by(7));
    scene.reply(read, Ok(Reply::Data { data, stat }));
    let look = scene.calls().remove(0);
    scene.reply(look, Ok(children(names, 77)));
    assert!(scene.is_granted());
}

#[test]
fn a_node_is_looked_for_at_no_server_that_may_be_behind() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    let calls = scene.calls();
    scene.connect_again(calls, 0);
    let mut calls = scene.calls();
    assert_eq!(calls.len(), 1, "{calls:?}");
    scene.reply(calls.remove(0), Err(Trouble::Other(-127)));
    assert!(scene.calls().is_empty());
    assert!(matches!(scene.outcomes()[..], [Outcome::Failed { .. }]));
}

#[test]
fn a_node_of_a_session_that_has_ended_is_not_taken_for_ours() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    let calls = scene.calls();
    let token = scene.claim(ID).token;
    scene.connect_again(calls, 0);
    let look = scene.looks_after_a_sync();
    let names = vec![format!("x-{token}-0000000004")];
    scene.reply(look, Ok(children(names, 77)));
    let read = scene.calls().remove(0);
    let (data, stat) = (Vec::new(), owned_by(6));
    scene.reply(read, Ok(Reply::Data { data, stat }));
    assert!(!scene.is_granted());
    assert_ne!(scene.claim(ID).token, token, "it starts over");
    assert!(matches!(scene.calls()[0].op, Op::Create { .. }));
}

#[test]
fn nobody_enters_after_the_deadline_of_the_session() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    // A server that is behind shows the node that has ended with its session.
    scene.now = scene.queue.session().unwrap().deadline();
    scene.waits_behind(&[], 0);
    assert!(!scene.is_granted());
}

#[test]
fn what_was_held_is_lost_with_the_session_and_a_waiter_starts_over() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    scene.waits_behind(&[], 0);
    assert!(scene.is_granted());
    let waiter = Terms::of(LeaseId(2), "k", TIMEOUT);
    scene.queue.acquire(scene.now, Arc::new(waiter));
    scene.calls();
    let token = scene.claim(LeaseId(2)).token;

    scene.queue.connected(scene.now, session(8, scene.now), 0);
    assert!(matches!(
        scene.outcomes()[..],
        [Outcome::NotHeld { id: ID }]
    ));
    assert_ne!(scene.claim(LeaseId(2)).token, token);
    let calls = scene.calls();
    let creates = |it: &&Call| {
        matches!(
            &it.op,
            Op::Create {
                mode: Mode::Sequential,
                ..
            }
        )
    };
    assert_eq!(calls.iter().filter(creates).count(), 1);
}

#[test]
fn watches_go_on_over_another_connection() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    let ahead = [others("x", 0)];
    let read = scene.waits_behind(&ahead, 1).remove(0);
    let data = entry::data("somebody", TIMEOUT);
    let stat = Stat::default();
    scene.reply(read, Ok(Reply::Data { data, stat }));
    scene.connect_again(Vec::new(), 99);
    let calls = scene.calls();
    let data = vec![format!("/lock/k/{}", ahead[0])];
    let watch = Op::Watch {
        seen: 99,
        data,
        children: Vec::new(),
    };
    assert_eq!(calls[0].op, watch);
    assert!(matches!(scene.outcomes()[..], [Outcome::Waiting { .. }]));
    // Nothing would come of what is not watched.
    let renewed = calls.into_iter().next().unwrap();
    scene.reply(renewed, Err(Trouble::Other(-127)));
    assert!(matches!(
        scene.calls()[..],
        [Call {
            op: Op::Children { .. },
            ..
        }]
    ));
}

#[test]
fn a_release_whose_answer_was_lost_is_sent_again() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    scene.waits_behind(&[], 0);
    assert!(scene.is_granted());
    scene.queue.release(scene.now, ID);
    let calls = scene.calls();
    assert!(matches!(
        calls[..],
        [Call {
            op: Op::Delete { .. },
            ..
        }]
    ));
    scene.connect_again(calls, 0);
    let delete = scene.calls().pop().unwrap();
    assert!(matches!(delete.op, Op::Delete { .. }));
    scene.reply(delete, Err(Trouble::NoNode));
    let released = scene.outcomes();
    let [
        Outcome::Released {
            id: ID,
            result: Ok(true),
        },
    ] = released[..]
    else {
        panic!("{released:?}");
    };
}

#[test]
fn renewals_are_answered_from_one_heartbeat() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    scene.waits_behind(&[], 0);
    assert!(scene.is_granted());
    scene.queue.renew(ID);
    let start = scene.now;
    for beat in 1..=2 {
        assert!(scene.outcomes().is_empty(), "nothing is known yet");
        scene.now = start.after(TIMEOUT / 4 * beat);
        scene.queue.tick(scene.now);
        let call = scene.calls().pop().unwrap();
        assert!(matches!(call.to, Recipient::Heartbeat));
        assert!(matches!(call.op, Op::Write { .. }), "a ping proves nothing");
        scene.reply(call, Ok(Reply::Stat(Stat::default())));
    }
    let renewed = scene.outcomes();
    let [Outcome::Renewed { id: ID, since, ttl }] = renewed[..] else {
        panic!("{renewed:?}");
    };
    assert_eq!((since, ttl), (start.after(TIMEOUT / 4), TIMEOUT));
}

#[test]
fn to_connect_again_prolongs_no_lease() {
    let mut scene = Scene::new();
    let start = scene.now;
    scene.acquire(Kind::Exclusive);
    scene.waits_behind(&[], 0);
    assert!(scene.is_granted());
    let deadline = scene.queue.session().unwrap().deadline();
    scene.now = start.after(TIMEOUT / 2);
    scene.connect_again(Vec::new(), 0);
    scene.queue.renew(ID);
    assert!(scene.outcomes().is_empty(), "a leader may be none any more");
    assert_eq!(scene.queue.session().unwrap().deadline(), deadline);
    scene.queue.tick(scene.now);
    let beat = scene.calls().pop().unwrap();
    assert!(matches!(beat.to, Recipient::Heartbeat), "at once");
    scene.reply(beat, Ok(Reply::Stat(Stat::default())));
    let renewed = scene.outcomes();
    let [Outcome::Renewed { since, .. }] = renewed[..] else {
        panic!("{renewed:?}");
    };
    assert_eq!(since, scene.now);
}

/// What is written to a node of the queue.
fn announcement(calls: Vec<Call>) -> Option<Call> {
    let mut calls = calls.into_iter();
    calls.find(|it| matches!(it.to, Recipient::Announcement(ID)))
}

// Section: zookeeper.md#what-failures-do
#[test]
fn a_permit_that_enters_announces_it_until_that_is_confirmed() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Permits(1));
    let ahead = [others("p1", 0)];
    scene.waits_behind(&ahead, 1);
    let (path, change) = ("/lock/k".to_owned(), Change::Children);
    let mine = scene.claim(ID).node.unwrap().to_string();
    // It is next, and watches everybody.
    scene.queue.look(ID, true);
    let look = scene.calls().pop().unwrap();
    let names = vec![ahead[0].clone(), mine.clone()];
    scene.reply(look, Ok(Reply::Children { names, changed: 1 }));
    scene.calls();
    scene.queue.heard(&Message { change, path });
    let look = scene.calls().pop().unwrap();
    scene.reply(
        look,
        Ok(Reply::Children {
            names: vec![mine],
            changed: 2,
        }),
    );
    assert_eq!(scene.granted(), Some(2));

    let lost = announcement(scene.calls()).expect("those behind are notified");
    scene.connect_again(vec![lost], 0);
    let refused = announcement(scene.calls()).expect("again");
    scene.reply(refused, Err(Trouble::Other(-127)));
    scene.queue.tick(scene.now);
    let beat = scene.calls().pop().unwrap();
    scene.reply(beat, Ok(Reply::Stat(Stat::default())));
    let confirmed = announcement(scene.calls()).expect("and again");
    scene.reply(confirmed, Ok(Reply::Stat(Stat::default())));
    scene.connect_again(Vec::new(), 0);
    assert!(announcement(scene.calls()).is_none());
}

#[test]
fn a_permit_that_never_waited_announces_itself_to_those_behind() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Permits(2));
    let calls = scene.waits_behind(&[], 0);
    assert!(scene.is_granted() && announcement(calls).is_none());

    let mut scene = Scene::new();
    scene.acquire(Kind::Permits(2));
    // Somebody came before it looked, and may have seen more ahead of it.
    let calls = scene.waits_behind(&[others("p2", 9)], 0);
    assert!(scene.is_granted() && announcement(calls).is_some());
}

#[test]
fn a_node_that_is_made_after_its_caller_has_gone_is_deleted() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    let create = scene.calls().remove(0);
    scene.queue.abandon(ID);
    let Op::Create { path, .. } = &create.op else {
        panic!("{create:?}");
    };
    let path = format!("{path}0000000000");
    scene.reply(create, Ok(Reply::Created { path }));
    let calls = scene.calls();
    let ops: Vec<_> = calls.iter().map(|call| &call.op).collect();
    assert!(matches!(ops[..], [Op::Delete { .. }]), "{ops:?}");
    assert!(!scene.is_granted());
}

// Section: zookeeper.md#what-failures-do
#[test]
fn a_node_that_cannot_be_deleted_is_deleted_later() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    scene.waits_behind(&[], 0);
    scene.queue.release(scene.now, ID);
    let delete = scene.calls().pop().unwrap();
    let op = delete.op.clone();
    scene.reply(delete, Err(Trouble::NoRight));
    for _ in 0..2 {
        scene.now = scene.now.after(TIMEOUT / 4);
        scene.queue.tick(scene.now);
        let beat = scene.calls().pop().unwrap();
        scene.reply(beat, Ok(Reply::Stat(Stat::default())));
        let again = scene.calls().pop().unwrap();
        assert_eq!(again.op, op);
        scene.reply(again, Err(Trouble::NoRight));
    }
}

/// Two wait behind somebody else: the first reads the queue, the second follows it.
fn follower(scene: &mut Scene) -> (String, Vec<Call>) {
    scene.acquire(Kind::Exclusive);
    let second = Terms::of(LeaseId(2), "k", TIMEOUT);
    scene.queue.acquire(scene.now, Arc::new(second));
    let mut calls = scene.calls().into_iter();
    let (create, look, another) = (
        calls.next().unwrap(),
        calls.next().unwrap(),
        calls.next().unwrap(),
    );
    assert!(calls.next().is_none(), "the queue is read once");
    let path = |call: &Call, number: u32| match &call.op {
        Op::Create { path, .. } => format!("{path}{number:010}"),
        other => panic!("{other:?}"),
    };
    let (first, second) = (path(&create, 4), path(&another, 5));
    let created = |path: &str| Reply::Created {
        path: path.to_owned(),
    };
    scene.reply(create, Ok(created(&first)));
    let mine = first.rsplit('/').next().unwrap().to_owned();
    scene.reply(look, Ok(children(vec![mine], 77)));
    assert!(scene.is_granted());
    scene.calls();
    scene.reply(another, Ok(created(&second)));
    (first, scene.calls())
}

#[test]
fn one_right_behind_another_of_ours_looks_at_its_node_alone() {
    let mut scene = Scene::new();
    let (ahead, mut calls) = follower(&mut scene);
    assert_eq!(watched(&calls), [&ahead]);
    assert_eq!(calls.len(), 1);
    let data = entry::data("somebody", TIMEOUT);
    let stat = Stat::default();
    scene.reply(calls.remove(0), Ok(Reply::Data { data, stat }));
    // Somebody writes to it: it is there still.
    let (path, change) = (ahead.clone(), Change::Written);
    scene.queue.heard(&Message { change, path });
    let calls = scene.calls();
    assert!(matches!(
        calls[..],
        [Call {
            op: Op::Children { .. },
            ..
        }]
    ));
}

#[test]
fn behind_one_of_ours_whose_node_others_have_deleted_it_reads_the_queue() {
    for is_known in [false, true] {
        let mut scene = Scene::new();
        let (_, mut calls) = follower(&mut scene);
        if is_known {
            scene.queue.lost(ID);
        }
        scene.reply(calls.remove(0), Err(Trouble::NoNode));
        let look = scene.calls().remove(0);
        assert!(matches!(look.op, Op::Children { .. }), "{look:?}");
        // The queue of the same numbers in another node of the lock.
        let mine = scene.claim(LeaseId(2)).node.unwrap().to_string();
        scene.reply(look, Ok(children(vec![others("x", 4), mine], 99)));
        assert_eq!(scene.granted(), None);
    }
}

#[test]
fn a_try_that_misses_each_holder_ends() {
    let mut scene = Scene::new();
    let terms = Terms {
        wait: Wait::AtMost(Duration::ZERO),
        ..Terms::of(ID, "k", TIMEOUT)
    };
    scene.queue.acquire(scene.now, Arc::new(terms));
    for number in 0..2 {
        assert!(scene.outcomes().is_empty());
        let look = scene.calls().remove(0);
        scene.reply(look, Ok(children(vec![others("x", number)], 77)));
        let front = scene.calls().pop().unwrap();
        scene.reply(front, Err(Trouble::NoNode));
    }
    let outcomes = scene.outcomes();
    assert!(
        matches!(outcomes[..], [Outcome::Busy { holder: None, .. }]),
        "{outcomes:?}"
    );
}

#[test]
fn without_the_node_of_its_session_nothing_is_acquired() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    let create = scene.calls().remove(0);
    let cause: Cause = Arc::new(Trouble::NoRight);
    scene.queue.refused(&cause);
    assert!(matches!(scene.outcomes()[..], [Outcome::Failed { .. }]));
    let path = format!("/lock/k/x-{}-0000000000", scene.claim(ID).token);
    scene.reply(create, Ok(Reply::Created { path }));
    let leave = scene.calls();
    assert!(matches!(leave[0].op, Op::Delete { .. }), "{leave:?}");
    let later = Terms::of(LeaseId(2), "k", TIMEOUT);
    scene.queue.acquire(scene.now, Arc::new(later));
    assert!(matches!(scene.outcomes()[0], Outcome::Failed { .. }));
    assert!(scene.calls().is_empty());
    scene.queue.accepted();
    let later = Terms::of(LeaseId(3), "k", TIMEOUT);
    scene.queue.acquire(scene.now, Arc::new(later));
    assert!(scene.outcomes().is_empty() && !scene.calls().is_empty());
}

#[test]
fn it_enters_when_that_one_has_left_and_its_own_node_is_there() {
    for is_there in [true, false] {
        let mut scene = Scene::new();
        let (path, mut calls) = follower(&mut scene);
        let stat = Stat::default();
        let data = entry::data("somebody", TIMEOUT);
        scene.reply(calls.remove(0), Ok(Reply::Data { data, stat }));
        scene.outcomes();
        let change = Change::Deleted;
        scene.queue.heard(&Message { change, path });
        let mut calls = scene.calls();
        let (own, queue) = (calls.pop().unwrap(), calls.pop().unwrap());
        assert!(
            matches!(queue.op, Op::Read { watch: false, .. }),
            "{queue:?}"
        );
        assert!(matches!(own.op, Op::Read { watch: false, .. }), "{own:?}");
        let changed = Stat { pzxid: 99, ..stat };
        let data = Vec::new();
        scene.reply(
            queue,
            Ok(Reply::Data {
                data: data.clone(),
                stat: changed,
            }),
        );
        let there = Ok(Reply::Data { data, stat });
        scene.reply(
            own,
            if is_there {
                there
            } else {
                Err(Trouble::NoNode)
            },
        );
        // Its fence is the number of the change that made the lock its own.
        let second = |it: &Outcome| {
            let id = LeaseId(2);
            matches!(it, Outcome::Granted { id: its, fence: 99, .. } if *its == id)
        };
        assert_eq!(scene.outcomes().iter().any(second), is_there);
    }
}

// Section: guarantees.md#nothing-is-left-behind
#[test]
fn a_cooldown_after_which_nobody_takes_the_lock_is_deleted() {
    let mut scene = Scene::new();
    let terms = Terms {
        min_hold: Some(Duration::from_secs(4)),
        ..Terms::of(ID, "k", TIMEOUT)
    };
    scene.queue.acquire(scene.now, Arc::new(terms));
    scene.waits_behind(&[], 0);
    assert!(scene.is_granted());
    scene.queue.release(scene.now, ID);
    let leave = scene.calls().remove(0);
    let Op::Multi(parts) = &leave.op else {
        panic!("{leave:?}");
    };
    let [Op::Delete { .. }, Op::Create { path, .. }] = &parts[..] else {
        panic!("{parts:?}");
    };
    let cooldown = path.clone();
    scene.reply(leave, Ok(Reply::Parts(Vec::new())));
    let mut deleted = |seconds| {
        scene.now = scene.now.after(Duration::from_secs(seconds));
        scene.queue.tick(scene.now);
        let calls = scene.calls();
        calls
            .iter()
            .any(|it| matches!(&it.op, Op::Delete { path } if *path == cooldown))
    };
    assert!(!deleted(4), "it may not have ended by the server's clock");
    assert!(deleted(2));
    assert!(!deleted(2), "once");
}

/// Answers everything that is asked, for some time, about a queue whose first node is a
/// cooldown and may not be deleted; says how often its deletion was asked for.
fn deletions_of_a_cooldown(scene: &mut Scene, queue: &[String]) -> usize {
    let mut deletions = 0;
    for _ in 0..20 {
        for call in scene.calls() {
            let reply = match &call.op {
                Op::Delete { .. } => {
                    deletions += 1;
                    Err(Trouble::NoRight)
                }
                Op::Write { .. } => Ok(Reply::Stat(Stat {
                    written: 10_000,
                    ..Stat::default()
                })),
                Op::Read { .. } => Ok(Reply::Data {
                    data: entry::data("-somebody", Duration::from_secs(1)),
                    stat: Stat::default(),
                }),
                Op::Children { .. } => Ok(children(queue.to_vec(), 77)),
                other => panic!("{other:?}"),
            };
            scene.reply(call, reply);
        }
    }
    deletions
}

#[test]
fn a_cooldown_that_may_not_be_deleted_is_not_deleted_again_at_full_speed() {
    let cooldown = format!("{}-rest", others("x", 0));
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    let calls = scene.waits_behind(std::slice::from_ref(&cooldown), 1);
    for call in calls {
        scene.queue.requests.send(call.op, call.to);
    }
    let path = scene.claim(ID).node.unwrap().to_string();
    let queue = [cooldown.clone(), path.clone()];
    assert_eq!(deletions_of_a_cooldown(&mut scene, &queue), 1);
    // It looks once the cooldown is gone, whoever has deleted it.
    scene.queue.heard(&Message {
        change: Change::Deleted,
        path: format!("/lock/k/{cooldown}"),
    });
    let look = scene.calls().pop().unwrap();
    scene.reply(look, Ok(children(vec![path], 78)));
    assert_eq!(scene.granted(), Some(78));

    let mut scene = Scene::new();
    let terms = Terms {
        wait: Wait::AtMost(Duration::ZERO),
        ..Terms::of(ID, "k", TIMEOUT)
    };
    scene.queue.acquire(scene.now, Arc::new(terms));
    assert_eq!(deletions_of_a_cooldown(&mut scene, &[cooldown]), 1);
    let outcomes = scene.outcomes();
    assert!(
        matches!(outcomes[..], [Outcome::Busy { .. }]),
        "{outcomes:?}"
    );
}

#[test]
fn a_permit_that_was_asked_while_it_waits_is_looked_at_with_pauses() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Permits(2));
    // A cooldown that has ended keeps both out until somebody deletes it.
    let ahead = [format!("{}-rest", others("x", 0)), others("p2", 1)];
    let mut calls = scene.waits_behind(&ahead, 2);
    let mine = scene.claim(ID).node.unwrap().to_string();
    let queue: Vec<_> = ahead.iter().cloned().chain([mine]).collect();
    let mut looks = 0;
    for _ in 0..20 {
        for call in calls {
            let reply = match &call.op {
                Op::Read { path, .. } if path.ends_with("-rest") => continue,
                Op::Read { .. } => Ok(Reply::Data {
                    data: entry::data("somebody", TIMEOUT),
                    stat: Stat {
                        version: 1,
                        ..Stat::default()
                    },
                }),
                Op::Children { .. } => {
                    looks += 1;
                    Ok(children(queue.clone(), 77))
                }
                _ => continue,
            };
            scene.reply(call, reply);
        }
        calls = scene.calls();
    }
    assert_eq!(looks, 1);
    scene.now = scene.now.after(Duration::from_millis(100));
    scene.queue.tick(scene.now);
    let is_look = |it: &Call| matches!(it.op, Op::Children { .. });
    assert!(scene.calls().iter().any(is_look));
}

#[test]
fn a_node_that_may_be_there_is_looked_for_until_its_queue_can_be_read() {
    for gone in [false, true] {
        let mut scene = Scene::new();
        scene.acquire(Kind::Exclusive);
        let calls = scene.calls();
        let token = scene.claim(ID).token;
        scene.connect_again(calls, 0);
        if gone {
            scene.queue.abandon(ID);
        }
        let look = scene.looks_after_a_sync();
        scene.reply(look, Err(Trouble::NoRight));
        let outcomes = scene.outcomes();
        let is_reported = match &outcomes[..] {
            [Outcome::Failed { .. }] => !gone,
            [Outcome::Released { result, .. }] => gone && result.is_err(),
            _ => false,
        };
        assert!(is_reported, "{outcomes:?}");
        scene.now = scene.now.after(TIMEOUT / 4);
        scene.queue.tick(scene.now);
        let beat = scene.calls().pop().unwrap();
        scene.reply(beat, Ok(Reply::Stat(Stat::default())));
        let look = scene.calls().pop().unwrap();
        let names = vec![format!("x-{token}-0000000004")];
        scene.reply(look, Ok(children(names, 77)));
        let read = scene.calls().pop().unwrap();
        let (data, stat) = (Vec::new(), owned_by(7));
        scene.reply(read, Ok(Reply::Data { data, stat }));
        let delete = scene.calls().pop().unwrap();
        assert!(matches!(delete.op, Op::Delete { .. }), "{delete:?}");
        scene.reply(delete, Ok(Reply::Done));
        assert!(scene.outcomes().is_empty());
        assert_eq!(scene.queue.claims.len(), 0);
    }
}

#[test]
fn what_a_busy_server_refuses_is_asked_again_after_a_pause() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    let create = scene.calls();
    for call in create {
        scene.reply(call, Err(Trouble::Busy));
    }
    let reported = scene.outcomes();
    assert!(
        matches!(reported[..], [Outcome::Trouble { soon: true, .. }]),
        "{reported:?}"
    );
    assert!(scene.calls().is_empty(), "at full speed");
    scene.now = scene.queue.next_wakeup().expect("it asks again");
    scene.queue.tick(scene.now);
    for call in scene.waits_behind(&[others("x", 0)], 1) {
        scene.reply(call, Err(Trouble::Busy));
    }
    let node = scene.claim(ID).node;
    scene.now = scene.now.after(Duration::from_secs(1));
    scene.queue.tick(scene.now);
    let is_look = |it: &Call| matches!(it.op, Op::Children { .. });
    assert!(scene.calls().iter().any(is_look));
    assert!(
        node.is_some() && scene.claim(ID).node == node,
        "it has kept its position"
    );
    let reported = scene.outcomes();
    assert!(
        reported
            .iter()
            .all(|it| matches!(it, Outcome::Trouble { .. })),
        "{reported:?}"
    );
}

#[test]
fn a_cooldown_is_looked_at_again_soon_where_the_time_is_unknown() {
    let mut scene = Scene::new();
    scene.acquire(Kind::Exclusive);
    let cooldown = format!("{}-rest", others("x", 0));
    let calls = scene.waits_behind(std::slice::from_ref(&cooldown), 1);
    for call in calls {
        let reply = match &call.op {
            Op::Write { .. } => Err(Trouble::NoNode),
            _ => Ok(Reply::Data {
                data: entry::data("-somebody", Duration::from_secs(60)),
                stat: Stat::default(),
            }),
        };
        scene.reply(call, reply);
    }
    scene.now = scene.now.after(Duration::from_secs(1));
    scene.queue.tick(scene.now);
    let is_look = |it: &Call| matches!(it.op, Op::Children { .. });
    assert!(scene.calls().iter().any(is_look));
}
