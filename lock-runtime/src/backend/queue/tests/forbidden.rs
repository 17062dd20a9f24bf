//! Releases and leaves that the server forbids.

use super::{Call, ID, Peer, Reply, forbidden, holding};
use crate::backend::{Outcome, Request};

/// Answers everything as forbidden for so many tenths of a second; how often something was sent.
fn forbid(peer: &mut Peer, tenths: u32) -> usize {
    let mut sent_again = 0;
    for _ in 0..tenths {
        peer.after(100);
        for sent in peer.queue.calls() {
            assert!(matches!(sent.call, Call::Release { .. } | Call::Leave(_)));
            peer.fail(sent, forbidden());
            sent_again += 1;
        }
        assert!(peer.outcome().is_none(), "it was reported before");
    }
    sent_again
}

/// Asks for what is forbidden, which is reported at once.
fn ask_in_vain(peer: &mut Peer, request: Request) {
    peer.queue.submit(peer.now, request);
    let call = peer.call();
    peer.fail(call, forbidden());
    let outcome = peer.end();
    assert!(matches!(
        outcome,
        Some(Outcome::Released { result: Err(_), .. })
    ));
}

#[test]
fn a_release_that_is_forbidden_is_reported_at_once_and_sent_until_the_lease_has_ended() {
    let (mut peer, _) = holding();
    ask_in_vain(&mut peer, Request::Release(ID));
    assert!((5..=10).contains(&forbid(&mut peer, 200)));
    assert_eq!(peer.queue.next_wakeup(), None, "it is forgotten");
}

#[test]
fn a_leave_that_is_forbidden_is_sent_for_as_long() {
    let (mut peer, _) = Peer::waiting();
    ask_in_vain(&mut peer, Request::Abandon(ID));
    assert!((5..=10).contains(&forbid(&mut peer, 200)));
    assert_eq!(peer.queue.next_wakeup(), None, "it is forgotten");
}

#[test]
fn a_leave_is_sent_again_for_a_lock_that_is_granted_meanwhile() {
    let (mut peer, token) = Peer::waiting();
    ask_in_vain(&mut peer, Request::Abandon(ID));
    forbid(&mut peer, 90);
    peer.push(token, 9);
    // Until then a leave would have been sent.
    forbid(&mut peer, 12);
    assert!(forbid(&mut peer, 18) > 0, "the lock is its own");
    forbid(&mut peer, 100);
    assert_eq!(peer.queue.next_wakeup(), None, "it is forgotten");
}

#[test]
fn a_release_that_was_forbidden_is_answered_once() {
    let (mut peer, _) = holding();
    ask_in_vain(&mut peer, Request::Release(ID));
    peer.lose_connection(Vec::new());
    peer.after(5_000);
    peer.silent();
    peer.queue.connected(peer.now);
    let again = peer.call();
    peer.reply(again, Reply::Ours(true));
    assert!(peer.outcome().is_none());
    peer.after(20_000);
    peer.silent();

    // Nor is it kept where no connection comes back.
    let (mut peer, _) = Peer::waiting();
    ask_in_vain(&mut peer, Request::Abandon(ID));
    peer.lose_connection(Vec::new());
    peer.after(20_000);
    peer.queue.connected(peer.now);
    peer.silent();
}
