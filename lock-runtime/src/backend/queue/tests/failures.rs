//! Replies that are lost, servers that refuse, and connections that are down.

use super::{Call, ID, Peer, Reply, asked, forbidden, token};
use crate::backend::queue::protocol::reply::Standing;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::{Outcome, Request};
use crate::types::terms::Wait;

#[test]
fn a_reply_cut_after_the_acquire_is_asked_for_not_sent_again() {
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    let who = token(&sent);
    peer.lose_connection(vec![sent]);
    peer.after(5_000);
    peer.silent();
    peer.queue.connected(peer.now);
    peer.after(0);
    let ask = peer.call();
    assert!(matches!(ask.call, Call::Ask(_)));
    let asked_at = ask.at;
    peer.reply(ask, asked(Standing::Granted { fence: 3 }));
    assert!(matches!(peer.outcome(), Some(Outcome::Trouble { .. })));
    let outcomes = std::iter::from_fn(|| peer.outcome());
    let outcomes: Vec<_> = outcomes
        .skip_while(|it| matches!(it, Outcome::Trouble { .. }))
        .collect();
    assert!(
        matches!(outcomes[..], [Outcome::Granted { fence: 3, since, .. }] if since == asked_at),
        "{outcomes:?}"
    );
    peer.push(who, 2);
    peer.silent();
}

#[test]
fn a_server_that_lost_its_scripts_is_called_again_at_once() {
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    let who = token(&sent);
    peer.fail(sent, Trouble::NotRun);
    let again = peer.call();
    assert_eq!(token(&again), who, "nothing was done with it");
    assert!(matches!(again.call, Call::Acquire { .. }));
}

#[test]
fn a_refusal_for_now_is_retried_and_one_for_good_is_reported_at_once() {
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    peer.fail(sent, Trouble::not_now("LOADING"));
    assert!(matches!(peer.outcome(), Some(Outcome::Trouble { .. })));
    peer.silent();
    peer.after(100);
    let ask = peer.call();
    peer.fail(ask, forbidden());
    assert!(matches!(peer.end(), Some(Outcome::Failed { id: ID, .. })));
    assert!(
        matches!(peer.call().call, Call::Leave(_)),
        "it may be in the queue"
    );
}

#[test]
fn everybody_is_asked_about_as_soon_as_there_is_a_connection() {
    let (mut peer, _) = Peer::waiting();
    peer.lose_connection(Vec::new());
    peer.after(10);
    peer.queue.connected(peer.now);
    peer.after(0);
    assert!(matches!(peer.call().call, Call::Ask(_)));
}

#[test]
fn what_the_server_refused_is_not_sent_while_the_connection_is_down() {
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    peer.reply(sent, Reply::Gone);
    peer.lose_connection(Vec::new());
    // The pause after the refusal ends without a connection.
    peer.after(1_000);
    peer.silent();
    peer.queue.connected(peer.now);
    assert!(matches!(peer.call().call, Call::Acquire { .. }));
}

/// Its leave may have come to the new node first.
#[test]
fn an_acquisition_that_was_given_up_is_not_redirected() {
    let (mut peer, mut sent) = Peer::acquiring(Wait::Forever);
    assert!(peer.queue.redirected(peer.now, &mut sent.call));
    peer.queue.submit(peer.now, Request::Abandon(ID));
    let leave = peer.call();
    assert!(!peer.queue.redirected(peer.now, &mut sent.call));
    peer.reply(leave, Reply::Ours(false));
    assert!(!peer.queue.redirected(peer.now, &mut sent.call));
}

/// It was redirected to another node, and its leave came there first.
#[test]
fn what_is_granted_after_its_caller_has_left_is_released_until_that_is_done() {
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    peer.queue.submit(peer.now, Request::Abandon(ID));
    let leave = peer.call();
    peer.reply(leave, Reply::Ours(false));
    peer.reply(sent, Reply::Granted { fence: 7 });
    for trouble in [Trouble::NotRun, Trouble::not_now("BUSY")] {
        let leave = peer.call();
        assert!(matches!(leave.call, Call::Leave(_)));
        peer.fail(leave, trouble);
        peer.after(1_000);
    }
    let leave = peer.call();
    peer.reply(leave, Reply::Ours(true));
    peer.after(1_000);
    peer.silent();
}
