//! What waiters watch and read until they have the lock.

use super::*;
use crate::backend::etcd::queue::LOOK_AGAIN;

/// A waiter behind those that were created at these revisions, its watch and its key.
fn waiter(story: &mut Story, id: u64, ahead: &[KeyValue]) -> (Watch, Vec<u8>) {
    story.acquire(id, |_| {});
    let key = story.enter(Ok(entered(10, ahead.to_vec())));
    story.waits(id);
    (story.watch(2), key)
}

/// The waiter 1 finds all of those still ahead of its entry.
fn still_waits(story: &mut Story, look: &Sent<Recipient>, ahead: &[KeyValue], key: Vec<u8>) {
    let queue = [ahead, &[entry_of(key, 10)]].concat();
    story.answer(look, Ok(range(12, queue)));
    story.waits(1);
}

fn is_serializable(call: &Call) -> bool {
    let Call::Txn(TxnRequest { success, .. }) = call else {
        panic!("no transaction: {call:?}");
    };
    success
        .iter()
        .all(|op| matches!(&op.request, Some(Op::Range(range)) if range.serializable))
}

#[test]
fn a_waiter_reads_the_queue_again_if_something_was_written_before_its_watch_began() {
    let mut story = Story::with_session(1);
    let ahead = [kv(Kind::Exclusive, 2), kv(Kind::Exclusive, 3)];
    let (watch, key) = waiter(&mut story, 1, &ahead);
    story.queue.seen(story.now, watch.id, &Seen::Begun(10));
    assert!(
        !story.sends(Step::Look),
        "nothing has happened since it has read"
    );
    story.queue.seen(story.now, watch.id, &Seen::Begun(11));
    let look = story.claim_call(Step::Look);
    story.answer(&look, Ok(range(12, vec![entry_of(key, 10)])));
    assert_eq!(story.granted(1).0, 12);
    story.watch(1);
}

#[test]
fn a_change_while_a_waiter_reads_makes_it_read_again() {
    let mut story = Story::with_session(1);
    let ahead = [kv(Kind::Exclusive, 2), kv(Kind::Exclusive, 3)];
    let (watch, key) = waiter(&mut story, 1, &ahead);
    story.queue.seen(story.now, watch.id, &Seen::Changed(0));
    let look = story.claim_call(Step::Look);
    story.queue.seen(story.now, watch.id, &Seen::Deleted(12));
    assert!(!story.sends(Step::Look), "one at a time");
    still_waits(&mut story, &look, &ahead, key.clone());
    assert_eq!(story.watch(2).id, watch.id, "the same watch goes on");
    let look = story.claim_call(Step::Look);
    story.answer(&look, Ok(range(13, vec![entry_of(key, 10)])));
    assert_eq!(story.granted(1).0, 13);
}

#[test]
fn a_read_from_before_the_event_is_made_again_by_a_majority() {
    for event in [Seen::Deleted(12), Seen::Changed(12)] {
        let mut story = Story::with_session(1);
        let ahead = [kv(Kind::Exclusive, 2), kv(Kind::Exclusive, 3)];
        let (watch, key) = waiter(&mut story, 1, &ahead);
        story.queue.seen(story.now, watch.id, &event);
        let look = story.claim_call(Step::Look);
        // The member has shown the event, and does not read it yet.
        let queue = [ahead[1].clone(), entry_of(key.clone(), 10)];
        story.answer(&look, Ok(range(11, queue.into())));
        let look = story.claim_call(Step::Look);
        assert!(!is_serializable(&look.call));
        story.answer(&look, Ok(range(12, vec![entry_of(key, 10)])));
        assert_eq!(story.granted(1).0, 12);
    }
}

#[test]
fn a_read_that_fails_is_made_again() {
    let mut story = Story::with_session(1);
    let ahead = [kv(Kind::Exclusive, 2), kv(Kind::Exclusive, 3)];
    let (watch, key) = waiter(&mut story, 1, &ahead);
    story.queue.seen(story.now, watch.id, &Seen::Deleted(11));
    let look = story.claim_call(Step::Look);
    story.answer(&look, Err(Trouble::said("not now")));
    assert!(matches!(story.outcome(), Some(Outcome::Trouble { .. })));
    story.pass(Duration::from_millis(100));
    let look = story.claim_call(Step::Look);
    story.answer(&look, Ok(range(13, vec![entry_of(key, 10)])));
    assert_eq!(story.granted(1).0, 13);
}

#[test]
fn a_waiter_believes_one_member_that_knows_its_entry_and_asks_a_majority_else() {
    let mut story = Story::with_session(1);
    let ahead = [kv(Kind::Exclusive, 2), kv(Kind::Exclusive, 3)];
    let (watch, key) = waiter(&mut story, 1, &ahead);
    story.queue.seen(story.now, watch.id, &Seen::Deleted(11));
    let look = story.claim_call(Step::Look);
    assert!(is_serializable(&look.call));
    // The key is there with an entry that was made before.
    story.answer(&look, Ok(range(9, vec![entry_of(key.clone(), 8)])));
    assert!(story.outcome().is_none());
    let look = story.claim_call(Step::Look);
    assert!(!is_serializable(&look.call));
    story.answer(&look, Ok(range(12, vec![entry_of(key, 10)])));
    assert_eq!(story.granted(1).0, 12);
}

#[test]
fn a_waiter_whose_entry_a_majority_does_not_know_makes_another_one() {
    let mut story = Story::with_session(1);
    let ahead = [kv(Kind::Exclusive, 2), kv(Kind::Exclusive, 3)];
    let (watch, _) = waiter(&mut story, 1, &ahead);
    story.queue.seen(story.now, watch.id, &Seen::Deleted(11));
    for _ in 0..2 {
        let look = story.claim_call(Step::Look);
        story.answer(&look, Ok(range(12, vec![])));
    }
    story.enter(Ok(entered(20, vec![])));
    assert_eq!(story.granted(1).0, 20);
}

#[test]
fn an_entry_beside_keys_of_others_is_not_all_that_is_ahead() {
    let mut story = Story::with_session(1);
    // Four are read with their values, and the last one: one in between is hidden.
    let others = (2..5).map(|at| KeyValue {
        key: format!("lock/k/stock:7/x-{LEASE:016x}-{at}").into(),
        ..kv(Kind::Exclusive, at)
    });
    let entries = (5..8).map(|at| kv(Kind::Exclusive, at));
    let (watch, key) = waiter(&mut story, 1, &others.chain(entries).collect::<Vec<_>>());
    story.queue.seen(story.now, watch.id, &Seen::Deleted(11));
    let look = story.claim_call(Step::Look);
    story.answer(&look, Ok(range(12, vec![entry_of(key, 10)])));
    assert_eq!(story.granted(1).0, 12);
}

#[test]
fn a_deletion_before_an_entry_was_seen_is_that_of_an_earlier_one_under_its_key() {
    let mut story = Story::with_session(1);
    let (watch, key) = waiter(&mut story, 1, &[kv(Kind::Exclusive, 9)]);
    for earlier in [8, 10] {
        story
            .queue
            .seen(story.now, watch.id, &Seen::Deleted(earlier));
        let look = story.claim_call(Step::Look);
        let queue = vec![kv(Kind::Exclusive, 9), entry_of(key.clone(), 10)];
        assert!(story.outcome().is_none(), "the one ahead is there");
        story.answer(&look, Ok(range(10, queue)));
        story.waits(1);
    }
    story.queue.seen(story.now, watch.id, &Seen::Deleted(11));
    assert_eq!(story.granted(1).0, 11);
}

#[test]
fn whoever_followed_one_alone_enters_when_that_is_deleted_and_all_others_read() {
    let (one, two) = (kv(Kind::Exclusive, 2), kv(Kind::Exclusive, 3));
    for (mine, ahead, reads) in [
        (Kind::Exclusive, vec![one.clone()], false),
        (Kind::Exclusive, vec![one.clone(), two], true),
        // It waits for the first alone, and a reader is ahead of it too.
        (Kind::Read, vec![one, kv(Kind::Read, 3)], true),
    ] {
        let mut story = Story::with_session(1);
        story.acquire(1, |terms| terms.kind = mine);
        let key = story.enter(Ok(entered(10, ahead)));
        story.waits(1);
        let watch = story.watch(2);
        // A write is no deletion.
        story.queue.seen(story.now, watch.id, &Seen::Changed(0));
        let look = story.claim_call(Step::Look);
        story.queue.seen(story.now, watch.id, &Seen::Deleted(11));
        if reads {
            assert!(story.outcome().is_none());
            story.answer(&look, Ok(range(12, vec![entry_of(key, 10)])));
            assert_eq!(story.granted(1).0, 12);
        } else {
            assert_eq!(story.granted(1).0, 11);
            story.answer(&look, Ok(range(12, vec![])));
            assert!(story.outcome().is_none(), "nobody waits for that answer");
        }
    }
}

#[test]
fn a_waiter_that_is_shown_nothing_looks_again() {
    let mut story = Story::with_session(1);
    let ahead = [kv(Kind::Exclusive, 2), kv(Kind::Exclusive, 3)];
    let (watch, key) = waiter(&mut story, 1, &ahead);
    story.queue.seen(story.now, watch.id, &Seen::Begun(10));
    let start = story.now;
    while !story.sends(Step::Look) {
        assert!(story.now.since(start) <= LOOK_AGAIN, "it relies on a watch");
        story.pass(Duration::from_millis(500));
        let is_beat = |it: &Recipient| matches!(it, Recipient::Session(_, SessionStep::Alive(_)));
        if let Some(beat) = story.find(is_beat) {
            story.alive(&beat, 1, 10);
        }
    }
    let look = story.claim_call(Step::Look);
    still_waits(&mut story, &look, &ahead, key);
    assert!(!story.sends(Step::Look), "once in a while");
    assert_eq!(story.watch(2).id, watch.id, "the same watch goes on");
}
