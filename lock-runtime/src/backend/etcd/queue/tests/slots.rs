//! Slots that are used again, and what may come late there.

use super::*;

/// Takes the lock `other`, which is free; the key of its entry.
fn take(story: &mut Story, id: u64) -> Vec<u8> {
    story.acquire(id, |terms| terms.key = LockKey::of("other"));
    let key = story.enter(Ok(entered(10, vec![])));
    story.granted(id);
    key
}

fn release(story: &mut Story, id: u64) {
    story.submit(Request::Release(LeaseId(id)));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(1)));
    assert!(story.released(id));
}

#[test]
fn a_lock_that_is_taken_again_has_the_same_key() {
    let mut story = Story::with_session(1);
    let first = take(&mut story, 1);
    release(&mut story, 1);
    assert_eq!(take(&mut story, 2), first);
}

#[test]
fn a_slot_is_not_used_again_before_its_deletion_is_confirmed() {
    let mut story = Story::with_session(1);
    let first = take(&mut story, 1);
    story.submit(Request::Release(LeaseId(1)));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Err(unknown()));
    // The entry may be gone, and will be deleted once more.
    let second = take(&mut story, 2);
    assert_ne!(second, first);
    story.pass(Duration::from_millis(100));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(0)));
    assert!(story.released(1));
    release(&mut story, 2);
    // The deletion without an answer may come late.
    assert_ne!(take(&mut story, 3), first);
}

#[test]
fn a_slot_of_an_earlier_connection_is_not_used_again() {
    let mut story = Story::with_session(1);
    let first = take(&mut story, 1);
    story.queue.disconnected(story.now, &unknown());
    story.queue.connected(story.now);
    story.collect();
    release(&mut story, 1);
    let second = take(&mut story, 2);
    assert_ne!(
        second, first,
        "what was sent over the last one may come late"
    );
    release(&mut story, 2);
    assert_eq!(take(&mut story, 3), second);
}

#[test]
fn an_entry_of_an_earlier_acquisition_that_a_backup_has_put_back_is_not_taken_for_ones_own() {
    let mut story = Story::with_session(1);
    story.acquire(1, |terms| terms.key = LockKey::of("other"));
    let enter = story.claim_call(Step::Enter);
    let other = entry_of(put(&enter.call), 4);
    let found = txn(12, false, vec![read(12, vec![other.clone()])]);
    story.answer(&enter, Ok(found));
    assert!(story.outcome().is_none());
    let key = story.enter(Ok(entered(13, vec![])));
    assert_ne!(key, other.key);
    assert_eq!(story.granted(1).0, 13);
}

#[test]
fn an_entry_that_may_have_been_made_is_deleted_although_its_call_was_not_sent_again() {
    let mut story = Story::with_session(1);
    take(&mut story, 1);
    story.acquire(2, |terms| terms.key = LockKey::of("other"));
    let made = story.claim_call(Step::Enter);
    story.answer(&made, Err(unknown()));
    let made = made.call;
    story.outcome();
    // The entry may have been made, and the call is not sent again before the deletion.
    story.submit(Request::Release(LeaseId(1)));
    let mark = story.mark();
    story.answer(&mark, Ok(txn(5, true, vec![])));
    assert!(!story.sends(Step::Enter));
    let first = story.claim_call(Step::Delete);
    story.submit(Request::Abandon(LeaseId(2)));
    let look = story.claim_call(Step::Seek);
    story.answer(&look, Ok(range(6, vec![written(&made, 4)])));
    let second = story.claim_call(Step::Delete);
    assert!(matches!(&second.call, Call::Delete(it) if it.key == put(&made)));
    story.answer(&first, Ok(deleted(1)));
    assert!(story.released(1));
    story.answer(&second, Ok(deleted(1)));
    assert!(!story.released(2), "it was not held");
}

#[test]
fn an_entry_that_may_have_been_made_is_deleted_although_its_second_call_was_refused() {
    for refusal in [Trouble::said("no"), Trouble::Never(cause("no"))] {
        let mut story = Story::with_session(1);
        story.acquire(1, |terms| terms.key = LockKey::of("other"));
        let made = story.claim_call(Step::Enter);
        story.answer(&made, Err(unknown()));
        story.outcome();
        let mark = story.mark();
        story.answer(&mark, Ok(txn(5, true, vec![])));
        let again = story.claim_call(Step::Enter);
        story.submit(Request::Abandon(LeaseId(1)));
        story.answer(&again, Err(refusal));
        let look = story.claim_call(Step::Seek);
        story.answer(&look, Ok(range(6, vec![written(&made.call, 4)])));
        let delete = story.claim_call(Step::Delete);
        story.answer(&delete, Ok(deleted(1)));
        assert!(!story.released(1), "it was not held");
    }
}

#[test]
fn an_entry_that_has_used_up_the_space_is_deleted() {
    for abandoned_first in [true, false] {
        let mut story = Story::with_session(1);
        story.acquire(1, |terms| terms.key = LockKey::of("other"));
        let made = story.claim_call(Step::Enter);
        if abandoned_first {
            story.submit(Request::Abandon(LeaseId(1)));
        }
        story.answer(&made, Err(Trouble::NoSpace(cause("no space"))));
        if !abandoned_first {
            story.outcome();
            story.submit(Request::Abandon(LeaseId(1)));
        }
        let look = story.claim_call(Step::Seek);
        story.answer(&look, Ok(range(6, vec![written(&made.call, 4)])));
        let delete = story.claim_call(Step::Delete);
        story.answer(&delete, Ok(deleted(1)));
        assert!(!story.released(1), "it was not held");
        // The server has answered: nothing comes late.
        assert_eq!(take(&mut story, 2), put(&made.call));
    }
}

#[test]
fn an_entry_that_others_have_adopted_is_not_deleted_in_place_of_ones_own() {
    for abandoned_first in [true, false] {
        let mut story = Story::with_session(1);
        story.acquire(1, |terms| terms.key = LockKey::of("other"));
        let enter = story.claim_call(Step::Enter);
        if abandoned_first {
            story.submit(Request::Abandon(LeaseId(1)));
        }
        story.answer(&enter, Err(unknown()));
        if !abandoned_first {
            story.outcome();
            story.submit(Request::Abandon(LeaseId(1)));
        }
        let mark = story.mark();
        story.answer(&mark, Ok(txn(5, true, vec![])));
        let look = story.claim_call(Step::Seek);
        let others = entry_of(put(&enter.call), 4);
        story.answer(&look, Ok(range(6, vec![others])));
        assert!(!story.released(1) && !story.sends(Step::Delete));
    }
}

#[test]
fn a_look_for_an_entry_that_may_have_been_made_is_repeated() {
    let mut story = Story::with_session(1);
    story.acquire(1, |terms| terms.key = LockKey::of("other"));
    story.enter(Err(unknown()));
    story.outcome();
    story.submit(Request::Abandon(LeaseId(1)));
    let mark = story.mark();
    story.answer(&mark, Ok(txn(5, true, vec![])));
    let look = story.claim_call(Step::Seek);
    story.answer(&look, Err(unknown()));
    story.pass(Duration::from_millis(100));
    let look = story.claim_call(Step::Seek);
    story.answer(&look, Ok(range(6, vec![])));
    assert!(!story.released(1) && !story.sends(Step::Delete));
}
