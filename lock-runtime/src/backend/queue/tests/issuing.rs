//! Holders whose place a ticket takes.

use std::sync::Arc;

use super::{Call, ID, Peer, Reply, Sent, TTL, forbidden, holding};
use crate::backend::{Outcome, Request};
use crate::types::terms::Terms;
use crate::types::ticket_id::TicketId;

const TICKET: TicketId = TicketId(7);

/// Asks for a ticket, and the call for it.
fn issue(peer: &mut Peer) -> Sent {
    let (id, ticket, time) = (ID, TICKET, TTL);
    peer.queue
        .submit(peer.now, Request::Issue { id, ticket, time });
    let sent = peer.call();
    assert!(matches!(sent.call, Call::Issue { .. }), "{sent:?}");
    sent
}

fn release(peer: &mut Peer) -> Sent {
    let sent = peer.call();
    assert!(matches!(sent.call, Call::Release { .. }), "{sent:?}");
    sent
}

fn is_refused(peer: &mut Peer) {
    let outcome = peer.outcome();
    assert!(
        matches!(
            outcome,
            Some(Outcome::Released {
                id: ID,
                result: Err(_)
            })
        ),
        "{outcome:?}"
    );
}

// Section: guarantees.md#tickets
#[test]
fn a_lock_whose_ticket_the_server_refuses_is_released_before_that_is_reported() {
    let (mut peer, _) = holding();
    let sent = issue(&mut peer);
    peer.fail(sent, forbidden());
    let sent = release(&mut peer);
    assert!(peer.outcome().is_none(), "nobody else releases it");
    peer.lose_connection(vec![sent]);
    peer.queue.connected(peer.now);
    let sent = release(&mut peer);
    peer.reply(sent, Reply::Ours(true));
    is_refused(&mut peer);
    peer.after(1_000);
    peer.silent();
}

#[test]
fn a_release_after_it_that_the_server_forbids_too_goes_on_without_the_ticket() {
    let (mut peer, _) = holding();
    let sent = issue(&mut peer);
    peer.fail(sent, forbidden());
    let sent = release(&mut peer);
    peer.fail(sent, forbidden());
    is_refused(&mut peer);
    let taken_back = Terms {
        adopts: Some(Box::new(TICKET)),
        ..Terms::of(ID, "k", TTL)
    };
    peer.queue
        .submit(peer.now, Request::Acquire(Arc::new(taken_back)));
    assert!(matches!(peer.outcome(), Some(Outcome::NoTicket { id: ID })));
    peer.silent();
    peer.after(1_000);
    let sent = release(&mut peer);
    peer.reply(sent, Reply::Ours(true));
    peer.after(2_000);
    peer.silent();
}
