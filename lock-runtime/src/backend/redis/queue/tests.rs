//! Every order in which answers, pushes and failures can come in, by hand.

mod forbidden;

use std::sync::Arc;
use std::time::Duration;

use super::Queue;
use crate::backend::redis::protocol::call::{Call, Sent};
use crate::backend::redis::protocol::message::{Grant, Message};
use crate::backend::redis::protocol::reply::{Line, Reply, ServerSaid, Standing, Trouble};
use crate::backend::redis::protocol::token::Token;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::vocabulary::terms::{LeaseId, Terms, Wait};

const ID: LeaseId = LeaseId(7);
const TTL: Duration = Duration::from_secs(10);

/// A queue, and what a server and a driver would see of it.
struct Peer {
    queue: Queue,
    now: Moment,
}

impl Peer {
    fn connected() -> Self {
        let mut peer = Self {
            queue: Queue::new(),
            now: Moment::from_nanos(1),
        };
        peer.queue.connected(peer.now);
        peer
    }

    /// With one acquisition asked for, whose call is on the way.
    fn acquiring(wait: Wait) -> (Self, Sent) {
        let mut peer = Self::connected();
        let terms = Terms {
            wait,
            ..Terms::of(ID, "k", TTL)
        };
        peer.queue
            .submit(peer.now, Request::Acquire(Arc::new(terms)));
        let sent = peer.call();
        assert!(matches!(sent.call, Call::Acquire { place: None, .. }));
        (peer, sent)
    }

    /// With one acquisition in line.
    fn waiting() -> (Self, Token) {
        let (mut peer, sent) = Self::acquiring(Wait::Forever);
        let token = token(&sent);
        peer.reply(
            sent,
            Reply::Waiting {
                place: 5,
                line: line(8_000),
            },
        );
        assert!(matches!(
            peer.outcome(),
            Some(Outcome::Waiting { id: ID, .. })
        ));
        (peer, token)
    }

    fn after(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
        self.queue.tick(self.now);
    }

    /// The one call that the queue wants sent.
    fn call(&mut self) -> Sent {
        let mut calls = self.queue.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls.remove(0)
    }

    fn silent(&mut self) {
        let calls = self.queue.calls();
        assert!(calls.is_empty(), "{calls:?}");
    }

    fn reply(&mut self, sent: Sent, reply: Reply) {
        self.queue.replied(self.now, sent, Ok(reply));
    }

    fn fail(&mut self, sent: Sent, trouble: Trouble) {
        self.queue.replied(self.now, sent, Err(trouble));
    }

    fn push(&mut self, token: Token, fence: u64) {
        let (owner, name) = ("lock:{k}".into(), token.to_string().into());
        let grant = Grant {
            token,
            fence,
            owner,
            name,
        };
        self.queue.heard(self.now, Message::Granted(grant));
    }

    fn lose_connection(&mut self, in_flight: Vec<Sent>) {
        for sent in in_flight {
            self.fail(sent, cut());
        }
        self.queue.disconnected(cut());
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.queue.next_outcome()
    }

    fn granted(&mut self) -> (u64, Moment) {
        match self.outcome() {
            Some(Outcome::Granted {
                id: ID,
                fence,
                since,
                ..
            }) => (fence, since),
            other => panic!("not granted: {other:?}"),
        }
    }

    /// Skips what is only news.
    fn end(&mut self) -> Option<Outcome> {
        loop {
            match self.outcome() {
                Some(Outcome::Trouble { .. } | Outcome::Waiting { .. }) => {}
                other => return other,
            }
        }
    }
}

fn token(sent: &Sent) -> Token {
    match &sent.call {
        Call::Acquire { ticket, .. }
        | Call::Renew(ticket)
        | Call::Release { ticket, .. }
        | Call::Leave(ticket) => ticket.token,
        Call::Ask(tickets) => tickets[0].token,
        Call::Disown(grant) => grant.token,
        Call::Inspect(..) | Call::Report { .. } => panic!("{sent:?} is about no acquisition"),
    }
}

fn line(left_ms: u64) -> Line {
    Line {
        owner: "somebody".into(),
        left: Some(Duration::from_millis(left_ms)),
    }
}

fn asked(standing: Standing) -> Reply {
    Reply::Asked {
        line: line(8_000),
        standings: vec![standing],
    }
}

fn forbidden() -> Trouble {
    Trouble::Never(Arc::new(ServerSaid("NOPERM".into())))
}

fn cut() -> Trouble {
    Trouble::Unknown(Arc::new(ServerSaid("cut".into())))
}

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
            place: 5,
            line: line(8_000),
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
    assert!(matches!(renew.call, Call::Renew(_)));
    let sent_at = peer.now;
    peer.after(5);
    peer.reply(renew, Reply::Ours(true));
    assert_eq!(peer.granted(), (9, sent_at));
}

#[test]
fn a_push_that_came_too_late_leads_to_a_fresh_token_in_the_old_place() {
    let (mut peer, old) = Peer::waiting();
    peer.now = peer.now.after(Duration::from_secs(60));
    peer.push(old, 9);
    let renew = peer.call();
    peer.reply(renew, Reply::Ours(false));
    let again = peer.call();
    assert!(matches!(again.call, Call::Acquire { place: Some(5), .. }));
    assert_ne!(token(&again), old);
}

#[test]
fn a_grant_after_gone_is_given_back() {
    let (mut peer, old) = Peer::waiting();
    peer.after(1_000);
    let ask = peer.call();
    peer.reply(ask, asked(Standing::Gone));
    let again = peer.call();
    assert!(matches!(again.call, Call::Acquire { place: Some(5), .. }));
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
    while let Some(Outcome::Trouble { .. }) = peer.queue.outcomes.front() {
        peer.outcome();
    }
    assert_eq!(peer.granted(), (3, asked_at));
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
fn a_refusal_for_now_is_retried_and_one_for_good_is_told_at_once() {
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    peer.fail(sent, Trouble::said("LOADING"));
    assert!(matches!(peer.outcome(), Some(Outcome::Trouble { .. })));
    peer.silent();
    peer.after(100);
    let ask = peer.call();
    peer.fail(ask, forbidden());
    assert!(matches!(peer.end(), Some(Outcome::Failed { id: ID, .. })));
    assert!(
        matches!(peer.call().call, Call::Leave(_)),
        "it may be in line"
    );
}

#[test]
fn giving_up_leaves_whatever_was_reached() {
    // Not sent yet.
    let mut unsent = Queue::new();
    let now = Moment::from_nanos(1);
    let terms = Peer::acquiring(Wait::Forever).1;
    let Call::Acquire { ticket, .. } = terms.call else {
        unreachable!()
    };
    unsent.submit(now, Request::Acquire(ticket.terms));
    unsent.submit(now, Request::Abandon(ID));
    unsent.connected(now);
    assert!(unsent.calls().is_empty());

    // On the way: the leave goes after it, and a grant that raced is passed on.
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    let who = token(&sent);
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

    // In line.
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
    peer.fail(again, Trouble::said("BUSY"));
    peer.after(100);
    let last = peer.call();
    peer.reply(last, Reply::Ours(true));
    assert!(matches!(peer.end(), Some(Outcome::Released { .. })));
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
fn waiters_ask_when_the_holders_lease_ends_and_every_second() {
    let (mut peer, _) = Peer::waiting();
    peer.after(990);
    peer.silent();
    peer.after(10);
    let ask = peer.call();
    let soon = Reply::Asked {
        line: line(200),
        standings: vec![Standing::Waiting],
    };
    peer.reply(ask, soon);
    peer.after(200);
    peer.silent();
    peer.after(50);
    assert!(matches!(peer.call().call, Call::Ask(_)));
}

#[test]
fn a_try_that_found_the_lock_held_is_over() {
    let (mut peer, sent) = Peer::acquiring(Wait::AtMost(Duration::ZERO));
    peer.reply(sent, Reply::Busy { line: line(8_000) });
    assert!(matches!(peer.outcome(), Some(Outcome::Busy { id: ID, .. })));
    peer.after(5_000);
    peer.silent();
}

/// With the lock held.
fn holding() -> (Peer, Token) {
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    let who = token(&sent);
    peer.reply(sent, Reply::Granted { fence: 3 });
    peer.granted();
    (peer, who)
}

#[test]
fn a_renewal_is_sent_and_its_answer_told() {
    let (mut peer, who) = holding();
    peer.after(3_000);
    peer.queue.submit(peer.now, Request::Renew(ID));
    let renew = peer.call();
    assert!(matches!(renew.call, Call::Renew(_)));
    assert_eq!(token(&renew), who);
    let sent_at = peer.now;
    peer.after(50);
    peer.reply(renew, Reply::Ours(true));
    let renewed = peer.outcome();
    assert!(matches!(renewed, Some(Outcome::Renewed { id: ID, since }) if since == sent_at));

    peer.queue.submit(peer.now, Request::Renew(ID));
    let renew = peer.call();
    peer.reply(renew, Reply::Ours(false));
    assert!(matches!(peer.outcome(), Some(Outcome::NotHeld { id: ID })));
}

#[test]
fn a_renewal_that_fails_is_told_and_one_that_was_not_run_is_sent_again() {
    let (mut peer, _) = holding();
    peer.queue.submit(peer.now, Request::Renew(ID));
    let renew = peer.call();
    peer.fail(renew, Trouble::NotRun);
    let again = peer.call();
    assert!(matches!(again.call, Call::Renew(_)));
    peer.fail(again, Trouble::said("READONLY"));
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
fn everybody_is_asked_about_as_soon_as_there_is_a_connection() {
    let (mut peer, _) = Peer::waiting();
    peer.lose_connection(Vec::new());
    peer.after(10);
    peer.queue.connected(peer.now);
    peer.after(0);
    assert!(matches!(peer.call().call, Call::Ask(_)));
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
            place: 6,
            line: line(200),
        },
    );
    peer.after(250);
    let ask = peer.call();
    let Call::Ask(tickets) = &ask.call else {
        panic!("{ask:?}")
    };
    assert_eq!(tickets.len(), 2, "one question for both");
    peer.reply(
        ask,
        Reply::Asked {
            line: line(8_000),
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

#[test]
fn a_lock_that_is_taken_away_before_its_grant_is_known_is_asked_for_anew() {
    let (mut peer, sent) = Peer::acquiring(Wait::Forever);
    let who = token(&sent);
    peer.queue.heard(peer.now, Message::Revoked(who));
    peer.reply(sent, Reply::Granted { fence: 3 });
    assert!(peer.outcome().is_none(), "it is somebody else's");
    let again = peer.call();
    assert_ne!(token(&again), who);
}

#[test]
fn a_lock_that_is_taken_away_is_lost() {
    let (mut peer, who) = holding();
    peer.queue.heard(peer.now, Message::Revoked(who));
    assert!(matches!(peer.outcome(), Some(Outcome::NotHeld { id: ID })));
}

#[test]
fn a_leave_that_is_not_answered_is_told_when_a_lease_would_have_ended_and_sent_all_the_same() {
    let (mut peer, _) = Peer::waiting();
    peer.lose_connection(Vec::new());
    peer.queue.submit(peer.now, Request::Abandon(ID));
    peer.after(9_999);
    assert!(peer.end().is_none());
    peer.after(1);
    let told = peer.end();
    assert!(matches!(
        told,
        Some(Outcome::Released { result: Err(_), .. })
    ));
    peer.after(60_000);
    peer.queue.connected(peer.now);
    let leave = peer.call();
    assert!(matches!(leave.call, Call::Leave(_)));
    peer.reply(leave, Reply::Ours(false));
    assert!(peer.outcome().is_none(), "it was told before");
    assert_eq!(peer.queue.next_wakeup(), None, "it is forgotten");
}
