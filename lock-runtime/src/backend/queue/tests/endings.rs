//! Waiters that give up, and releases, until the server has answered.

use super::{Call, ID, Peer, Queue, Reply, token};
use crate::backend::queue::Rules;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::{Outcome, Request};
use crate::types::terms::Wait;

#[test]
fn giving_up_leaves_whatever_was_reached() {
    // Not sent yet, since there is no connection, or since its turn has not come.
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    let (now, who) = (peer.now, token(&sent));
    for is_connected in [false, true] {
        let mut unsent = Queue::new(Rules::default());
        if is_connected {
            unsent.connected(now);
        }
        let Call::Acquire { bearer, .. } = &sent.call else {
            unreachable!()
        };
        unsent.submit(now, Request::Acquire(bearer.terms.clone()));
        unsent.submit(now, Request::Abandon(ID));
        unsent.connected(now);
        assert!(unsent.calls().is_empty());
        let end = std::iter::from_fn(|| unsent.next_outcome()).last();
        let Some(Outcome::Released { result, .. }) = end else {
            panic!("{end:?}")
        };
        assert!(!result.expect("nothing was held"));
    }

    // On the way: the leave goes after it, and a grant that raced is handed over.
    peer.queue.submit(peer.now, Request::Abandon(ID));
    let leave = peer.call();
    assert!(matches!(leave.call, Call::Leave(_)));
    peer.reply(sent, Reply::Granted { fence: 3 });
    peer.push(who, 3);
    assert!(peer.outcome().is_none(), "nobody wants it");
    peer.reply(leave, Reply::Ours(true));
    assert!(matches!(
        peer.outcome(),
        Some(Outcome::Released {
            result: Ok(true),
            ..
        })
    ));

    // In the queue.
    let (mut peer, _) = Peer::waiting();
    peer.queue.submit(peer.now, Request::Abandon(ID));
    let leave = peer.call();
    peer.reply(leave, Reply::Ours(false));
    assert!(matches!(peer.outcome(), Some(Outcome::Released { .. })));
    peer.after(5_000);
    peer.silent();
}

#[test]
fn a_leave_that_was_lost_is_sent_until_it_is_answered() {
    let (mut peer, who) = Peer::waiting();
    peer.queue.submit(peer.now, Request::Abandon(ID));
    let leave = peer.call();
    peer.lose_connection(vec![leave]);
    // The grant that raced with it is not heard of either.
    peer.after(10_000);
    peer.silent();
    peer.queue.connected(peer.now);
    let again = peer.call();
    assert!(matches!(again.call, Call::Leave(_)));
    peer.push(who, 4);
    peer.silent();
    peer.fail(again, Trouble::not_now("BUSY"));
    peer.after(1_000);
    let last = peer.call();
    peer.reply(last, Reply::Ours(true));
    assert!(matches!(peer.end(), Some(Outcome::Released { .. })));
}

#[test]
fn a_leave_that_is_refused_is_sent_less_and_less_and_not_for_ever() {
    let (mut peer, _) = Peer::waiting();
    peer.queue.submit(peer.now, Request::Abandon(ID));
    let mut sent = 0;
    for _ in 0..800 {
        for leave in peer.queue.calls() {
            assert!(matches!(leave.call, Call::Leave(_)));
            peer.fail(leave, Trouble::not_now("NOREPLICAS"));
            sent += 1;
        }
        peer.after(100);
    }
    assert!((30..50).contains(&sent), "{sent}");
    assert_eq!(peer.queue.next_wakeup(), None, "it is forgotten");
}

#[test]
fn a_leave_whose_refusal_is_heard_late_is_sent_again() {
    let (mut peer, _) = Peer::waiting();
    peer.queue.submit(peer.now, Request::Abandon(ID));
    let leave = peer.call();
    // The process was stopped.
    peer.after(30_000);
    peer.fail(leave, Trouble::not_now("BUSY"));
    assert!(peer.end().is_some(), "it does not keep a shutdown waiting");
    let again = peer.call();
    assert!(matches!(again.call, Call::Leave(_)));
    peer.reply(again, Reply::Ours(false));
    peer.silent();
}

#[test]
fn a_release_is_sent_until_it_is_answered_or_the_lease_has_ended() {
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    peer.reply(sent, Reply::Granted { fence: 3 });
    peer.granted();
    peer.queue.submit(peer.now, Request::Release(ID));
    let release = peer.call();
    peer.lose_connection(vec![release]);
    peer.after(1_000);
    peer.queue.connected(peer.now);
    let again = peer.call();
    assert!(matches!(again.call, Call::Release { .. }));
    peer.lose_connection(vec![again]);
    peer.after(20_000);
    assert!(matches!(
        peer.end(),
        Some(Outcome::Released { result: Err(_), .. })
    ));
    peer.queue.connected(peer.now);
    peer.silent();
}

#[test]
fn a_leave_that_is_not_answered_is_reported_when_a_lease_would_have_ended_and_sent_all_the_same() {
    let (mut peer, _) = Peer::waiting();
    peer.lose_connection(Vec::new());
    peer.queue.submit(peer.now, Request::Abandon(ID));
    peer.after(9_999);
    assert!(peer.end().is_none());
    peer.after(1);
    let outcome = peer.end();
    assert!(matches!(
        outcome,
        Some(Outcome::Released { result: Err(_), .. })
    ));
    peer.after(60_000);
    peer.queue.connected(peer.now);
    let leave = peer.call();
    assert!(matches!(leave.call, Call::Leave(_)));
    peer.reply(leave, Reply::Ours(false));
    assert!(peer.outcome().is_none(), "it was reported before");
    assert_eq!(peer.queue.next_wakeup(), None, "it is forgotten");
}
