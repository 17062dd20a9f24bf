//! The lease that locks share: when it counts as renewed, and when as lost.

use super::*;

const A_THIRD: Duration = Duration::from_millis(3_400);

#[test]
fn a_lease_is_made_before_the_first_entry_and_counts_from_its_request() {
    let mut story = Story::new(1);
    let asked = story.now;
    story.acquire(1, |terms| terms.ttl = Duration::from_millis(1_500));
    story.pass(Duration::from_millis(30));
    let grant = story.session_call(SessionStep::Grant);
    assert!(matches!(&grant.call, Call::Grant(asks) if asks.ttl == 2));
    assert!(!story.sends(Step::Enter));
    story.answer(&grant, Ok(lease(1, LEASE, 5)));
    let mark = story.mark();
    story.answer(&mark, Ok(txn(1, true, vec![])));
    story.enter(Ok(entered(2, vec![])));
    match story.outcome() {
        Some(Outcome::Granted {
            fence: 2,
            since,
            ttl,
            ..
        }) => assert_eq!((since, ttl), (asked, Duration::from_secs(5))),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_marker_that_is_forbidden_ends_acquisitions_at_once() {
    let mut story = Story::new(1);
    story.acquire(1, |_| {});
    story.pass(Duration::from_millis(30));
    let grant = story.session_call(SessionStep::Grant);
    story.answer(&grant, Ok(lease(1, LEASE, 5)));
    let mark = story.mark();
    story.answer(&mark, Err(Trouble::Never(cause("no right"))));
    let outcome = story.outcome();
    assert!(
        matches!(outcome, Some(Outcome::Failed { id: LeaseId(1), .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_marker_that_is_forbidden_is_written_again_once_somebody_needs_it() {
    let mut story = Story::new(1);
    story.acquire(1, |_| {});
    let grant = story.session_call(SessionStep::Grant);
    story.answer(&grant, Ok(lease(1, LEASE, 10)));
    let mark = story.mark();
    story.answer(&mark, Err(Trouble::Never(cause("no right"))));
    story.outcome();
    assert_eq!(story.queue.next_wakeup(), None);
    story.pass(Duration::from_secs(2));
    story.collect();
    assert!(story.calls.is_empty(), "{:?}", story.calls);
    story.acquire(2, |_| {});
    story.pass(Duration::ZERO);
    story.mark();
}

#[test]
fn a_lease_is_not_kept_alive_for_an_entry_that_must_not_be_deleted() {
    let mut story = Story::with_session(1);
    story.submit(Request::Release(LeaseId(0)));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Err(Trouble::Never(cause("no right"))));
    let outcome = story.outcome();
    assert!(
        matches!(outcome, Some(Outcome::Released { result: Err(_), .. })),
        "{outcome:?}"
    );
    for _ in 0..20 {
        story.pass(TTL / 10);
        let is_beat = |it: &Recipient| matches!(it, Recipient::Session(_, SessionStep::Alive(_)));
        assert!(story.find(is_beat).is_none());
    }
    // With the right again, it is deleted.
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(0)));
    assert_eq!(story.queue.claims.len(), 0);
    story.acquire(1, |_| {});
    story.pass(Duration::ZERO);
    story.beat();
}

#[test]
fn whoever_is_behind_an_acquisition_that_is_forbidden_goes_on() {
    let mut story = Story::with_session(1);
    story.acquire(1, |terms| terms.ttl = Duration::from_secs(60));
    story.acquire(2, |_| {});
    story.pass(Duration::from_millis(30));
    let grant = story.session_call(SessionStep::Grant);
    story.answer(&grant, Ok(lease(1, LEASE + 1, 60)));
    assert!(!story.sends(Step::Enter));
    let mark = story.mark();
    story.answer(&mark, Err(Trouble::Never(cause("no right"))));
    assert!(story.sends(Step::Enter), "that of the second");
}

#[test]
fn a_majority_and_the_marker_renew_all_locks_of_a_ttl_from_the_keep_alive_on() {
    let mut story = Story::with_session(2);
    story.acquire(1, |terms| terms.key = LockKey::of("other"));
    story.enter(Ok(entered(3, vec![])));
    story.granted(1);
    story.pass(A_THIRD);
    let sent = story.now;
    let beat = story.beat();
    story.submit(Request::Renew(LeaseId(0)));
    story.submit(Request::Renew(LeaseId(1)));
    story.pass(Duration::from_millis(50));
    // One member, twice, is no majority.
    story.alive(&beat, 1, 10);
    story.alive(&beat, 1, 10);
    assert!(story.look().is_none() && story.outcome().is_none());
    story.alive(&beat, 2, 10);
    assert!(story.outcome().is_none(), "the marker was not looked at");
    let look = story.look().expect("a look at the marker");
    story.answer(&look, Ok(range(5, vec![kv(Kind::Read, 1)])));
    for id in 0..2 {
        let renewed = story.outcome();
        assert!(
            matches!(renewed, Some(Outcome::Renewed { id: LeaseId(it), since, .. }) if it == id && since == sent),
            "{renewed:?}"
        );
    }
    // A lock that asks soon after that is renewed by the same confirmation.
    story.submit(Request::Renew(LeaseId(1)));
    let renewed = story.outcome();
    assert!(matches!(renewed, Some(Outcome::Renewed { since, .. }) if since == sent));
    assert!(story.calls.is_empty(), "{:?}", story.calls);
}

#[test]
fn one_member_that_knows_no_lease_may_know_less_than_the_others() {
    let mut story = Story::with_session(2);
    story.pass(A_THIRD);
    let beat = story.beat();
    story.submit(Request::Renew(LeaseId(0)));
    story.alive(&beat, 1, 0);
    let look = story.look().expect("a look at the marker");
    story.answer(&look, Ok(range(5, vec![kv(Kind::Read, 1)])));
    assert!(story.outcome().is_none(), "no majority has answered");
    story.alive(&beat, 2, 10);
    story.alive(&beat, 3, 10);
    let look = story.look().expect("another look, after the majority");
    story.answer(&look, Ok(range(5, vec![kv(Kind::Read, 1)])));
    assert!(matches!(story.outcome(), Some(Outcome::Renewed { .. })));
}

#[test]
fn a_lease_whose_marker_is_gone_loses_its_locks_and_waiters_begin_anew() {
    let mut story = Story::with_session(1);
    story.acquire(1, |_| {});
    let first = story.enter(Ok(entered(4, vec![kv(Kind::Exclusive, 2)])));
    story.waits(1);
    story.pass(A_THIRD);
    let beat = story.beat();
    story.alive(&beat, 1, 10);
    let look = story.look().expect("a look at the marker");
    story.answer(&look, Ok(range(5, vec![])));
    assert!(matches!(
        story.outcome(),
        Some(Outcome::NotHeld { id: LeaseId(0) })
    ));
    story.open_session();
    let second = story.enter(Ok(entered(9, vec![])));
    assert_ne!(first, second, "it belongs to the other lease");
    assert_eq!(story.granted(1).0, 9);
}

#[test]
fn a_keep_alive_that_is_not_confirmed_in_time_fails_and_is_sent_again() {
    let mut story = Story::with_session(2);
    story.pass(A_THIRD);
    let beat = story.beat();
    story.submit(Request::Renew(LeaseId(0)));
    story.alive(&beat, 1, 10);
    story.pass(Duration::from_secs(2));
    let failed = story.outcome();
    assert!(
        matches!(failed, Some(Outcome::RenewFailed { .. })),
        "{failed:?}"
    );
    story.alive(&beat, 2, 10);
    assert!(story.look().is_none(), "it comes too late");
    story.pass(TTL / 20);
    story.beat();
}

#[test]
fn another_member_is_sent_a_keep_alive_that_was_cut_off() {
    let mut story = Story::with_session(1);
    story.pass(A_THIRD);
    let first = story.beat();
    story.submit(Request::Renew(LeaseId(0)));
    story.answer(&first, Err(unknown()));
    story.pass(Duration::from_millis(1));
    story.queue.connected(story.now);
    let second = story.beat();
    story.alive(&second, 2, 10);
    let look = story.look().expect("a look at the marker");
    story.answer(&look, Ok(range(5, vec![kv(Kind::Read, 1)])));
    assert!(matches!(story.outcome(), Some(Outcome::Renewed { since, .. }) if since == story.now));
}

#[test]
fn nothing_is_kept_alive_that_nobody_needs() {
    let mut story = Story::with_session(1);
    story.submit(Request::Release(LeaseId(0)));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(1)));
    assert!(story.released(0));
    assert_eq!(story.queue.next_wakeup(), None);
}

#[test]
fn members_that_do_not_vote_confirm_nothing() {
    let mut story = Story::with_session(1);
    // A learner, or a member that was removed and does not know it.
    story.queue.needs(Quorum {
        needed: 2,
        voters: vec![1, 2, 3],
        too_few: None,
    });
    story.pass(A_THIRD);
    let beat = story.beat();
    story.alive(&beat, 1, 10);
    story.alive(&beat, 4, 10);
    assert!(story.look().is_none());
    story.alive(&beat, 3, 10);
    assert!(story.look().is_some());
}

#[test]
fn a_lease_of_a_history_that_is_no_more_is_given_up() {
    let mut story = Story::with_session(1);
    for (revision, goes_on) in [(50, true), (50, true), (49, false)] {
        story.pass(A_THIRD);
        let beat = story.beat();
        story.alive(&beat, 1, 10);
        let look = story.look().expect("a look at the marker");
        story.answer(&look, Ok(range(revision, vec![kv(Kind::Read, 1)])));
        let lost = matches!(story.outcome(), Some(Outcome::NotHeld { .. }));
        assert_eq!(lost, !goes_on);
    }
}

#[test]
fn a_marker_that_is_older_than_it_was_is_written_again() {
    let mut story = Story::with_session(1);
    story.acquire(1, |terms| terms.key = LockKey::of("other"));
    story.enter(Err(unknown()));
    story.outcome();
    let mark = story.mark();
    story.answer(&mark, Ok(txn(50, true, vec![])));
    let enter = story.claim_call(Step::Enter);
    let marker = KeyValue {
        key: crate::backend::etcd::protocol::keys::Keys::new("lock").marker(LEASE),
        ..kv(Kind::Read, 1)
    };
    let refused = txn(20, false, vec![read(20, vec![marker])]);
    story.answer(&enter, Ok(refused));
    assert!(!story.sends(Step::Enter), "it would be refused again");
    story.pass(Duration::ZERO);
    let mark = story.mark();
    story.answer(&mark, Ok(txn(21, true, vec![])));
    story.enter(Ok(entered(22, vec![])));
    assert_eq!(story.granted(1).0, 22);
}

/// Loses the lease, and opens another one whose marker stands at revision 20.
fn another_lease(story: &mut Story) {
    let beat = story.beat();
    story.queue.answered(story.now, &beat, Err(no_lease()));
    let look = story.look().expect("a look at the marker");
    story.answer(&look, Ok(range(10, vec![])));
    assert!(matches!(story.outcome(), Some(Outcome::NotHeld { .. })));
    story.pass(Duration::ZERO);
    let grant = story.session_call(SessionStep::Grant);
    story.answer(&grant, Ok(lease(1, LEASE + 1, 10)));
    let mark = story.mark();
    story.answer(&mark, Ok(txn(20, true, vec![])));
}

#[test]
fn an_entry_on_a_lease_that_has_ended_is_not_granted_on_another_one() {
    for made in [true, false] {
        let mut story = Story::with_session(1);
        story.pass(A_THIRD);
        story.acquire(1, |terms| terms.key = LockKey::of("other"));
        let late = story.claim_call(Step::Enter);
        another_lease(&mut story);
        let answer = if made {
            entered(9, vec![])
        } else {
            txn(11, false, vec![])
        };
        story.answer(&late, Ok(answer));
        assert!(story.outcome().is_none(), "its entry is gone");
        let key = story.enter(Ok(entered(21, vec![])));
        assert_ne!(key, put(&late.call));
        assert_eq!(story.granted(1).0, 21);
    }
}

#[test]
fn late_answers_about_an_earlier_lease_say_nothing_about_the_next_one() {
    let mut story = Story::with_session(1);
    story.acquire(1, |terms| terms.key = LockKey::of("other"));
    story.enter(Err(unknown()));
    let late_mark = story.mark();
    story.pass(A_THIRD);
    let beat = story.beat();
    story.alive(&beat, 1, 0);
    let late_look = story.look().expect("a look at the marker");
    let now = story.now;
    story
        .queue
        .with_session(now, TTL, |session, _| session.lost(now));
    let grant = story.session_call(SessionStep::Grant);
    story.answer(&grant, Ok(lease(1, LEASE + 1, 10)));
    let mark = story.mark();
    story.answer(&late_look, Ok(range(10, vec![])));
    story.answer(&late_mark, Ok(txn(11, true, vec![])));
    let ends = |it: &Recipient| matches!(it, Recipient::Session(_, SessionStep::Grant));
    assert!(story.find(ends).is_none(), "the next lease has not ended");
    assert!(!story.sends(Step::Enter), "its marker is not written yet");
    story.answer(&mark, Ok(txn(12, true, vec![])));
    assert!(story.sends(Step::Enter));
}

#[test]
fn a_slow_confirmation_is_enough_for_a_lock_that_is_not_renewed() {
    let mut story = Story::with_session(1);
    story.pass(Duration::from_millis(1_500));
    story.acquire(1, |terms| {
        terms.key = LockKey::of("other");
        terms.renew = false;
    });
    story.enter(Ok(entered(3, vec![])));
    let sent = story.now;
    let beat = story.beat();
    story.pass(Duration::from_millis(700));
    story.alive(&beat, 1, 10);
    story.pass(Duration::from_millis(700));
    let look = story.look().expect("a look at the marker");
    story.answer(&look, Ok(range(4, vec![kv(Kind::Read, 1)])));
    assert_eq!(story.granted(1), (3, sent));
}
