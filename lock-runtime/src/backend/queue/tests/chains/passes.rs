//! The server has to know who of a chain holds the lock, before it does.

use super::super::{Call, Reply, Sent, asked, busy, cut, token};
use super::{Crowd, FENCE};
use crate::backend::queue::protocol::reply::Standing;
use crate::backend::{Outcome, Request};
use crate::types::terms::LeaseId;

impl Crowd {
    /// With the lock handed to all of them, by a server that has to know who holds it.
    fn passing(count: u64) -> Self {
        let mut crowd = Self::chained(count);
        crowd.peer.queue.passes = true;
        crowd
    }

    /// The one call, by which the server learns of this fence.
    fn pass(&mut self, expected: u64) -> Sent {
        let pass = self.peer.call();
        assert!(matches!(pass.call, Call::Pass { fence, .. } if fence == expected));
        assert_eq!(token(&pass), self.tokens[&1], "under the first's name");
        pass
    }

    /// With the answer that it is not so, and what is asked again.
    fn refused(&mut self) -> Vec<Sent> {
        self.release(1);
        let pass = self.pass(FENCE + 1);
        self.peer.reply(pass, Reply::Ours(false));
        self.peer.silent();
        self.peer.after(50);
        assert!(self.granted().is_empty());
        self.calls()
    }
}

#[test]
fn nobody_enters_before_the_server_knows() {
    let mut crowd = Crowd::passing(3);
    for next in 1..=2 {
        crowd.release(next);
        assert!(crowd.granted().is_empty());
        let pass = crowd.pass(FENCE + next);
        crowd.peer.reply(pass, Reply::Ours(true));
        assert_eq!(crowd.granted(), [(next + 1, FENCE + next)]);
        crowd.peer.silent();
    }
}

#[test]
fn what_is_kept_from_the_next_is_renewed_and_asked_for_again() {
    let mut crowd = Crowd::passing(2);
    let mut calls = crowd.refused();
    assert!(matches!(calls[0].call, Call::Renew { .. }), "{calls:?}");
    let (pass, renewal) = (calls.pop(), calls.remove(0));
    crowd.peer.reply(renewal, Reply::Ours(true));
    assert!(crowd.granted().is_empty(), "the server does not know yet");
    crowd.peer.reply(pass.expect("a pass"), Reply::Ours(true));
    assert_eq!(crowd.granted(), [(2, FENCE + 1)]);
}

#[test]
fn what_is_lost_meanwhile_is_acquired_anew() {
    let mut crowd = Crowd::passing(2);
    let mut calls = crowd.refused();
    let (pass, renewal) = (calls.pop(), calls.remove(0));
    crowd.peer.reply(renewal, Reply::Ours(false));
    assert_eq!(crowd.again(), [2]);
    crowd.peer.reply(pass.expect("a pass"), Reply::Ours(true));
    assert!(crowd.granted().is_empty(), "its token is another one");
}

#[test]
fn a_fence_that_the_server_does_not_know_outlives_the_connection() {
    for lost in [true, false] {
        let mut crowd = Crowd::passing(2);
        crowd.release(1);
        let pass = crowd.pass(FENCE + 1);
        if lost {
            crowd.peer.lose_connection(vec![pass]);
            let now = crowd.peer.now;
            crowd.peer.queue.connected(now);
            crowd.peer.after(0);
        } else {
            crowd.peer.fail(pass, busy());
            crowd.peer.after(100);
        }
        let ask = crowd.peer.call();
        assert!(matches!(ask.call, Call::Ask(_)), "{ask:?}");
        // The server may name the fence of the one before.
        let granted = asked(Standing::Granted { fence: FENCE });
        crowd.peer.reply(ask, granted);
        assert!(crowd.granted().is_empty());
        let pass = crowd.pass(FENCE + 1);
        crowd.peer.reply(pass, Reply::Ours(true));
        assert_eq!(crowd.granted(), [(2, FENCE + 1)]);
        // Which it knows from now on.
        crowd.release(2);
        let release = crowd.peer.call();
        crowd.peer.fail(release, cut());
    }
}

#[test]
fn one_that_gives_up_before_the_server_knows_hands_the_lock_over() {
    for answered_late in [false, true] {
        let mut crowd = Crowd::passing(3);
        crowd.release(1);
        let given_up = crowd.pass(FENCE + 1);
        crowd.submit(Request::Abandon, 2);
        let renewal = crowd.peer.call();
        assert!(matches!(renewal.call, Call::Renew { .. }), "{renewal:?}");
        let mut given_up = Some(given_up);
        if !answered_late {
            let given_up = given_up.take().expect("it is answered once");
            crowd.peer.reply(given_up, Reply::Ours(true));
        }
        assert!(crowd.granted().is_empty());
        crowd.peer.reply(renewal, Reply::Ours(true));
        let pass = crowd.pass(FENCE + 2);
        if let Some(given_up) = given_up {
            crowd.peer.reply(given_up, Reply::Ours(true));
            assert!(
                crowd.granted().is_empty(),
                "the server knows the one before"
            );
        }
        crowd.peer.reply(pass, Reply::Ours(true));
        assert_eq!(crowd.granted(), [(3, FENCE + 2)]);
    }
}

// Section: guarantees.md#asking-to-yield
#[test]
fn what_the_server_tells_of_the_one_before_does_not_reach_the_next() {
    let mut crowd = Crowd::passing(2);
    let before = crowd.peer.queue.held_since(crowd.peer.now).remove(0);
    crowd.release(1);
    let pass = crowd.pass(FENCE + 1);
    crowd.peer.reply(pass, Reply::Ours(true));
    assert_eq!(crowd.granted(), [(2, FENCE + 1)]);
    let now = crowd.peer.queue.held_since(crowd.peer.now).remove(0);
    assert_eq!(before.token, now.token);
    crowd.peer.queue.wanted_of(&before);
    assert!(crowd.peer.outcome().is_none(), "it was not asked");
    crowd.peer.queue.wanted_of(&now);
    let outcome = crowd.peer.outcome();
    assert!(matches!(outcome, Some(Outcome::Wanted { id: LeaseId(2) })));
}
