//! Pushed grants: in time, late, twice, and for a token that is gone.

use std::time::Duration;

use super::{Call, ID, Peer, Reply, TTL, ahead, asked, token};
use crate::backend::queue::protocol::message::{Grant, Message};
use crate::backend::queue::protocol::reply::Standing;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::token::Token;
use crate::backend::{Outcome, Request};
use crate::types::terms::Wait;

#[test]
fn a_push_before_the_reply_grants_and_the_reply_changes_nothing() {
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    let (start, who) = (peer.now, token(&sent));
    peer.after(20);
    peer.push(who, 41);
    assert_eq!(peer.granted(), (41, start), "it counts from the send");
    peer.reply(
        sent,
        Reply::Waiting {
            position: 5,
            ahead: ahead(8_000),
        },
    );
    peer.push(who, 41);
    assert!(peer.outcome().is_none());
    peer.silent();
}

#[test]
fn a_push_counts_from_the_last_command_that_showed_it_waiting() {
    let (mut peer, who) = Peer::waiting();
    peer.after(1_000);
    let ask = peer.call();
    let asked_at = peer.now;
    peer.after(30);
    peer.reply(ask, asked(Standing::Waiting));
    peer.after(200);
    peer.push(who, 9);
    assert!(matches!(peer.outcome(), Some(Outcome::Waiting { .. })));
    assert_eq!(peer.granted(), (9, asked_at));
}

#[test]
fn a_late_push_is_confirmed_before_the_body_starts() {
    let (mut peer, who) = Peer::waiting();
    // A question is due, but nothing is sent while the process is stopped.
    peer.now = peer.now.after(Duration::from_secs(2));
    peer.push(who, 9);
    assert!(peer.outcome().is_none());
    let renew = peer.call();
    assert!(matches!(renew.call, Call::Renew { .. }));
    let sent_at = peer.now;
    peer.after(5);
    peer.reply(renew, Reply::Ours(true));
    assert_eq!(peer.granted(), (9, sent_at));
}

#[test]
fn a_confirmation_that_comes_too_late_confirms_nothing() {
    let (mut peer, who) = Peer::waiting();
    peer.now = peer.now.after(Duration::from_secs(2));
    peer.push(who, 9);
    let renew = peer.call();
    peer.now = peer.now.after(TTL);
    peer.reply(renew, Reply::Ours(true));
    assert!(peer.outcome().is_none());
    peer.after(0);
    assert!(matches!(peer.call().call, Call::Ask(_)));
}

#[test]
fn a_push_that_came_too_late_leads_to_a_fresh_token_in_the_old_position() {
    let (mut peer, old) = Peer::waiting();
    peer.now = peer.now.after(Duration::from_secs(60));
    peer.push(old, 9);
    let renew = peer.call();
    peer.reply(renew, Reply::Ours(false));
    let again = peer.call();
    assert!(matches!(
        again.call,
        Call::Acquire {
            position: Some(5),
            ..
        }
    ));
    assert_ne!(token(&again), old);
}

#[test]
fn a_grant_after_gone_is_given_back() {
    let (mut peer, old) = Peer::waiting();
    peer.after(1_000);
    let ask = peer.call();
    peer.reply(ask, asked(Standing::Gone));
    let again = peer.call();
    assert!(matches!(
        again.call,
        Call::Acquire {
            position: Some(5),
            ..
        }
    ));
    assert_ne!(token(&again), old, "a token is queued once");
    peer.push(old, 9);
    let disown = peer.call();
    assert!(matches!(&disown.call, Call::Disown(grant) if &*grant.owner == "lock:{k}"));
    assert_eq!(token(&disown), old);

    // Also when the fresh token has been granted meanwhile.
    let fresh = token(&again);
    peer.reply(again, Reply::Granted { fence: 12 });
    assert_eq!(peer.granted().0, 12);
    peer.push(old, 9);
    assert_eq!(token(&peer.call()), old);
    peer.push(fresh, 12);
    peer.silent();
}

// Section: guarantees.md#when-a-replica-takes-over
#[test]
fn a_push_in_quarantine_is_not_believed_whatever_the_key_looks_like() {
    for owner in ["lock:{k}", "k", "a\nb", "{"] {
        let (mut peer, who) = Peer::waiting();
        peer.queue.quarantined(peer.now, Some(TTL));
        for token in [who, Token::new().expect("random numbers")] {
            let grant = Grant {
                token,
                fence: 9,
                owner: owner.into(),
                name: token.to_string().into(),
                followers: Vec::new(),
            };
            peer.queue.heard(peer.now, Message::Granted(grant));
            assert!(peer.outcome().is_none(), "{owner}");
            peer.silent();
        }
    }
}

// Section: guarantees.md#beside-clients-of-other-kinds
#[test]
fn a_try_that_takes_over_a_lock_has_it_once_that_is_confirmed() {
    for is_given_up in [false, true] {
        let (mut peer, sent) = Peer::acquiring(Wait::AtMost(Duration::ZERO));
        let (who, left) = (token(&sent), Duration::from_millis(20));
        peer.reply(sent, Reply::Taken { left });
        peer.after(19);
        peer.silent();
        assert!(peer.outcome().is_none());
        if is_given_up {
            peer.queue.submit(peer.now, Request::Abandon(ID));
            assert!(matches!(peer.call().call, Call::Leave(_)));
            continue;
        }
        peer.after(1);
        let again = peer.call();
        assert!(matches!(again.call, Call::Acquire { .. }));
        assert_eq!(token(&again), who);
        peer.reply(again, Reply::Granted { fence: 7 });
        assert_eq!(peer.granted(), (7, peer.now));
    }
}

#[test]
fn a_takeover_is_not_left_behind_by_who_gives_up_while_it_is_confirmed() {
    let again = |not_run: bool| {
        let (mut peer, sent) = Peer::acquiring(Wait::AtMost(Duration::ZERO));
        let left = Duration::from_millis(20);
        peer.reply(sent, Reply::Taken { left });
        peer.now = peer.now.after(left);
        peer.queue.tick(peer.now);
        if not_run {
            let again = peer.call();
            peer.fail(again, Trouble::NotRun);
        }
        peer
    };
    for not_run in [false, true] {
        let mut peer = again(not_run);
        // The acquire that confirms it is not sent yet.
        peer.queue.submit(peer.now, Request::Abandon(ID));
        let calls = peer.queue.calls();
        let leaves = calls.iter().any(|it| matches!(it.call, Call::Leave(_)));
        assert!(leaves, "{calls:?}");
    }
}

#[test]
fn a_takeover_whose_answer_is_lost_is_asked_for_once() {
    let (mut peer, sent) = Peer::acquiring(Wait::AtMost(Duration::ZERO));
    let left = Duration::from_millis(20);
    peer.reply(sent, Reply::Taken { left });
    peer.after(20);
    let again = peer.call();
    peer.lose_connection(vec![again]);
    peer.queue.connected(peer.now);
    assert!(matches!(peer.call().call, Call::Acquire { .. }));
    peer.after(1_000);
    peer.silent();
}
