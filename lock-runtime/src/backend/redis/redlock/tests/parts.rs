//! Promise: what one server has of an acquisition is not left there once it can be reached.

use std::sync::Arc;

use super::{ID, TTL, at};
use crate::backend::Outcome;
use crate::backend::queue::Rules;
use crate::backend::queue::order::Order;
use crate::backend::queue::protocol::ahead::Ahead;
use crate::backend::queue::protocol::message::Message;
use crate::backend::queue::protocol::reply::Standing;
use crate::backend::queue::protocol::trouble::{ServerSaid, Trouble};
use crate::backend::redis::protocol::call::{Call, Queue, Sent};
use crate::backend::redis::protocol::reply::Reply;
use crate::backend::token::{Token, Tokens};
use crate::types::crowd::Crowd;
use crate::types::terms::Terms;

const POSITION: u64 = 7;

/// A server that has granted its part under this token.
fn granted() -> (Queue, Token) {
    let mut queue = Queue::new(Rules::default());
    queue.connected(at(0));
    let token = Tokens::default().next().expect("a token");
    let order = Order::Acquire {
        terms: Terms::of(ID, "k", TTL).into(),
        token,
        position: POSITION,
    };
    queue.obey(at(0), order);
    let sent = queue.calls().pop().expect("a call");
    queue.replied(at(1), sent, Ok(Reply::Granted { fence: 3 }));
    let outcome = queue.next_outcome();
    assert!(matches!(outcome, Some(Outcome::Granted { .. })));
    (queue, token)
}

fn give_way(queue: &mut Queue) {
    let (id, position) = (ID, POSITION);
    queue.obey(at(2), Order::Yield { id, position });
}

fn cut() -> Trouble {
    Trouble::Unknown(Arc::new(ServerSaid("cut".into())))
}

/// Whether a call is about what this token has.
fn concerns(sent: &Sent, token: Token) -> bool {
    match &sent.call {
        Call::Ask(bearers) => bearers.iter().any(|it| it.token == token),
        Call::Release { bearer, .. } | Call::Acquire { bearer, .. } => bearer.token == token,
        _ => false,
    }
}

#[test]
fn what_cannot_be_yielded_now_is_asked_for_later() {
    let (mut queue, token) = granted();
    queue.disconnected(cut());
    give_way(&mut queue);
    queue.connected(at(3));
    queue.tick(at(3));
    let ask = queue.calls().pop().expect("a call");
    assert!(concerns(&ask, token), "{ask:?}");
    let answer = Reply::Asked {
        ahead: Ahead {
            owner: "another".into(),
            left: Some(TTL),
            crowd: Crowd::default(),
            before: Some(0),
        },
        standings: vec![Standing::Gone],
    };
    queue.replied(at(4), ask, Ok(answer));
    let again = queue.calls().pop().expect("a call");
    let position = match again.call {
        Call::Acquire { position, .. } => position,
        other => panic!("{other:?}"),
    };
    assert_eq!(position, Some(POSITION));
}

#[test]
fn a_yield_that_was_cut_off_is_sent_again() {
    let (mut queue, token) = granted();
    give_way(&mut queue);
    let both = queue.calls();
    assert!(both.iter().any(|it| concerns(it, token)), "{both:?}");
    for sent in both {
        queue.replied(at(3), sent, Err(cut()));
    }
    queue.disconnected(cut());
    queue.connected(at(4));
    queue.tick(at(4));
    let calls = queue.calls();
    assert!(calls.iter().any(|it| concerns(it, token)), "{calls:?}");
}

/// The fence that a part tells of; zero for none.
fn told(queue: &mut Queue, token: Token) -> u64 {
    let (channel, tokens) = ("channel".into(), vec![token]);
    queue.heard(at(3), Message::Asked { channel, tokens });
    match queue.calls().pop().map(|it| it.call) {
        Some(Call::Report { fence, .. }) => fence,
        other => panic!("{other:?}"),
    }
}

// Section: guarantees.md#elections
#[test]
fn a_part_tells_of_no_fence_before_a_majority_has_granted_the_lock() {
    let (mut queue, token) = granted();
    assert_eq!(told(&mut queue, token), 0);
    queue.obey(at(3), Order::Number { id: ID, fence: 9 });
    assert_eq!(told(&mut queue, token), 9);
}
