//! Writers that go on as readers.

use super::{Call, ID, Peer, Reply, Sent, TTL, busy, cut, forbidden, holding};
use crate::backend::{Outcome, Request};
use crate::types::kind::Kind;
use crate::types::ticket_id::TicketId;

fn downgrade(peer: &mut Peer) -> Sent {
    peer.queue.submit(peer.now, Request::Downgrade(ID));
    is_asked(peer)
}

fn is_asked(peer: &mut Peer) -> Sent {
    let sent = peer.call();
    assert!(
        matches!(&sent.call, Call::Downgrade(bearer) if bearer.terms.kind == Kind::Read),
        "{sent:?}"
    );
    sent
}

fn is_done(peer: &mut Peer) {
    let outcome = peer.outcome();
    assert!(
        matches!(
            outcome,
            Some(Outcome::Downgraded {
                id: ID,
                result: Ok(())
            })
        ),
        "{outcome:?}"
    );
}

// Section: guarantees.md#from-writer-to-reader
#[test]
fn it_is_asked_for_until_it_is_answered() {
    let (mut peer, _) = holding();
    let sent = downgrade(&mut peer);
    peer.fail(sent, busy());
    assert!(peer.outcome().is_none(), "nobody knows");
    peer.after(100);
    let sent = is_asked(&mut peer);
    peer.lose_connection(vec![sent]);
    assert!(peer.outcome().is_none(), "nobody knows");
    peer.queue.connected(peer.now);
    let sent = is_asked(&mut peer);
    peer.reply(sent, Reply::Ours(true));
    is_done(&mut peer);
    peer.after(1_000);
    peer.silent();
}

#[test]
fn a_server_that_takes_over_is_told_again() {
    let (mut peer, _) = holding();
    let sent = downgrade(&mut peer);
    peer.reply(sent, Reply::Ours(true));
    is_done(&mut peer);
    peer.lose_connection(Vec::new());
    peer.queue.connected(peer.now);
    is_asked(&mut peer);
}

/// A slot may move to a server that lacks it, while all connections stay open.
#[test]
fn a_server_that_gets_the_lock_is_told_again() {
    let (mut peer, _) = holding();
    let sent = downgrade(&mut peer);
    peer.reply(sent, Reply::Ours(true));
    is_done(&mut peer);
    peer.queue.replaced(|_| true);
    peer.queue.resume(peer.now, |_| true);
    is_asked(&mut peer);
}

#[test]
fn a_refusal_is_reported() {
    let (mut peer, _) = holding();
    let sent = downgrade(&mut peer);
    peer.fail(sent, forbidden());
    assert!(matches!(
        peer.outcome(),
        Some(Outcome::Downgraded {
            id: ID,
            result: Err(_)
        })
    ));
}

#[test]
fn a_lock_that_is_not_ours_is_lost() {
    let (mut peer, _) = holding();
    let sent = downgrade(&mut peer);
    peer.reply(sent, Reply::Ours(false));
    assert!(matches!(peer.outcome(), Some(Outcome::NotHeld { id: ID })));
}

// Section: guarantees.md#from-writer-to-reader
#[test]
fn a_renewal_of_the_writer_that_comes_late_loses_nothing() {
    for lost in [Ok(Reply::Ours(false)), Err(cut())] {
        let (mut peer, _) = holding();
        peer.queue.submit(peer.now, Request::Renew(ID));
        let renewal = peer.call();
        let sent = downgrade(&mut peer);
        peer.reply(sent, Reply::Ours(true));
        is_done(&mut peer);
        peer.queue.replied(peer.now, renewal, lost);
        assert!(peer.outcome().is_none(), "the reader is there");
        let renewal = peer.call();
        assert!(
            matches!(&renewal.call, Call::Renew { bearer, .. } if bearer.terms.kind == Kind::Read)
        );
        peer.reply(renewal, Reply::Ours(true));
        assert!(matches!(
            peer.outcome(),
            Some(Outcome::Renewed { id: ID, .. })
        ));
    }
}

#[test]
fn a_release_waits_for_no_answer() {
    let (mut peer, _) = holding();
    let sent = downgrade(&mut peer);
    peer.queue.submit(peer.now, Request::Release(ID));
    let release = peer.call();
    assert!(matches!(release.call, Call::Release { .. }));
    peer.reply(sent, Reply::Ours(true));
    assert!(peer.outcome().is_none(), "nobody waits for it");
    peer.reply(release, Reply::Ours(true));
    assert!(matches!(
        peer.outcome(),
        Some(Outcome::Released {
            id: ID,
            result: Ok(true)
        })
    ));
}

/// A reader that was a writer, whose server may have forgotten the downgrade, and which becomes a ticket.
fn issuing_after_a_failover() -> Peer {
    let (mut peer, _) = holding();
    let sent = downgrade(&mut peer);
    peer.reply(sent, Reply::Ours(true));
    is_done(&mut peer);
    peer.lose_connection(Vec::new());
    let (id, ticket, time) = (ID, TicketId(7), TTL);
    peer.queue
        .submit(peer.now, Request::Issue { id, ticket, time });
    peer.silent();
    peer.queue.connected(peer.now);
    peer
}

fn ticket_of_a_reader(peer: &mut Peer) -> Sent {
    let sent = peer.call();
    assert!(
        matches!(&sent.call, Call::Issue { bearer, .. } if bearer.terms.kind == Kind::Read),
        "{sent:?}"
    );
    sent
}

// Section: guarantees.md#tickets
#[test]
fn no_ticket_takes_the_place_of_a_reader_before_the_server_knows_the_reader() {
    let mut peer = issuing_after_a_failover();
    let sent = is_asked(&mut peer);
    peer.fail(sent, busy());
    peer.after(100);
    let sent = is_asked(&mut peer);
    peer.reply(sent, Reply::Ours(true));
    assert!(peer.outcome().is_none(), "there is no ticket yet");
    let sent = ticket_of_a_reader(&mut peer);
    // The answer is lost: the server has written the ticket, and knows no holder any more.
    peer.lose_connection(vec![sent]);
    peer.queue.connected(peer.now);
    let sent = is_asked(&mut peer);
    peer.reply(sent, Reply::Ours(false));
    assert!(peer.outcome().is_none(), "it may be there");
    let sent = ticket_of_a_reader(&mut peer);
    peer.reply(sent, Reply::Ours(true));
    assert!(matches!(
        peer.outcome(),
        Some(Outcome::Released {
            id: ID,
            result: Ok(true)
        })
    ));
    peer.after(1_000);
    peer.silent();
}

#[test]
fn a_lock_whose_downgrade_the_server_refuses_then_is_released() {
    let mut peer = issuing_after_a_failover();
    let sent = is_asked(&mut peer);
    peer.fail(sent, forbidden());
    let release = peer.call();
    assert!(matches!(release.call, Call::Release { .. }), "{release:?}");
    peer.reply(release, Reply::Ours(true));
    assert!(matches!(
        peer.outcome(),
        Some(Outcome::Released {
            id: ID,
            result: Err(_)
        })
    ));
}
