//! Renewals of a lock that is held, and a lock that is taken away.

use std::sync::Arc;
use std::time::Duration;

use super::{Call, ID, Peer, Reply, TTL, busy, holding, token};
use crate::backend::queue::order::Order;
use crate::backend::queue::protocol::call::Note;
use crate::backend::queue::protocol::message::Message;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::token::Token;
use crate::backend::{Outcome, Request};
use crate::types::terms::{Terms, Wait};

#[test]
fn a_renewal_is_sent_and_its_answer_reported() {
    let (mut peer, who) = holding();
    peer.after(3_000);
    peer.queue.submit(peer.now, Request::Renew(ID));
    let renew = peer.call();
    assert!(matches!(renew.call, Call::Renew { .. }));
    assert_eq!(token(&renew), who);
    let sent_at = peer.now;
    peer.after(50);
    peer.reply(renew, Reply::Ours(true));
    let renewed = peer.outcome();
    assert!(matches!(renewed, Some(Outcome::Renewed { id: ID, since, .. }) if since == sent_at));

    peer.queue.submit(peer.now, Request::Renew(ID));
    let renew = peer.call();
    peer.reply(renew, Reply::Ours(false));
    assert!(matches!(peer.outcome(), Some(Outcome::NotHeld { id: ID })));
}

// Section: guarantees.md#the-lock-goes-on
#[test]
fn a_renewal_that_failed_goes_with_the_first_calls_of_a_new_connection() {
    let (mut peer, who) = holding();
    let renewal = |peer: &mut Peer| {
        peer.queue.submit(peer.now, Request::Renew(ID));
        peer.call()
    };
    // Cut off, and due while there is no connection.
    let cut_off = renewal(&mut peer);
    peer.lose_connection(vec![cut_off]);
    peer.queue.connected(peer.now);
    let again = peer.call();
    assert!(matches!(again.call, Call::Renew { .. }));
    assert_eq!(token(&again), who);
    peer.reply(again, Reply::Ours(true));
    peer.lose_connection(Vec::new());
    peer.queue.submit(peer.now, Request::Renew(ID));
    peer.queue.connected(peer.now);
    let again = peer.call();
    peer.reply(again, Reply::Ours(true));
    // The last one has been answered, or refused.
    peer.lose_connection(Vec::new());
    peer.queue.connected(peer.now);
    peer.silent();
    let refused = renewal(&mut peer);
    peer.fail(refused, busy());
    peer.lose_connection(Vec::new());
    peer.queue.connected(peer.now);
    peer.silent();
}

/// It may have waited for a row, and those behind it are not to wait for that again.
#[cfg(any(feature = "mysql", feature = "postgres"))]
#[test]
fn a_renewal_during_which_a_connection_broke_waits_for_the_driver() {
    let (mut peer, who) = holding();
    peer.queue.submit(peer.now, Request::Renew(ID));
    let renewal = peer.call();
    peer.fail(renewal, super::cut());
    peer.queue.were_in_the_way(vec![who]);
    peer.lose_connection(Vec::new());
    peer.queue.connected(peer.now);
    peer.silent();
}

/// Whoever counts the parts of a majority renews them, and takes the answers for those to its own calls.
#[test]
fn a_part_is_not_renewed_unasked() {
    let mut peer = Peer::connected();
    let order = Order::Acquire {
        terms: Arc::new(Terms::of(ID, "k", TTL)),
        token: Token::new().expect("random numbers"),
        position: 1,
    };
    peer.queue.obey(peer.now, order);
    let sent = peer.call();
    peer.reply(sent, Reply::Granted { fence: 3 });
    peer.queue.submit(peer.now, Request::Renew(ID));
    let renewal = peer.call();
    peer.lose_connection(vec![renewal]);
    peer.queue.connected(peer.now);
    peer.silent();
}

// Section: guarantees.md#looking-at-a-lock
#[test]
fn a_renewal_tells_the_fence_and_for_how_long_the_lock_is_held() {
    let (mut peer, _) = holding();
    peer.after(3_000);
    peer.queue.submit(peer.now, Request::Renew(ID));
    let renew = peer.call();
    let held = Duration::from_secs(3);
    let told = Some(Note { fence: 3, held });
    assert!(
        matches!(&renew.call, Call::Renew { note, .. } if *note == told),
        "{renew:?}"
    );
}

// Section: guarantees.md#elections
#[test]
fn the_grant_of_a_leader_is_noted_at_once() {
    for data in [None, Some("10.0.0.7:80".into())] {
        let leads = data.is_some();
        let mut peer = Peer::connected();
        let terms = Terms {
            data,
            ..Terms::of(ID, "k", TTL)
        };
        let request = Request::Acquire(Arc::new(terms));
        peer.queue.submit(peer.now, request);
        let sent = peer.call();
        peer.reply(sent, Reply::Granted { fence: 3 });
        assert!(matches!(peer.outcome(), Some(Outcome::Granted { .. })));
        if !leads {
            peer.silent();
            continue;
        }
        let renew = peer.call();
        assert!(
            matches!(&renew.call, Call::Renew { note: Some(note), .. } if note.fence == 3),
            "{renew:?}"
        );
    }
}

#[test]
fn a_renewal_that_fails_is_reported_and_one_that_was_not_run_is_sent_again() {
    let (mut peer, _) = holding();
    peer.queue.submit(peer.now, Request::Renew(ID));
    let renew = peer.call();
    peer.fail(renew, Trouble::NotRun);
    let again = peer.call();
    assert!(matches!(again.call, Call::Renew { .. }));
    peer.fail(again, Trouble::not_now("READONLY"));
    assert!(matches!(
        peer.outcome(),
        Some(Outcome::RenewFailed { id: ID, .. })
    ));

    peer.lose_connection(Vec::new());
    peer.queue.submit(peer.now, Request::Renew(ID));
    peer.silent();
    assert!(matches!(
        peer.outcome(),
        Some(Outcome::RenewFailed { id: ID, .. })
    ));
}

#[test]
fn a_lock_that_is_revoked_before_its_grant_is_known_is_asked_for_anew() {
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    let who = token(&sent);
    peer.queue.heard(peer.now, Message::Revoked(who));
    peer.reply(sent, Reply::Granted { fence: 3 });
    assert!(peer.outcome().is_none(), "it is somebody else's");
    let [again, leave] = peer.queue.calls().try_into().expect("two calls");
    assert!(matches!(again.call, Call::Acquire { .. }) && token(&again) != who);
    assert!(matches!(leave.call, Call::Leave(_)) && token(&leave) == who);
}

#[test]
fn a_revoked_lock_is_lost() {
    let (mut peer, who) = holding();
    peer.queue.heard(peer.now, Message::Revoked(who));
    assert!(matches!(peer.outcome(), Some(Outcome::NotHeld { id: ID })));
}
