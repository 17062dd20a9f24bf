//! When waiters ask about their position, and a try that does not wait.

use std::sync::Arc;
use std::time::Duration;

use super::{Call, ID, Peer, Reply, Sent, TTL, ahead, asked};
use crate::backend::queue::protocol::reply::Standing;
use crate::backend::{Outcome, Request};
use crate::types::terms::{LeaseId, Terms, Wait};

#[test]
fn waiters_ask_when_the_holders_lease_ends_and_every_second() {
    let (mut peer, _) = Peer::waiting();
    peer.after(990);
    peer.silent();
    peer.after(10);
    let ask = peer.call();
    let soon = Reply::Asked {
        ahead: ahead(200),
        standings: vec![Standing::Waiting],
    };
    peer.reply(ask, soon);
    peer.after(200);
    peer.silent();
    peer.after(50);
    assert!(matches!(peer.call().call, Call::Ask(_)));
}

/// One call asks about 200.
#[test]
fn many_waiters_ask_again_once_all_are_answered() {
    let mut peer = Peer::connected();
    for id in 0..201 {
        let terms = Terms::of(LeaseId(id), "k", TTL);
        peer.queue
            .submit(peer.now, Request::Acquire(Arc::new(terms)));
        let sent = peer.call();
        let waiting = Reply::Waiting {
            position: id,
            ahead: ahead(8_000),
        };
        peer.reply(sent, waiting);
    }
    peer.after(1_000);
    let mut asked = peer.queue.calls();
    assert_eq!(asked.len(), 2);
    let mut answer = |peer: &mut Peer| {
        let ask = asked.remove(0);
        let Call::Ask(bearers) = &ask.call else {
            panic!("{ask:?}")
        };
        let answer = Reply::Asked {
            ahead: ahead(8_000),
            standings: bearers.iter().map(|_| Standing::Waiting).collect(),
        };
        peer.reply(ask, answer);
    };
    answer(&mut peer);
    peer.after(1_000);
    peer.silent();
    answer(&mut peer);
    peer.after(1);
    assert_eq!(peer.queue.calls().len(), 2);
}

#[test]
fn the_first_to_want_an_answer_sets_the_time_for_a_key() {
    let (mut peer, _) = Peer::waiting();
    let other = LeaseId(8);
    let terms = Terms::of(other, "k", TTL);
    peer.queue
        .submit(peer.now, Request::Acquire(Arc::new(terms)));
    let sent = peer.call();
    peer.reply(
        sent,
        Reply::Waiting {
            position: 6,
            ahead: ahead(200),
        },
    );
    peer.after(250);
    let ask = peer.call();
    let Call::Ask(bearers) = &ask.call else {
        panic!("{ask:?}")
    };
    assert_eq!(bearers.len(), 2, "one question for both");
    peer.reply(
        ask,
        Reply::Asked {
            ahead: ahead(8_000),
            standings: vec![Standing::Waiting, Standing::Waiting],
        },
    );
    // A question that is asked later anyway is not put off.
    peer.after(999);
    peer.silent();
    peer.after(1);
    assert!(matches!(peer.call().call, Call::Ask(_)));
}

#[test]
fn a_try_that_found_the_lock_held_is_over() {
    let (mut peer, sent) = Peer::acquiring(Wait::AtMost(Duration::ZERO));
    peer.reply(
        sent,
        Reply::Busy {
            ahead: ahead(8_000),
        },
    );
    assert!(matches!(peer.outcome(), Some(Outcome::Busy { id: ID, .. })));
    peer.after(5_000);
    peer.silent();
}

/// One of a queue of limited length, whose first answer is lost.
fn limited() -> Peer {
    let mut peer = Peer::connected();
    let terms = Terms {
        max_waiters: Some(2),
        ..Terms::of(ID, "k", TTL)
    };
    peer.queue
        .submit(peer.now, Request::Acquire(Arc::new(terms)));
    let sent = peer.call();
    assert_eq!(limit(&sent), Some(2));
    peer.lose_connection(vec![sent]);
    peer.queue.connected(peer.now);
    peer.after(0);
    peer
}

/// How many may wait at most when an acquisition is sent.
fn limit(sent: &Sent) -> Option<u32> {
    match &sent.call {
        Call::Acquire { bearer, .. } => bearer.terms.max_waiters,
        call => panic!("{call:?}"),
    }
}

// Section: guarantees.md#a-queue-of-limited-length
#[test]
fn one_that_was_in_the_queue_stays_a_waiter_although_its_position_is_unknown() {
    let mut peer = limited();
    let ask = peer.call();
    peer.reply(ask, asked(Standing::Waiting));
    peer.after(1_000);
    let ask = peer.call();
    peer.reply(ask, asked(Standing::Gone));
    let again = peer.call();
    assert!(matches!(again.call, Call::Acquire { position: None, .. }));
    assert_eq!(limit(&again), None);
}

// Section: guarantees.md#a-queue-of-limited-length
#[test]
fn one_that_was_in_the_queue_of_a_former_node_stays_a_waiter() {
    let mut peer = limited();
    let ask = peer.call();
    let late = Sent::new(ask.call.clone(), ask.at);
    peer.reply(ask, asked(Standing::Gone));
    let again = peer.call();
    assert_eq!(limit(&again), Some(2));
    peer.reply(late, asked(Standing::Waiting));
    peer.lose_connection(vec![again]);
    peer.queue.connected(peer.now);
    peer.after(0);
    let ask = peer.call();
    peer.reply(ask, asked(Standing::Gone));
    assert_eq!(limit(&peer.call()), None);
}

/// The connection breaks with these calls, and the server says on the next one that the waiter is in the queue.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn still_waits_after_losing(peer: &mut Peer, calls: Vec<Sent>) {
    peer.lose_connection(calls);
    peer.queue.connected(peer.now);
    peer.after(0);
    let ask = peer.call();
    peer.reply(ask, asked(Standing::Waiting));
}

// Section: guarantees.md#first-come-first-served
#[cfg(any(feature = "mysql", feature = "postgres"))]
#[test]
fn one_whose_session_has_ended_joins_under_the_new_one_at_its_position() {
    let (mut peer, old) = Peer::waiting();
    peer.queue.session_changed();
    still_waits_after_losing(&mut peer, Vec::new());
    let leave = peer.call();
    assert!(matches!(&leave.call, Call::Leave(it) if it.token == old));
    // Until that is answered, the others would wait for the former one.
    still_waits_after_losing(&mut peer, vec![leave]);
    let leave = peer.call();
    assert!(matches!(&leave.call, Call::Leave(it) if it.token == old));
    peer.reply(leave, Reply::Ours(false));
    let acquire = peer.call();
    assert!(matches!(
        acquire.call,
        Call::Acquire { position: Some(5), ref bearer, .. } if bearer.token != old
    ));
    still_waits_after_losing(&mut peer, vec![acquire]);
    peer.silent();
}

// Section: guarantees.md#a-queue-of-limited-length
#[test]
fn one_that_may_never_have_been_there_is_limited_again() {
    let mut peer = limited();
    let ask = peer.call();
    peer.reply(ask, asked(Standing::Gone));
    assert_eq!(limit(&peer.call()), Some(2));
}
