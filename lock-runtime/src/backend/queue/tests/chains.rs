//! Chains: several are handed a lock at once, and hand it over among themselves.

mod answers;
mod downgrades;
mod endings;
mod passes;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Call, Peer, Reply, Sent, TTL, ahead, token};
use crate::backend::queue::CLAIM_TTL;
use crate::backend::queue::protocol::call::{Company, Note};
use crate::backend::queue::protocol::message::{Grant, Message};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::queue::replicas::Replicas;
use crate::backend::token::Token;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::terms::{LeaseId, Terms};

const FENCE: u64 = 40;

/// Acquisitions `1..=count` that wait for the same lock.
struct Crowd {
    peer: Peer,
    tokens: HashMap<u64, Token>,
    /// When the last of them joined.
    joined: Moment,
}

impl Crowd {
    fn waiting(count: u64) -> Self {
        Self::with(count, |_| {})
    }

    fn with(count: u64, change: impl Fn(&mut Terms)) -> Self {
        let mut peer = Peer::connected();
        let mut tokens = HashMap::new();
        for number in 1..=count {
            let mut terms = Terms::of(LeaseId(number), "k", TTL);
            change(&mut terms);
            peer.after(1);
            peer.queue
                .submit(peer.now, Request::Acquire(Arc::new(terms)));
            let sent = peer.call();
            tokens.insert(number, token(&sent));
            let (position, ahead) = (number, ahead(8_000));
            peer.reply(sent, Reply::Waiting { position, ahead });
        }
        let joined = peer.now;
        let mut crowd = Self {
            peer,
            tokens,
            joined,
        };
        crowd.outcomes();
        crowd
    }

    /// With the lock handed to all of them.
    fn chained(count: u64) -> Self {
        let mut crowd = Self::waiting(count);
        crowd.hand_over(FENCE, 1..=count);
        assert_eq!(crowd.granted(), [(1, FENCE)]);
        crowd
    }

    /// The lock is handed to the first of these.
    fn hand_over(&mut self, fence: u64, numbers: impl IntoIterator<Item = u64>) {
        self.hear(fence, numbers);
        self.peer.after(0);
    }

    /// The same, where more has arrived with the message.
    fn hear(&mut self, fence: u64, numbers: impl IntoIterator<Item = u64>) {
        let mut tokens = numbers.into_iter().map(|number| self.tokens[&number]);
        let token = tokens.next().expect("a first");
        let grant = Grant {
            token,
            fence,
            owner: "lock:{k}".into(),
            name: token.to_string().into(),
            followers: tokens.collect(),
        };
        self.peer
            .queue
            .heard(self.peer.now, Message::Granted(grant));
    }

    fn outcomes(&mut self) -> Vec<Outcome> {
        std::iter::from_fn(|| self.peer.outcome()).collect()
    }

    /// Who has entered since the last call, and under which numbers.
    fn granted(&mut self) -> Vec<(u64, u64)> {
        let outcomes = self.outcomes();
        let granted = outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Granted { id, fence, .. } => Some((id.0, *fence)),
            _ => None,
        });
        granted.collect()
    }

    fn submit(&mut self, request: fn(LeaseId) -> Request, number: u64) {
        let now = self.peer.now;
        self.peer.queue.submit(now, request(LeaseId(number)));
        self.peer.after(0);
    }

    fn release(&mut self, number: u64) {
        self.submit(Request::Release, number);
    }

    fn calls(&mut self) -> Vec<Sent> {
        self.peer.queue.calls()
    }

    /// Who acquires again: under a fresh token each.
    fn again(&mut self) -> Vec<u64> {
        let calls = self.calls();
        let again = calls.iter().map(|sent| match &sent.call {
            Call::Acquire {
                bearer, position, ..
            } => {
                let id = bearer.terms.id.0;
                assert_eq!(*position, Some(id), "in its old position");
                assert_ne!(bearer.token, self.tokens[&id], "with a fresh token");
                id
            }
            call => panic!("{call:?}"),
        });
        again.collect()
    }
}

#[test]
fn it_is_handed_over_in_order_and_released_once() {
    let mut crowd = Crowd::chained(4);
    for number in 1..=3 {
        crowd.peer.after(1);
        crowd.release(number);
        assert_eq!(crowd.granted(), [(number + 1, FENCE + number)]);
        crowd.peer.silent();
    }
    crowd.release(4);
    let release = crowd.peer.call();
    assert!(matches!(release.call, Call::Release { .. }));
    assert_eq!(token(&release), crowd.tokens[&1], "under the first's name");
    assert!(crowd.granted().is_empty());
    crowd.peer.reply(release, Reply::Ours(true));
    assert_eq!(crowd.outcomes().len(), 1, "the last one is released");
}

// Section: guarantees.md#a-lock-passes-through-a-process-without-the-server
#[test]
fn the_deadline_counts_from_when_the_last_one_joined_and_never_from_the_hand_over() {
    let mut crowd = Crowd::waiting(3);
    crowd.peer.after(100);
    crowd.hand_over(FENCE, 1..=3);
    crowd.peer.after(200);
    crowd.release(1);
    let (mut count, joined) = (0, crowd.joined);
    for outcome in crowd.outcomes() {
        if let Outcome::Granted { since, ttl, .. } = outcome {
            assert_eq!((since, ttl), (joined, Duration::from_secs(3)));
            count += 1;
        }
    }
    assert_eq!(count, 2);
}

// Section: guarantees.md#a-lock-passes-through-a-process-without-the-server
#[test]
fn nobody_enters_a_lease_that_has_ended() {
    for (left, renewed) in [(2_000, true), (60_000, false)] {
        let mut crowd = Crowd::chained(3);
        crowd.peer.now = crowd.peer.now.after(Duration::from_millis(left));
        crowd.release(1);
        assert!(crowd.granted().is_empty(), "it confirms first");
        let renew = crowd.peer.call();
        assert!(matches!(renew.call, Call::Renew { .. }));
        assert_eq!(token(&renew), crowd.tokens[&1]);
        crowd.peer.reply(renew, Reply::Ours(renewed));
        crowd.peer.after(0);
        if renewed {
            assert_eq!(crowd.granted(), [(2, FENCE + 1)]);
        } else {
            assert!(crowd.granted().is_empty());
            assert_eq!(crowd.again(), [2, 3]);
        }
    }
}

#[test]
fn it_is_renewed_in_good_time_and_briefly_while_others_follow() {
    let mut crowd = Crowd::chained(4);
    crowd.peer.now = crowd.peer.now.after(Duration::from_millis(800));
    crowd.release(1);
    assert_eq!(
        crowd.granted(),
        [(2, FENCE + 1)],
        "it does not wait for that"
    );
    let renew = crowd.peer.call();
    assert!(
        matches!(&renew.call, Call::Renew { bearer: it, .. } if it.terms.ttl == Duration::from_secs(3))
    );
    crowd.release(2);
    assert_eq!(crowd.granted(), [(3, FENCE + 2)]);
    crowd.peer.silent();
    crowd.peer.reply(renew, Reply::Ours(true));
    let renewed = crowd.outcomes();
    assert!(matches!(
        renewed[..],
        [Outcome::Renewed { id: LeaseId(3), .. }]
    ));
    crowd.peer.after(800);
    crowd.release(3);
    assert_eq!(crowd.granted(), [(4, FENCE + 3)]);
    crowd.peer.silent();
}

#[test]
fn a_number_that_cannot_grow_ends_nothing() {
    let mut crowd = Crowd::waiting(3);
    crowd.hand_over(u64::MAX, 1..=3);
    assert_eq!(crowd.granted(), [(1, u64::MAX)]);
    crowd.release(1);
    assert_eq!(crowd.granted(), [(2, u64::MAX)]);
}

/// What a renewal tells about its grant.
fn note(renewal: &Sent) -> Option<Note> {
    match &renewal.call {
        Call::Renew { note, .. } => *note,
        other => panic!("{other:?} is no renewal"),
    }
}

// Section: guarantees.md#looking-at-a-lock
#[test]
fn the_note_of_a_grant_does_not_pass_to_the_next_of_the_chain() {
    let mut crowd = Crowd::chained(3);
    crowd.release(1);
    assert_eq!(crowd.granted(), [(2, FENCE + 1)]);
    crowd.peer.silent();
    crowd.peer.after(200);
    crowd.submit(Request::Renew, 2);
    let first = note(&crowd.peer.call()).expect("a note");
    let held = Duration::from_millis(200);
    assert_eq!((first.fence, first.held), (FENCE + 1, held));
    crowd.release(2);
    assert_eq!(crowd.granted(), [(3, FENCE + 2)]);
    let next = note(&crowd.peer.call()).expect("a note of its own");
    assert_eq!((next.fence, next.held), (FENCE + 2, Duration::ZERO));
}

#[test]
fn a_brief_renewal_does_not_cut_a_longer_one_that_is_on_its_way() {
    let mut crowd = Crowd::chained(3);
    crowd.submit(Request::Renew, 1);
    let long = crowd.peer.call();
    crowd.peer.now = crowd.peer.now.after(Duration::from_secs(2));
    crowd.release(1);
    let confirm = crowd.peer.call();
    for renewal in [&long, &confirm] {
        assert!(matches!(&renewal.call, Call::Renew { bearer: it, .. } if it.terms.ttl == TTL));
    }
}

#[test]
fn a_brief_renewal_that_is_sent_again_does_not_cut_a_longer_one() {
    let ttl = |renewal: &Sent| match &renewal.call {
        Call::Renew { bearer, .. } => bearer.terms.ttl,
        other => panic!("{other:?} is no renewal"),
    };
    for is_redirected in [false, true] {
        let mut crowd = Crowd::chained(4);
        crowd.peer.now = crowd.peer.now.after(Duration::from_secs(2));
        crowd.release(1);
        let mut brief = crowd.peer.call();
        assert_eq!(ttl(&brief), CLAIM_TTL);
        crowd.submit(Request::Abandon, 2);
        let long = crowd.peer.call();
        assert_eq!(ttl(&long), TTL);
        let again = if is_redirected {
            // The node that has the lock now answers before the one that had it.
            crowd.peer.reply(long, Reply::Ours(true));
            assert!(crowd.peer.queue.redirected(crowd.peer.now, &mut brief.call));
            brief
        } else {
            crowd.peer.fail(brief, Trouble::NotRun);
            let again = crowd.peer.call();
            crowd.peer.reply(long, Reply::Ours(true));
            again
        };
        assert_eq!(crowd.granted(), [(3, FENCE + 2)]);
        assert_eq!(ttl(&again), TTL, "behind the longer one");
    }
}

#[test]
fn alone_it_is_as_brief_again() {
    let mut crowd = Crowd::chained(3);
    crowd.peer.now = crowd.peer.now.after(Duration::from_secs(2));
    crowd.release(1);
    let brief = crowd.peer.call();
    crowd.peer.fail(brief, Trouble::NotRun);
    let again = crowd.peer.call();
    assert!(matches!(&again.call, Call::Renew { bearer: it, .. } if it.terms.ttl == CLAIM_TTL));
}

#[test]
fn nor_one_that_replicas_have_yet_to_confirm() {
    let mut crowd = Crowd::chained(3);
    crowd.peer.queue.replicas = Some(Replicas::default());
    crowd.submit(Request::Renew, 1);
    let long = crowd.peer.call();
    crowd.peer.reply(long, Reply::Ours(true));
    crowd.peer.now = crowd.peer.now.after(Duration::from_secs(2));
    crowd.release(1);
    let confirm = crowd.peer.call();
    assert!(matches!(&confirm.call, Call::Renew { bearer: it, .. } if it.terms.ttl == TTL));
}

#[test]
fn who_gives_up_is_skipped_and_tells_nobody() {
    let mut crowd = Crowd::chained(4);
    crowd.submit(Request::Abandon, 2);
    crowd.submit(Request::Abandon, 3);
    crowd.peer.silent();
    assert_eq!(crowd.outcomes().len(), 2);
    crowd.release(1);
    assert_eq!(crowd.granted(), [(4, FENCE + 3)]);
}

#[test]
fn who_gives_up_at_the_head_hands_it_over() {
    let mut crowd = Crowd::chained(3);
    crowd.submit(Request::Abandon, 1);
    assert_eq!(crowd.granted(), [(2, FENCE + 1)]);

    // In the middle of its confirmation, too.
    crowd.peer.now = crowd.peer.now.after(Duration::from_secs(2));
    crowd.release(2);
    let first = crowd.peer.call();
    crowd.submit(Request::Abandon, 3);
    let leave = crowd.peer.call();
    assert!(matches!(leave.call, Call::Leave(_)), "nobody follows it");
    crowd.peer.reply(first, Reply::Ours(true));
    assert!(crowd.granted().is_empty());
}

#[test]
fn a_fixed_lease_is_renewed_once_to_its_full_ttl() {
    let mut crowd = Crowd::with(2, |terms| {
        terms.renew = false;
        terms.ttl = Duration::from_secs(2);
    });
    crowd.hand_over(FENCE, 1..=2);
    crowd.release(1);
    for outcome in crowd.outcomes() {
        if let Outcome::Granted {
            id: LeaseId(2),
            ttl,
            ..
        } = outcome
        {
            assert!(ttl < Duration::from_secs(2), "less than it asked for");
            return;
        }
    }
    panic!("not granted");
}

#[test]
fn what_cools_down_or_comes_before_other_keys_says_so() {
    for change in [
        (|it: &mut Terms| it.min_hold = Some(Duration::from_secs(1))) as fn(&mut Terms),
        |it| it.more_keys = true,
    ] {
        let mut peer = Peer::connected();
        let mut terms = Terms::of(LeaseId(1), "k", TTL);
        change(&mut terms);
        peer.queue
            .submit(peer.now, Request::Acquire(Arc::new(terms)));
        let sent = peer.call();
        assert!(matches!(
            sent.call,
            Call::Acquire {
                company: Company::Alone,
                ..
            }
        ));
    }
}
