//! Answers of the server and its message of a chain come in either order.

use std::sync::Arc;
use std::time::Duration;

use super::super::{Call, Reply, TTL, ahead, asked, busy, cut, token};
use super::{Crowd, FENCE};
use crate::backend::queue::protocol::call::Company;
use crate::backend::queue::protocol::reply::Standing;
use crate::backend::{Outcome, Request};
use crate::types::terms::{LeaseId, Terms};

#[test]
fn an_answer_that_it_is_gone_means_nothing_to_one_that_follows() {
    let mut crowd = Crowd::waiting(2);
    crowd.peer.after(1_000);
    let ask = crowd.peer.call();
    crowd.hand_over(FENCE, 1..=2);
    let Call::Ask(bearers) = &ask.call else {
        panic!("{ask:?}");
    };
    let standings = bearers.iter().map(|_| Standing::Gone).collect();
    let ahead = ahead(3_000);
    crowd.peer.reply(ask, Reply::Asked { ahead, standings });
    crowd.peer.after(0);
    crowd.outcomes();
    crowd.peer.silent();
    crowd.release(1);
    assert_eq!(crowd.granted(), [(2, FENCE + 1)]);
}

#[test]
fn one_that_heard_first_that_it_is_gone_is_not_handed_the_lock() {
    let mut crowd = Crowd::waiting(2);
    crowd.peer.after(1_000);
    let ask = crowd.peer.call();
    let standings = vec![Standing::Waiting, Standing::Gone];
    let ahead = ahead(3_000);
    crowd.peer.reply(ask, Reply::Asked { ahead, standings });
    assert_eq!(crowd.again(), [2]);
    crowd.hand_over(FENCE, 1..=2);
    assert_eq!(crowd.granted(), [(1, FENCE)]);
    crowd.release(1);
    assert!(matches!(crowd.peer.call().call, Call::Release { .. }));
    assert!(crowd.granted().is_empty());
}

#[test]
fn followers_of_one_that_is_gone_wait_again() {
    let mut crowd = Crowd::waiting(3);
    crowd.submit(Request::Abandon, 1);
    let leave = crowd.peer.call();
    crowd.hand_over(FENCE, 1..=3);
    assert_eq!(crowd.again(), [2, 3], "the first leaves, and releases all");
    crowd.peer.reply(leave, Reply::Ours(true));
    crowd.outcomes();
    crowd.peer.silent();
}

#[test]
fn a_follower_that_would_have_a_smaller_number_than_the_first_waits_again() {
    let mut crowd = Crowd::waiting(2);
    crowd.peer.after(1_000);
    let ask = crowd.peer.call();
    let ahead = ahead(3_000);
    let standings = vec![Standing::Granted { fence: FENCE + 9 }, Standing::Waiting];
    crowd.peer.reply(ask, Reply::Asked { ahead, standings });
    assert_eq!(crowd.granted(), [(1, FENCE + 9)]);
    crowd.hand_over(FENCE, 1..=2);
    assert_eq!(crowd.again(), [2]);
}

#[test]
fn the_number_that_was_set_aside_is_kept() {
    let mut crowd = Crowd::waiting(2);
    crowd.peer.now = crowd.peer.now.after(Duration::from_secs(2));
    crowd.hand_over(FENCE, 1..=2);
    let renew = crowd.peer.call();
    crowd.peer.now = crowd.peer.now.after(TTL);
    crowd.peer.reply(renew, Reply::Ours(true));
    crowd.peer.after(0);
    let ask = crowd.peer.call();
    assert!(matches!(ask.call, Call::Ask(_)), "it came too late");
    crowd
        .peer
        .reply(ask, asked(Standing::Granted { fence: FENCE + 9 }));
    assert_eq!(crowd.granted(), [(1, FENCE)]);
    crowd.release(1);
    assert_eq!(crowd.granted(), [(2, FENCE + 1)]);
}

#[test]
fn a_number_is_not_kept_over_a_broken_connection() {
    let mut crowd = Crowd::waiting(2);
    crowd.peer.now = crowd.peer.now.after(Duration::from_secs(2));
    crowd.hand_over(FENCE, 1..=2);
    let renew = crowd.peer.call();
    crowd.peer.lose_connection(vec![renew]);
    let now = crowd.peer.now;
    crowd.peer.queue.connected(now);
    crowd.peer.after(0);
    let ask = crowd
        .calls()
        .into_iter()
        .find(|it| matches!(it.call, Call::Ask(_)));
    let granted = asked(Standing::Granted { fence: FENCE + 9 });
    crowd.peer.reply(ask.expect("it asks"), granted);
    assert_eq!(crowd.granted(), [(1, FENCE + 9)]);
}

#[test]
fn a_follower_without_an_answer_counts_as_waiting() {
    let mut crowd = Crowd::waiting(1);
    let terms = Terms::of(LeaseId(2), "k", TTL);
    let now = crowd.peer.now;
    crowd
        .peer
        .queue
        .submit(now, Request::Acquire(Arc::new(terms)));
    let sent = crowd.peer.call();
    assert!(matches!(
        sent.call,
        Call::Acquire {
            company: Company::More,
            ..
        }
    ));
    crowd.tokens.insert(2, token(&sent));
    crowd.hand_over(FENCE, 1..=2);
    let outcomes = crowd.outcomes();
    assert!(matches!(
        outcomes[0],
        Outcome::Waiting { id: LeaseId(2), .. }
    ));
    crowd.peer.fail(sent, cut());
    crowd.release(1);
    assert_eq!(crowd.granted(), [(2, FENCE + 1)]);
}

// Section: guarantees.md#a-lock-passes-through-a-process-without-the-server
#[test]
fn a_follower_that_heard_of_trouble_hears_that_it_waits() {
    for cuts in [true, false] {
        let mut crowd = Crowd::waiting(2);
        let ask = if cuts {
            crowd.peer.lose_connection(Vec::new());
            let now = crowd.peer.now;
            crowd.peer.queue.connected(now);
            crowd.peer.after(0);
            crowd.peer.call()
        } else {
            crowd.peer.after(1_000);
            let ask = crowd.peer.call();
            crowd.peer.fail(ask, busy());
            crowd.peer.after(100);
            crowd.peer.call()
        };
        assert!(matches!(ask.call, Call::Ask(_)), "{ask:?}");
        crowd.hand_over(FENCE, 1..=2);
        let outcomes = crowd.outcomes();
        let mut of_it = outcomes.iter().filter(|outcome| match outcome {
            Outcome::Trouble { id, .. } | Outcome::Waiting { id, .. } => *id == LeaseId(2),
            _ => false,
        });
        let last = of_it.next_back();
        assert!(matches!(last, Some(Outcome::Waiting { .. })), "{last:?}");
    }
}

#[test]
fn an_answer_that_comes_after_the_message_still_gives_a_position() {
    let mut crowd = Crowd::waiting(1);
    let terms = Terms::of(LeaseId(2), "k", TTL);
    let now = crowd.peer.now;
    let acquire = Request::Acquire(Arc::new(terms));
    crowd.peer.queue.submit(now, acquire);
    let sent = crowd.peer.call();
    crowd.tokens.insert(2, token(&sent));
    crowd.submit(Request::Abandon, 1);
    let _leave = crowd.peer.call();

    crowd.hear(FENCE, 1..=2);
    let (position, ahead) = (2, ahead(8_000));
    crowd.peer.reply(sent, Reply::Waiting { position, ahead });
    crowd.peer.after(0);
    assert_eq!(crowd.again(), [2]);
}

#[test]
fn the_first_ones_answer_does_not_change_the_position_of_the_next() {
    let mut crowd = Crowd::waiting(0);
    let mut calls = Vec::new();
    for number in 1..=2 {
        let terms = Terms::of(LeaseId(number), "k", TTL);
        let now = crowd.peer.now;
        let acquire = Request::Acquire(Arc::new(terms));
        crowd.peer.queue.submit(now, acquire);
        let sent = crowd.peer.call();
        crowd.tokens.insert(number, token(&sent));
        calls.push(sent);
    }
    crowd.peer.now = crowd.peer.now.after(Duration::from_secs(2));
    crowd.hand_over(FENCE, 1..=2);
    let first = crowd.peer.call();
    assert!(matches!(first.call, Call::Renew { .. }), "{first:?}");
    crowd.submit(Request::Abandon, 1);
    let renew = crowd.peer.call();
    for (sent, position) in calls.into_iter().zip(1..) {
        let ahead = ahead(8_000);
        crowd.peer.reply(sent, Reply::Waiting { position, ahead });
    }
    crowd.peer.reply(renew, Reply::Ours(false));
    crowd.peer.after(0);
    assert_eq!(crowd.again(), [2]);
}
