//! A chain ends in the middle: those who have not had the lock queue again.

use std::time::Duration;

use super::super::{Call, Reply, TTL, ahead, asked, token};
use super::{Crowd, FENCE};
use crate::backend::queue::CLAIM_TTL;
use crate::backend::queue::protocol::message::Message;
use crate::backend::queue::protocol::reply::Standing;
use crate::backend::{Outcome, Request};

#[test]
fn a_loss_is_reported_to_all_followers() {
    let mut crowd = Crowd::chained(3);
    crowd.submit(Request::Renew, 1);
    let renew = crowd.peer.call();
    crowd.peer.reply(renew, Reply::Ours(false));
    crowd.release(1);
    let mut calls = crowd.calls();
    let last = calls.remove(0);
    assert!(matches!(last.call, Call::Release { .. }), "{last:?}");
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(crowd.granted().is_empty());
}

#[test]
fn a_revoked_lock_is_not_handed_over() {
    let mut crowd = Crowd::chained(3);
    let now = crowd.peer.now;
    let revoked = Message::Revoked(crowd.tokens[&1]);
    crowd.peer.queue.heard(now, revoked);
    crowd.peer.after(0);
    assert_eq!(crowd.again(), [2, 3]);
    crowd.release(1);
    assert!(crowd.granted().is_empty());
}

#[test]
fn a_connection_that_breaks_ends_the_chain() {
    let mut crowd = Crowd::chained(3);
    crowd.peer.lose_connection(Vec::new());
    crowd.release(1);
    assert!(crowd.granted().is_empty());
    let now = crowd.peer.now;
    crowd.peer.queue.connected(now);
    let calls = crowd.calls();
    let acquires = calls.iter().filter(|it| {
        matches!(
            it.call,
            Call::Acquire {
                position: Some(_),
                ..
            }
        )
    });
    assert_eq!((acquires.count(), calls.len()), (2, 3), "{calls:?}");
}

#[test]
fn a_renewal_under_an_old_token_does_not_make_a_later_one_long() {
    let mut crowd = Crowd::waiting(3);
    crowd.peer.now = crowd.peer.now.after(Duration::from_secs(2));
    crowd.hand_over(FENCE, [1]);
    let confirm = crowd.calls().remove(0);
    assert!(matches!(confirm.call, Call::Renew { .. }), "{confirm:?}");
    let (now, revoked) = (crowd.peer.now, Message::Revoked(crowd.tokens[&1]));
    crowd.peer.queue.heard(now, revoked);
    let again = crowd.peer.call();
    crowd.peer.reply(confirm, Reply::Ours(false));
    crowd.tokens.insert(1, token(&again));
    let (position, ahead) = (1, ahead(8_000));
    crowd.peer.reply(again, Reply::Waiting { position, ahead });

    crowd.hand_over(FENCE + 2, 1..=3);
    assert_eq!(crowd.granted(), [(1, FENCE + 2)]);
    crowd.calls();
    crowd.peer.now = crowd.peer.now.after(Duration::from_secs(2));
    crowd.submit(Request::Abandon, 1);
    let renew = crowd.peer.call();
    assert!(
        matches!(&renew.call, Call::Renew { bearer: it, .. } if it.terms.ttl == Duration::from_secs(3))
    );
}

/// The connection breaks before a brief renewal is answered, which may arrive after all that follows.
fn lose_a_brief_renewal(crowd: &mut Crowd) {
    let brief = crowd.peer.call();
    assert!(matches!(&brief.call, Call::Renew { bearer: it, .. } if it.terms.ttl < TTL));
    crowd.peer.lose_connection(vec![brief]);
    crowd.outcomes();
    crowd.peer.queue.connected(crowd.peer.now);
    crowd.peer.after(0);
}

// Section: guarantees.md#a-lock-passes-through-a-process-without-the-server
#[test]
fn a_renewal_counts_briefly_where_a_brief_one_may_still_arrive() {
    let mut crowd = Crowd::chained(3);
    crowd.peer.now = crowd.peer.now.after(Duration::from_millis(800));
    crowd.release(1);
    lose_a_brief_renewal(&mut crowd);
    crowd.calls();
    crowd.submit(Request::Renew, 2);
    let long = crowd.peer.call();
    assert!(matches!(&long.call, Call::Renew { bearer: it, .. } if it.terms.ttl == TTL));
    crowd.peer.reply(long, Reply::Ours(true));
    let renewed = crowd.outcomes();
    let [Outcome::Renewed { ttl, .. }] = renewed[..] else {
        panic!("{renewed:?}");
    };
    assert_eq!(ttl, CLAIM_TTL);
}

// Section: guarantees.md#a-lock-passes-through-a-process-without-the-server
#[test]
fn an_answer_counts_briefly_where_a_brief_renewal_may_still_arrive() {
    let mut crowd = Crowd::chained(3);
    crowd.peer.now = crowd.peer.now.after(Duration::from_secs(2));
    crowd.release(1);
    assert!(crowd.granted().is_empty(), "it confirms first");
    lose_a_brief_renewal(&mut crowd);
    let mut calls = crowd.calls();
    let at = calls.iter().position(|it| matches!(it.call, Call::Ask(_)));
    let ask = calls.remove(at.expect("a question"));
    crowd
        .peer
        .reply(ask, asked(Standing::Granted { fence: FENCE }));
    let outcomes = crowd.outcomes();
    let granted = outcomes.iter().find_map(|it| match it {
        Outcome::Granted { ttl, .. } => Some(*ttl),
        _ => None,
    });
    assert_eq!(granted, Some(CLAIM_TTL), "{outcomes:?}");
}
