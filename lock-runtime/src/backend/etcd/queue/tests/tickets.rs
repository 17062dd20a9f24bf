//! Tickets that are issued and adopted, and what of it has no answer.

use super::*;
use crate::types::ticket_id::TicketId;

const TICKET: TicketId = TicketId(7);
/// The lease of the ticket.
const OWN: i64 = 78;

/// Asks for a ticket, whose lease is granted; the call that writes it.
fn issue(story: &mut Story) -> Sent<Recipient> {
    let (id, ticket) = (LeaseId(0), TICKET);
    let time = Duration::from_millis(4_500);
    story.submit(Request::Issue { id, ticket, time });
    let grants = story.claim_call(Step::Lease);
    assert!(matches!(&grants.call, Call::Grant(asks) if asks.ttl == 5));
    story.answer(&grants, Ok(lease(1, OWN, 5)));
    story.claim_call(Step::Issue)
}

/// Asks for the lock of the ticket, whose entry was written at revision 20; the call that adopts it.
fn adopt(story: &mut Story) -> Sent<Recipient> {
    story.acquire(1, |terms| terms.adopts = Some(Box::new(TICKET)));
    let seeks = story.claim_call(Step::Seek);
    let named = KeyValue {
        key: Vec::new(),
        value: kv(Kind::Exclusive, 5).key,
        create_revision: 20,
        mod_revision: 20,
    };
    story.answer(&seeks, Ok(range(21, vec![named])));
    story.claim_call(Step::Adopt)
}

/// The entry of the ticket, as a call has written it.
fn entry_as(value: Vec<u8>, modified: i64) -> KeyValue {
    KeyValue {
        value,
        mod_revision: modified,
        ..kv(Kind::Exclusive, 5)
    }
}

/// Whether a call compares the revision at which a key was written last with this one.
fn compares(sent: &Sent<Recipient>, modified: i64) -> bool {
    format!("{:?}", sent.call).contains(&format!("ModRevision({modified})"))
}

fn no_ticket(story: &mut Story) {
    let outcome = story.outcome();
    assert!(
        matches!(outcome, Some(Outcome::NoTicket { .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_ticket_keeps_the_entry_on_a_lease_of_its_own() {
    let mut story = Story::with_session(1);
    let issues = issue(&mut story);
    let entry = written(&issues.call, 3);
    assert!(entry::is_of_ticket(&entry.value, TICKET));
    assert!(!entry::is_of_ticket(&entry.value, TicketId(8)));
    assert_eq!(issues.call.lease(), Some(OWN));
    assert!(compares(&issues, 2));
    story.answer(&issues, Ok(txn(3, true, vec![])));
    assert!(story.released(0));
    assert_eq!(story.queue.claims.len(), 0);
}

#[test]
fn a_ticket_whose_answer_is_lost_is_found() {
    let mut story = Story::with_session(1);
    let issues = issue(&mut story);
    let entry = written(&issues.call, 2);
    story.answer(&issues, Err(unknown()));
    story.pass(Duration::from_millis(100));
    let again = story.claim_call(Step::Issue);
    story.answer(&again, Ok(txn(4, false, vec![read(4, vec![entry])])));
    assert!(story.released(0));
}

#[test]
fn a_ticket_is_written_over_what_others_have_written_to_the_holder() {
    let mut story = Story::with_session(1);
    story.acquire(0, |terms| terms.key = LockKey::of("other"));
    let sent = story.claim_call(Step::Enter);
    let mut own = written(&sent.call, 5);
    story.answer(&sent, Ok(entered(5, vec![])));
    story.granted(0);
    let issues = issue(&mut story);
    assert!(compares(&issues, 5));
    own.mod_revision = 9;
    story.answer(&issues, Ok(txn(9, false, vec![read(9, vec![own])])));
    let again = story.claim_call(Step::Issue);
    assert!(compares(&again, 9));
    story.answer(&again, Ok(txn(10, false, vec![])));
    assert!(!story.released(0), "it is gone");
}

#[test]
fn a_ticket_that_may_have_been_written_is_taken_back_by_deleting_the_entry() {
    let mut story = Story::with_session(1);
    let issues = issue(&mut story);
    story.answer(&issues, Err(unknown()));
    story.pass(TTL);
    let failed = story.outcome();
    assert!(
        matches!(failed, Some(Outcome::Released { result: Err(_), .. })),
        "{failed:?}"
    );
    story.acquire(0, |terms| terms.adopts = Some(Box::new(TICKET)));
    story.collect();
    story
        .calls
        .retain(|sent| !matches!(sent.to, Recipient::Claim(_, Step::Issue)));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(1)));
    no_ticket(&mut story);
    assert_eq!(story.queue.claims.len(), 0);
}

#[test]
fn an_adopter_has_the_revision_of_its_adoption_as_fence() {
    let mut story = Story::with_session(1);
    let adopts = adopt(&mut story);
    assert!(compares(&adopts, 20) && compares(&adopts, 1));
    assert_eq!(adopts.call.lease(), Some(LEASE));
    let found = entry_as(Vec::new(), 20);
    story.answer(&adopts, Ok(txn(22, true, vec![read(22, vec![found])])));
    assert_eq!(story.granted(1).0, 22);
    story.submit(Request::Release(LeaseId(1)));
    let delete = story.claim_call(Step::Delete);
    let text = format!("{:?}", delete.call);
    assert!(text.contains("CreateRevision(5)"), "{text}");
    story.answer(&delete, Ok(txn(23, true, vec![])));
    story.released(1);
}

#[test]
fn an_entry_that_was_written_since_the_ticket_is_not_adopted() {
    let mut story = Story::with_session(1);
    let adopts = adopt(&mut story);
    let others = entry_as(kv(Kind::Exclusive, 5).value, 22);
    story.answer(&adopts, Ok(txn(22, false, vec![read(22, vec![others])])));
    no_ticket(&mut story);
}

#[test]
fn an_adoption_without_an_answer_is_repeated_once_no_late_call_can_succeed() {
    let mut story = Story::with_session(1);
    let adopts = adopt(&mut story);
    let own = written(&adopts.call, 22).value;
    story.answer(&adopts, Err(unknown()));
    story.pass(Duration::from_millis(100));
    assert!(!story.sends(Step::Adopt), "the first one may succeed yet");
    let mark = story.mark();
    story.answer(&mark, Ok(txn(23, true, vec![])));
    let again = story.claim_call(Step::Adopt);
    assert!(compares(&again, 23));
    let own = entry_as(own, 22);
    // A late call has written the marker once more.
    let found = vec![own.clone(), marker(24)];
    story.answer(&again, Ok(txn(24, false, vec![read(24, found)])));
    let again = story.claim_call(Step::Adopt);
    assert!(compares(&again, 22) && compares(&again, 24));
    story.answer(&again, Ok(txn(25, true, vec![read(25, vec![own])])));
    story.outcome();
    assert_eq!(story.granted(1).0, 25);
}

#[test]
fn an_adoption_that_is_refused_for_good_deletes_what_it_may_have_adopted() {
    let mut story = Story::with_session(1);
    let adopts = adopt(&mut story);
    let own = written(&adopts.call, 22).value;
    story.answer(&adopts, Err(unknown()));
    story.outcome();
    let mark = story.mark();
    story.answer(&mark, Ok(txn(23, true, vec![])));
    story.pass(Duration::from_millis(100));
    let again = story.claim_call(Step::Adopt);
    story.answer(&again, Err(Trouble::Never(cause("no right"))));
    assert!(matches!(story.outcome(), Some(Outcome::Failed { .. })));
    let looks = story.claim_call(Step::Seek);
    story.answer(&looks, Ok(range(24, vec![entry_as(own, 22)])));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(txn(25, true, vec![])));
    assert!(story.outcome().is_none());
}

#[test]
fn an_adopter_whose_lease_ends_before_it_has_heard_of_its_adoption_is_not_refused() {
    for heard in [true, false] {
        let mut story = Story::with_session(1);
        let adopts = adopt(&mut story);
        if heard {
            let now = story.now;
            let queue = &mut story.queue;
            queue.with_session(now, TTL, |session, _| session.lost(now));
            let found = read(22, vec![entry_as(Vec::new(), 20)]);
            story.answer(&adopts, Ok(txn(22, true, vec![found])));
        } else {
            story.answer(&adopts, Err(unknown()));
            let mark = story.mark();
            story.answer(&mark, Err(no_lease()));
        }
        // The next lease.
        let grant = story.session_call(SessionStep::Grant);
        story.answer(&grant, Ok(lease(1, LEASE + 10, 10)));
        let mark = story.mark();
        story.answer(&mark, Ok(txn(29, true, vec![])));
        let again = story.claim_call(Step::Adopt);
        story.answer(&again, Ok(txn(30, false, vec![])));
        let ends = |it: &Outcome| it.ended() == Some(LeaseId(1));
        let outcome = std::iter::from_fn(|| story.outcome()).find(ends);
        assert!(
            matches!(outcome, Some(Outcome::Failed { .. })),
            "{outcome:?}"
        );
    }
}

#[test]
fn an_adopter_that_has_gone_away_deletes_what_it_has_adopted() {
    for adopted in [true, false] {
        let mut story = Story::with_session(1);
        let adopts = adopt(&mut story);
        let own = written(&adopts.call, 22).value;
        story.answer(&adopts, Err(unknown()));
        story.outcome();
        story.submit(Request::Abandon(LeaseId(1)));
        let mark = story.mark();
        story.answer(&mark, Ok(txn(23, true, vec![])));
        let looks = story.claim_call(Step::Seek);
        let ticket = entry::value(TTL, "=00000000000000000000000000000007 1@host");
        let found = entry_as(if adopted { own } else { ticket }, 22);
        story.answer(&looks, Ok(range(23, vec![found])));
        if adopted {
            let delete = story.claim_call(Step::Delete);
            story.answer(&delete, Ok(txn(24, true, vec![])));
        }
        assert!(!story.released(1) && !story.sends(Step::Delete));
    }
}
