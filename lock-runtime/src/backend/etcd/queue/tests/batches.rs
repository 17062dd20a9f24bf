//! Calls that go together, and what becomes of each.

use super::*;

/// The calls of one transaction that waits to be sent.
fn batch(story: &mut Story) -> Sent<Recipient> {
    let found = story.find(|it| matches!(it, Recipient::Batch(_)));
    found.unwrap_or_else(|| panic!("no transaction among {:?}", story.calls))
}

fn parts(sent: &Sent<Recipient>) -> Vec<Op> {
    let Call::Txn(TxnRequest { success, .. }) = &sent.call else {
        panic!("no transaction: {sent:?}");
    };
    success.iter().filter_map(|op| op.request.clone()).collect()
}

/// The keys that a transaction makes.
fn made(sent: &Sent<Recipient>) -> Vec<Vec<u8>> {
    let parts = parts(sent).into_iter();
    let made = parts.filter_map(|part| match part {
        Op::Txn(txn) => Some(put(&Call::Txn(txn))),
        _ => None,
    });
    made.collect()
}

/// Answers a transaction whose parts are answered so.
fn answer(story: &mut Story, sent: &Sent<Recipient>, revision: i64, answers: Vec<Reply>) {
    let asked = parts(sent);
    let responses = asked.into_iter().zip(answers).map(|(asked, answer)| {
        let call = match asked {
            Op::Txn(txn) => Call::Txn(txn),
            Op::DeleteRange(delete) => Call::Delete(delete),
            other => panic!("{other:?}"),
        };
        let response = match read_from(&call, answer) {
            // As a member answers.
            Reply::Txn(txn) => Response::Txn(TxnResponse {
                header: None,
                ..txn
            }),
            Reply::Deleted(deleted) => Response::DeleteRange(deleted),
            other => panic!("{other:?}"),
        };
        let response = Some(response);
        ResponseOp { response }
    });
    let whole = TxnResponse {
        header: Some(header(1, revision)),
        succeeded: true,
        responses: responses.collect(),
    };
    story.queue.answered(story.now, sent, Ok(Reply::Txn(whole)));
}

fn acquire(story: &mut Story, id: u64) {
    story.acquire(id, |terms| terms.key = LockKey::of(&format!("k:{id}")));
}

/// Holds locks of their own, which were taken together.
fn hold(story: &mut Story, ids: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    ids.clone().for_each(|id| acquire(story, id));
    let sent = batch(story);
    let answers = ids.clone().map(|_| entered(0, vec![])).collect();
    answer(story, &sent, 10, answers);
    for id in ids {
        assert_eq!(story.granted(id).0, 10, "the revision of the transaction");
    }
    made(&sent)
}

#[test]
fn calls_of_a_turn_go_as_one_transaction_and_a_lone_one_as_it_is() {
    let mut story = Story::with_session(1);
    hold(&mut story, 1..4);
    story.acquire(4, |_| {});
    story.submit(Request::Release(LeaseId(1)));
    story.submit(Request::Release(LeaseId(2)));
    let sent = batch(&mut story);
    assert_eq!(parts(&sent).len(), 3);
    // One is held by somebody else, and one was gone.
    let held = entered(0, vec![kv(Kind::Exclusive, 5)]);
    answer(&mut story, &sent, 20, vec![deleted(1), deleted(0), held]);
    assert!(story.released(1) && !story.released(2));
    story.waits(4);
    story.submit(Request::Release(LeaseId(3)));
    let alone = story.claim_call(Step::Delete);
    story.answer(&alone, Ok(deleted(1)));
    assert!(story.released(3));
}

/// etcd counts the puts of a transaction, and not those of the transactions in it.
#[test]
fn a_transaction_that_makes_entries_is_seen_to_need_room() {
    let mut story = Story::with_session(1);
    hold(&mut story, 1..5);
    (1..5).for_each(|id| story.submit(Request::Release(LeaseId(id))));
    let needs_room = |sent: &Sent<Recipient>| match &sent.call {
        Call::Txn(txn) => txn
            .failure
            .iter()
            .any(|op| matches!(op.request, Some(Op::Put(_)))),
        _ => false,
    };
    assert!(!needs_room(&batch(&mut story)));
    let mut story = Story::with_session(1);
    (1..=7).for_each(|id| acquire(&mut story, id));
    assert!(needs_room(&batch(&mut story)));
}

#[test]
fn an_entry_is_made_after_the_deletions_of_its_transaction() {
    let mut story = Story::with_session(1);
    (1..=4).for_each(|id| acquire(&mut story, id));
    batch(&mut story);
    // Both wait until others are answered.
    story.acquire(5, |_| {});
    story.submit(Request::Release(LeaseId(0)));
    (6..=7).for_each(|id| acquire(&mut story, id));
    let sent = batch(&mut story);
    assert_eq!(made(&sent).len(), 3);
    assert!(matches!(parts(&sent)[0], Op::DeleteRange(_)));
}

#[test]
fn no_transaction_makes_two_entries_of_one_lock() {
    let mut story = Story::with_session(1);
    for (id, key) in [(1, "a"), (2, "a"), (3, "b"), (4, "b")] {
        story.acquire(id, |terms| terms.key = LockKey::of(key));
    }
    let sent = batch(&mut story);
    let keys = made(&sent);
    assert!(keys[0].starts_with(b"lock/a/") && keys[1].starts_with(b"lock/b/"));
    assert_eq!(keys.len(), 2);
}

#[test]
fn a_transaction_that_was_refused_says_nothing_about_its_calls() {
    for trouble in [
        Trouble::Never(cause("duplicate key given in txn request")),
        Trouble::said("database space exceeded"),
        no_lease(),
    ] {
        let mut story = Story::with_session(1);
        hold(&mut story, 1..3);
        acquire(&mut story, 3);
        story.submit(Request::Release(LeaseId(1)));
        let sent = batch(&mut story);
        story.queue.answered(story.now, &sent, Err(trouble));
        assert!(story.outcome().is_none());
        let delete = story.claim_call(Step::Delete);
        story.answer(&delete, Ok(deleted(1)));
        assert!(story.released(1));
        story.enter(Ok(entered(30, vec![])));
        assert_eq!(story.granted(3).0, 30);
    }
}

#[test]
fn a_transaction_that_is_too_large_is_halved() {
    let mut story = Story::with_session(1);
    (1..=100).for_each(|id| acquire(&mut story, id));
    let first = batch(&mut story);
    assert_eq!(parts(&first).len(), 64);
    let large = || Trouble::Never(cause("etcd said: too many operations in txn request"));
    story.queue.answered(story.now, &first, Err(large()));
    let sizes = |story: &mut Story| {
        story.collect();
        let sizes: Vec<_> = story.calls.iter().map(|it| parts(it).len()).collect();
        sizes
    };
    assert_eq!(sizes(&mut story), [32, 32]);
    assert!(story.outcome().is_none());
    for sent in story.calls.drain(..).collect::<Vec<_>>() {
        story.queue.answered(story.now, &sent, Err(large()));
    }
    // Those that were refused together halve it once.
    assert_eq!(sizes(&mut story), [16; 4]);
}

#[test]
fn calls_wait_until_as_many_have_come_together_as_are_on_their_way() {
    let mut story = Story::with_session(1);
    (1..=8).for_each(|id| acquire(&mut story, id));
    let sent = batch(&mut story);
    (11..=17).for_each(|id| acquire(&mut story, id));
    assert!(!story.sends(Step::Enter) && story.calls.is_empty());
    acquire(&mut story, 18);
    assert_eq!(parts(&batch(&mut story)).len(), 8);
    acquire(&mut story, 19);
    story.collect();
    assert!(story.calls.is_empty());
    let answers = (0..8).map(|_| entered(0, vec![])).collect();
    answer(&mut story, &sent, 10, answers);
    story.collect();
    assert!(story.calls.is_empty(), "eight more are on their way");
}

#[test]
fn entries_on_several_leases_go_apart() {
    let mut story = Story::with_session(1);
    story.acquire(1, |terms| {
        terms.key = LockKey::of("k:1");
        terms.ttl = TTL * 2;
    });
    let grant = story.session_call(SessionStep::Grant);
    story.answer(&grant, Ok(lease(1, LEASE + 1, 20)));
    let mark = story.mark();
    story.answer(&mark, Ok(txn(2, true, vec![])));
    story.enter(Ok(entered(3, vec![])));
    story.granted(1);
    for id in 2..6 {
        story.acquire(id, |terms| {
            terms.key = LockKey::of(&format!("k:{id}"));
            terms.ttl *= u32::try_from(id % 2 + 1).expect("small");
        });
    }
    for lease in [LEASE, LEASE + 1] {
        let sent = batch(&mut story);
        let of_lease = |part: &Op| matches!(part, Op::Txn(txn) if Call::Txn(txn.clone()).lease() == Some(lease));
        assert!(parts(&sent).iter().all(of_lease));
        assert_eq!(parts(&sent).len(), 2);
    }
}

#[test]
fn the_calls_of_a_transaction_without_an_answer_may_all_have_been_done() {
    let mut story = Story::with_session(1);
    hold(&mut story, 1..3);
    acquire(&mut story, 3);
    story.submit(Request::Release(LeaseId(1)));
    let sent = batch(&mut story);
    let key = made(&sent).remove(0);
    story.queue.answered(story.now, &sent, Err(unknown()));
    assert!(matches!(
        story.outcome(),
        Some(Outcome::Trouble { id: LeaseId(3), .. })
    ));
    assert!(!story.sends(Step::Enter), "a late call may still make it");
    let mark = story.mark();
    story.answer(&mark, Ok(txn(25, true, vec![])));
    assert_eq!(story.enter(Ok(entered(30, vec![]))), key);
    assert_eq!(story.granted(3).0, 30);
    story.pass(Duration::from_millis(100));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(0)));
    assert!(
        story.released(1),
        "the call without an answer has deleted it"
    );
}

#[test]
fn a_marker_that_another_call_has_found_is_not_written_again() {
    let mut story = Story::with_session(1);
    (1..3).for_each(|id| acquire(&mut story, id));
    let sent = batch(&mut story);
    // A late call has written the marker.
    let refused = || txn(9, false, vec![read(9, vec![marker(9)])]);
    answer(&mut story, &sent, 9, vec![refused(), refused()]);
    story.pass(Duration::ZERO);
    let is_mark = |it: &Recipient| matches!(it, Recipient::Session(_, SessionStep::Mark(_)));
    assert!(story.find(is_mark).is_none());
    let sent = batch(&mut story);
    answer(
        &mut story,
        &sent,
        10,
        vec![entered(0, vec![]), entered(0, vec![])],
    );
    (1..3).for_each(|id| assert_eq!(story.granted(id).0, 10));
}

/// A member carries out the transaction that uses up its space, and says that there is none.
#[test]
fn a_transaction_without_space_may_have_been_done() {
    let no_space = || Trouble::NoSpace(cause("etcd said: mvcc: database space exceeded"));
    let mut story = Story::with_session(1);
    hold(&mut story, 1..3);
    acquire(&mut story, 3);
    story.submit(Request::Release(LeaseId(1)));
    let sent = batch(&mut story);
    story.queue.answered(story.now, &sent, Err(no_space()));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(0)));
    assert!(story.released(1), "its first call may have deleted it");

    let enter = story.claim_call(Step::Enter);
    story.answer(&enter, Err(Trouble::said("the connection has ended")));
    story.submit(Request::Abandon(LeaseId(3)));
    assert!(
        story.sends(Step::Seek),
        "an entry is looked for, and deleted"
    );
}
