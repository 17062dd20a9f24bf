//! Releases, cooldowns, and locks that are revoked.

use super::*;

#[test]
fn a_release_whose_answer_is_lost_is_no_loss() {
    let mut story = Story::with_session(1);
    story.submit(Request::Release(LeaseId(0)));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Err(unknown()));
    story.pass(Duration::from_millis(100));
    let again = story.claim_call(Step::Delete);
    story.answer(&again, Ok(deleted(0)));
    assert!(story.released(0));
}

#[test]
fn a_release_of_an_entry_that_was_gone_says_so() {
    let mut story = Story::with_session(1);
    story.submit(Request::Release(LeaseId(0)));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(0)));
    assert!(!story.released(0));
}

#[test]
fn the_driver_is_notified_in_time_and_the_entry_is_deleted_all_the_same() {
    let mut story = Story::with_session(1);
    story.queue.disconnected(story.now, &unknown());
    story.submit(Request::Release(LeaseId(0)));
    story.pass(TTL);
    let outcome = story.outcome();
    assert!(
        matches!(outcome, Some(Outcome::Released { result: Err(_), .. })),
        "{outcome:?}"
    );
    story.queue.connected(story.now);
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(1)));
    assert!(story.outcome().is_none());
    assert_eq!(story.queue.claims.len(), 0);
}

#[test]
fn an_entry_that_is_deleted_by_others_is_a_lost_lock() {
    let mut story = Story::with_session(1);
    let own = story.watch(1);
    story.queue.seen(story.now, own.id, &Seen::Deleted(9));
    assert!(matches!(story.outcome(), Some(Outcome::NotHeld { .. })));
    story.submit(Request::Release(LeaseId(0)));
    assert!(!story.released(0));
}

#[test]
fn a_cooldown_has_a_lease_of_its_own_until_it_ends() {
    let mut story = Story::new(1);
    story.acquire(0, |terms| {
        terms.ttl = Duration::from_secs(2);
        terms.min_hold = Some(Duration::from_millis(4_500));
    });
    story.open_session();
    story.enter(Ok(entered(2, vec![])));
    story.granted(0);
    story.pass(Duration::from_secs(1));
    story.submit(Request::Release(LeaseId(0)));
    let cooldown = story.claim_call(Step::Lease);
    assert!(matches!(&cooldown.call, Call::Grant(asks) if asks.ttl == 4));
    story.answer(&cooldown, Ok(lease(1, 78, 4)));
    let moves = story.claim_call(Step::Move);
    let text = format!("{:?}", moves.call);
    assert!(text.contains("lease: 78"), "{text}");
    story.answer(&moves, Ok(txn(3, true, vec![])));
    assert!(
        story.released(0),
        "the driver does not wait for the cooldown"
    );
    // Its release would be late by now.
    story.pass(Duration::from_secs(2));
    story.pass(Duration::from_millis(1_400));
    assert!(!story.sends(Step::Delete));
    story.pass(Duration::from_millis(100));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(1)));
    assert!(story.outcome().is_none());
}

#[test]
fn a_cooldown_that_is_refused_until_its_end_keeps_the_lock_no_longer() {
    for granted in [false, true] {
        let mut story = Story::new(1);
        story.acquire(0, |terms| terms.min_hold = Some(Duration::from_secs(1)));
        story.open_session();
        story.enter(Ok(entered(2, vec![])));
        story.granted(0);
        story.submit(Request::Release(LeaseId(0)));
        let full = || Trouble::said("no space");
        let mut refused = story.claim_call(Step::Lease);
        if granted {
            story.answer(&refused, Ok(lease(1, 78, 2)));
            refused = story.claim_call(Step::Move);
        }
        story.answer(&refused, Err(full()));
        for _ in 0..9 {
            story.pass(Duration::from_millis(100));
            let step = if granted { Step::Move } else { Step::Lease };
            let again = story.claim_call(step);
            story.answer(&again, Err(full()));
        }
        story.pass(Duration::from_millis(100));
        let delete = story.claim_call(Step::Delete);
        story.answer(&delete, Ok(deleted(1)));
        assert!(story.released(0));
        // Its calls are no longer awaited.
        story.acquire(1, |_| {});
        assert!(story.sends(Step::Enter));
    }
}

#[test]
fn those_that_wait_for_a_lease_of_notes_hear_why_there_is_none() {
    let mut story = Story::with_history(1, 3);
    story.acquire(0, |_| {});
    story.open_session();
    story.pass(Duration::ZERO);
    let asks = story.find(|it| matches!(it, Recipient::Notes));
    let asks = asks.expect("a lease for the notes");
    story.answer(&asks, Err(Trouble::NotNow(cause("no room"))));
    let outcome = story.outcome();
    assert!(
        matches!(outcome, Some(Outcome::Trouble { id: LeaseId(0), .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_lease_of_notes_that_was_revoked_ends_no_lock() {
    let mut story = Story::with_history(1, 3);
    let notes = |story: &mut Story, id| {
        let asks = story.find(|it| matches!(it, Recipient::Notes));
        let asks = asks.expect("a lease for the notes");
        story.answer(&asks, Ok(lease(1, id, 1_000_000)));
    };
    story.acquire(0, |_| {});
    story.open_session();
    story.pass(Duration::ZERO);
    notes(&mut story, 90);
    story.enter(Ok(entered(2, vec![])));
    story.outcome();
    story.acquire(1, |terms| terms.key = LockKey::of("other"));
    story.enter(Err(no_lease()));
    assert!(story.outcome().is_none(), "the other lock is still held");
    story.pass(Duration::ZERO);
    notes(&mut story, 91);
    let again = story.claim_call(Step::Enter);
    let text = format!("{:?}", again.call);
    assert!(text.contains("lease: 91") && text.contains(&format!("lease: {LEASE}")));
}

#[test]
fn a_lease_that_has_ended_before_the_entry_was_made_is_made_again() {
    let mut story = Story::with_session(1);
    story.submit(Request::Release(LeaseId(0)));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(1)));
    story.released(0);
    story.pass(TTL * 2);
    story.acquire(1, |_| {});
    story.enter(Err(no_lease()));
    story.open_session();
    story.enter(Ok(entered(9, vec![])));
    assert_eq!(story.granted(1).0, 9);
}
