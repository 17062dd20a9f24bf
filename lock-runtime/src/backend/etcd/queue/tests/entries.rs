//! From the entry to the lock: positions, watches, and entries that may have been made.

use super::*;

#[test]
fn an_entry_that_may_have_been_made_is_found_and_not_made_twice() {
    let mut story = Story::with_session(1);
    story.acquire(1, |terms| terms.key = LockKey::of("other"));
    let enter = story.claim_call(Step::Enter);
    let there = written(&enter.call, 4);
    story.answer(&enter, Err(unknown()));
    assert!(matches!(story.outcome(), Some(Outcome::Trouble { .. })));
    assert!(!story.sends(Step::Enter), "a late call may still make it");
    let mark = story.mark();
    story.answer(&mark, Ok(txn(5, true, vec![])));
    let again = story.claim_call(Step::Enter);
    assert_eq!(put(&again.call), there.key);
    let Call::Txn(asked) = &again.call else {
        panic!("{again:?}");
    };
    let text = format!("{:?}", asked.compare);
    assert!(text.contains("ModRevision(5)"), "{text}");
    let found = txn(6, false, vec![read(6, vec![there.clone()])]);
    story.answer(&again, Ok(found));
    let look = story.claim_call(Step::Look);
    story.answer(&look, Ok(range(6, vec![there])));
    assert_eq!(story.granted(1).0, 6);
}

#[test]
fn an_entry_that_may_have_been_made_and_is_unwanted_is_deleted_once_it_cannot_come_late() {
    let mut story = Story::with_session(1);
    story.acquire(1, |_| {});
    let enter = story.claim_call(Step::Enter);
    story.answer(&enter, Err(unknown()));
    story.outcome();
    story.submit(Request::Abandon(LeaseId(1)));
    assert!(!story.sends(Step::Seek), "the entry may be made after it");
    let mark = story.mark();
    story.answer(&mark, Ok(txn(5, true, vec![])));
    let look = story.claim_call(Step::Seek);
    story.answer(&look, Ok(range(6, vec![written(&enter.call, 4)])));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(1)));
    assert!(!story.released(1), "it was not held");
}

#[test]
fn a_waiter_watches_the_one_ahead_alone_from_now_on() {
    let mut story = Story::with_session(1);
    story.acquire(1, |_| {});
    let (first, second) = (kv(Kind::Exclusive, 2), kv(Kind::Read, 3));
    let key = story.enter(Ok(entered(4, vec![second.clone(), first.clone()])));
    story.waits(1);
    let watch = story.watch(2);
    assert_eq!((&watch.span.key, watch.from), (&second.key, 0));
    assert!(watch.span.end.is_empty());

    story.queue.seen(story.now, watch.id, &Seen::Changed(0));
    let list = story.claim_call(Step::Look);
    let queue = vec![entry_of(key.clone(), 4), first.clone()];
    story.answer(&list, Ok(range(7, queue)));
    story.waits(1);
    let watch = story.watch(2);
    assert_eq!((&watch.span.key, watch.from), (&first.key, 0));

    story.queue.seen(story.now, watch.id, &Seen::Deleted(8));
    assert_eq!(story.granted(1).0, 8, "its turn came with the last change");
    story.watch(1);
    story.pass(SHORT);
    let own = story.watch(2);
    assert_eq!((own.span.key, own.from), (key, 8), "it watches its own");
    assert!(own.writes && story.sends(Step::Announce));
}

#[test]
fn who_is_next_to_a_permit_watches_the_queue_and_the_others_each_other() {
    let mut story = Story::with_session(1);
    let permits = Kind::Permits(1);
    story.acquire(1, |terms| terms.kind = permits);
    let ahead = kv(permits, 2);
    story.enter(Ok(entered(4, vec![ahead.clone()])));
    story.waits(1);
    assert!(!story.watch(2).span.end.is_empty());
    story.acquire(2, |terms| terms.kind = permits);
    let before = kv(permits, 4);
    story.enter(Ok(entered(5, vec![ahead, before.clone()])));
    story.waits(2);
    let watch = story.watch(3);
    assert_eq!(watch.span.key, before.key);
    assert!(watch.writes, "it also wants to hear that it has entered");
}

#[test]
fn a_grant_is_not_reported_before_the_lease_is_seen_to_live() {
    let mut story = Story::with_session(1);
    story.acquire(1, |_| {});
    story.enter(Ok(entered(4, vec![kv(Kind::Exclusive, 2)])));
    story.waits(1);
    let watch = story.watch(2);
    // The process was stopped meanwhile, and reads an event that lay in its socket.
    story.now = story.now.after(TTL * 2);
    story.queue.seen(story.now, watch.id, &Seen::Deleted(7));
    assert!(story.outcome().is_none());
    let beat = story.beat();
    story.alive(&beat, 1, 10);
    let look = story.look().expect("a look at the marker");
    story.answer(&look, Ok(range(8, vec![kv(Kind::Read, 1)])));
    let (fence, since) = story.granted(1);
    assert_eq!((fence, since), (7, story.now));
}

#[test]
fn whoever_watched_looks_for_itself_on_another_connection() {
    let mut story = Story::with_session(1);
    story.acquire(1, |_| {});
    let first = kv(Kind::Exclusive, 2);
    let key = story.enter(Ok(entered(4, vec![first.clone()])));
    story.waits(1);
    story.watch(2);
    story.watches.clear();
    story.queue.disconnected(story.now, &unknown());
    assert!(matches!(
        story.outcome(),
        Some(Outcome::Trouble { id: LeaseId(1), .. })
    ));
    story.queue.connected(story.now);
    // The one that holds its lock, and the one that waits.
    let check = story.claim_call(Step::Check);
    story.answer(&check, Ok(range(30, vec![first.clone()])));
    let list = story.claim_call(Step::Look);
    story.answer(&list, Ok(range(30, vec![first, entry_of(key, 4)])));
    story.watch(2);
    story.waits(1);
}

#[test]
fn a_watch_that_ends_makes_its_claim_look_for_itself() {
    let mut story = Story::with_session(1);
    let own = story.watch(1);
    story.queue.seen(story.now, own.id, &Seen::Ended);
    story.pass(Duration::from_millis(100));
    let check = story.claim_call(Step::Check);
    story.answer(&check, Ok(range(30, vec![kv(Kind::Exclusive, 2)])));
    assert_eq!(story.watch(1).from, 31);

    story.acquire(1, |_| {});
    let first = kv(Kind::Exclusive, 2);
    let key = story.enter(Ok(entered(40, vec![first.clone()])));
    story.waits(1);
    let watch = story.watch(2);
    story.queue.seen(story.now, watch.id, &Seen::Ended);
    story.pass(Duration::from_millis(100));
    let list = story.claim_call(Step::Look);
    story.answer(&list, Ok(range(50, vec![first, entry_of(key, 40)])));
    story.waits(1);
    assert_eq!(story.watch(2).from, 0);
}

#[test]
fn entries_of_a_lock_are_made_in_the_order_in_which_they_were_asked_for() {
    let mut story = Story::with_session(1);
    for id in [1, 2] {
        story.acquire(id, |_| {});
    }
    let first = story.claim_call(Step::Enter);
    assert!(!story.sends(Step::Enter), "they might overtake each other");
    story.submit(Request::Release(LeaseId(0)));
    let delete = story.claim_call(Step::Delete);
    story.answer(&first, Ok(entered(4, vec![kv(Kind::Exclusive, 2)])));
    assert!(!story.sends(Step::Enter), "the release may come later");
    story.answer(&delete, Ok(deleted(1)));
    let second = story.claim_call(Step::Enter);
    assert!(matches!(second.to, Recipient::Claim(turn, _) if turn.id == LeaseId(2)));
}

#[test]
fn a_try_that_finds_the_lock_held_leaves_nothing() {
    let mut story = Story::with_session(1);
    let once = |terms: &mut Terms| terms.wait = Wait::AtMost(Duration::ZERO);
    story.acquire(1, once);
    let held = vec![kv(Kind::Exclusive, 2)];
    let refused = txn(
        4,
        false,
        vec![read(4, held.clone()), read(4, vec![marker(1)])],
    );
    story.enter(Ok(refused));
    assert!(matches!(story.outcome(), Some(Outcome::Busy { .. })));
    assert!(!story.sends(Step::Delete));
    // A reader has to make its entry to see.
    story.acquire(2, |terms| {
        once(terms);
        terms.kind = Kind::Read;
    });
    story.enter(Ok(entered(5, held)));
    assert!(matches!(story.outcome(), Some(Outcome::Busy { .. })));
    let delete = story.claim_call(Step::Delete);
    story.answer(&delete, Ok(deleted(1)));
    assert!(story.outcome().is_none());
}

#[test]
fn a_try_that_its_session_refuses_has_not_found_the_lock_held() {
    for kind in [Kind::Read, Kind::Permits(3), Kind::Exclusive] {
        let mut story = Story::with_session(1);
        story.acquire(1, |terms| {
            terms.wait = Wait::AtMost(Duration::ZERO);
            terms.kind = kind;
        });
        // Its lease has ended unheard, or a late call has written the marker again.
        let ends = kind == Kind::Read;
        let there = if ends { vec![] } else { vec![marker(3)] };
        let others = vec![kv(kind, 2)];
        story.enter(Ok(txn(
            4,
            false,
            vec![read(4, others.clone()), read(4, there)],
        )));
        if ends {
            assert!(matches!(story.outcome(), Some(Outcome::NotHeld { .. })));
            story.open_session();
        }
        assert!(story.outcome().is_none(), "{kind:?}");
        let again = story.claim_call(Step::Enter);
        if kind == Kind::Exclusive {
            continue;
        }
        story.answer(&again, Ok(entered(5, others)));
        assert_eq!(story.granted(1).0, 5);
    }
}

/// The entry of claim 1 may have been made, and is asked for again; that call.
fn unsure(story: &mut Story) -> Sent<Recipient> {
    story.acquire(1, |terms| terms.key = LockKey::of("other"));
    story.enter(Err(unknown()));
    story.outcome();
    let mark = story.mark();
    story.answer(&mark, Ok(txn(5, true, vec![])));
    story.claim_call(Step::Enter)
}

#[test]
fn an_entry_that_may_have_been_made_is_deleted_when_it_is_refused_for_good() {
    for too_few in [false, true] {
        let mut story = Story::with_session(1);
        let again = if too_few {
            story.acquire(1, |terms| terms.key = LockKey::of("other"));
            let enter = story.claim_call(Step::Enter);
            story.answer(&enter, Err(unknown()));
            story.outcome();
            story.queue.needs(Quorum {
                too_few: Some(cause("too few")),
                ..Quorum::of_one()
            });
            let mark = story.mark();
            story.answer(&mark, Ok(txn(5, true, vec![])));
            enter
        } else {
            let again = unsure(&mut story);
            story.answer(&again, Err(Trouble::Never(cause("no right"))));
            again
        };
        let outcome = story.outcome();
        assert!(
            matches!(outcome, Some(Outcome::Failed { id: LeaseId(1), .. })),
            "{outcome:?}"
        );
        let look = story.claim_call(Step::Seek);
        story.answer(&look, Ok(range(6, vec![written(&again.call, 4)])));
        let delete = story.claim_call(Step::Delete);
        story.answer(&delete, Ok(deleted(1)));
        assert!(story.outcome().is_none());
        assert_eq!(story.queue.claims.len(), 1, "but for the lock that is held");
    }
}

/// All reads of a transaction have a limit, and none is of those behind.
fn reads_little(call: &Call, before: i64) {
    let Call::Txn(TxnRequest {
        success, failure, ..
    }) = call
    else {
        panic!("no transaction: {call:?}");
    };
    for op in success.iter().chain(failure) {
        let Some(Op::Range(range)) = &op.request else {
            continue;
        };
        let is_one = range.range_end.is_empty();
        assert!(is_one || (1..=4).contains(&range.limit), "{range:?}");
        assert!(is_one || range.max_create_revision == before, "{range:?}");
    }
}

#[test]
fn what_an_entry_reads_does_not_grow_with_the_queue() {
    for mine in [Kind::Exclusive, Kind::Read, Kind::Permits(3)] {
        let mut story = Story::with_session(1);
        story.acquire(1, |terms| terms.kind = mine);
        let enter = story.claim_call(Step::Enter);
        reads_little(&enter.call, 0);
        let queue: Vec<_> = (2..100).map(|at| kv(Kind::Exclusive, at)).collect();
        let key = put(&enter.call);
        story.answer(&enter, Ok(entered(100, queue.clone())));
        story.waits(1);
        let watch = story.watch(2);
        assert_eq!(watch.span.key, queue[97].key, "the last one");
        story.queue.seen(story.now, watch.id, &Seen::Changed(0));
        let look = story.claim_call(Step::Look);
        reads_little(&look.call, 99);
        let behind = (101..200).map(|at| kv(mine, at));
        let there = queue[..50].iter().cloned();
        let there = there.chain([entry_of(key, 100)]).chain(behind).collect();
        story.answer(&look, Ok(range(300, there)));
        story.waits(1);
        assert_eq!(story.watch(2).span.key, queue[49].key, "the last one ahead");
    }
}

#[test]
fn an_announcement_is_sent_until_it_is_answered() {
    let mut story = Story::with_session(1);
    let permits = Kind::Permits(2);
    story.acquire(1, |terms| terms.kind = permits);
    let first = kv(permits, 2);
    let key = story.enter(Ok(entered(4, vec![first.clone(), kv(permits, 3)])));
    story.waits(1);
    let watch = story.watch(2);
    story.queue.seen(story.now, watch.id, &Seen::Changed(0));
    let look = story.claim_call(Step::Look);
    story.answer(&look, Ok(range(5, vec![first, entry_of(key, 4)])));
    story.granted(1);
    story.watch(2);
    for trouble in [
        unknown(),
        Trouble::said("not now"),
        Trouble::Never(cause("no")),
    ] {
        let announce = story.claim_call(Step::Announce);
        story.answer(&announce, Err(trouble));
        assert!(!story.sends(Step::Announce));
        story.pass(Duration::from_millis(100));
    }
    let announce = story.claim_call(Step::Announce);
    story.answer(&announce, Ok(txn(6, true, vec![])));
    story.pass(Duration::from_secs(1));
    assert!(!story.sends(Step::Announce) && story.outcome().is_none());
}

#[test]
fn an_entry_that_is_gone_when_it_announces_is_a_lost_lock() {
    let mut story = Story::with_session(1);
    story.acquire(1, |_| {});
    let key = story.enter(Ok(entered(4, vec![kv(Kind::Exclusive, 2)])));
    story.waits(1);
    let watch = story.watch(2);
    story.queue.seen(story.now, watch.id, &Seen::Changed(0));
    let look = story.claim_call(Step::Look);
    story.answer(&look, Ok(range(5, vec![entry_of(key, 4)])));
    story.granted(1);
    story.pass(SHORT);
    let announce = story.claim_call(Step::Announce);
    story.answer(&announce, Ok(txn(6, false, vec![])));
    assert!(matches!(
        story.outcome(),
        Some(Outcome::NotHeld { id: LeaseId(1) })
    ));
}

#[test]
fn a_lock_that_was_not_watched_yet_is_looked_for_on_another_connection() {
    let mut story = Story::new(1);
    story.acquire(1, |_| {});
    story.open_session();
    story.enter(Ok(entered(2, vec![])));
    story.granted(1);
    story.queue.disconnected(story.now, &unknown());
    story.queue.connected(story.now);
    story.pass(SHORT);
    let check = story.claim_call(Step::Check);
    story.answer(&check, Ok(range(30, vec![])));
    assert!(matches!(story.outcome(), Some(Outcome::NotHeld { .. })));
}

#[test]
fn a_check_that_fails_is_made_again() {
    let mut story = Story::with_session(1);
    let own = story.watch(1);
    story.queue.seen(story.now, own.id, &Seen::Ended);
    for _ in 0..2 {
        story.pass(Duration::from_millis(100));
        let check = story.claim_call(Step::Check);
        story.answer(&check, Err(Trouble::said("not now")));
    }
    story.pass(Duration::from_millis(100));
    let check = story.claim_call(Step::Check);
    story.answer(&check, Ok(range(30, vec![])));
    assert!(matches!(story.outcome(), Some(Outcome::NotHeld { .. })));
}

#[test]
fn nothing_is_asked_for_where_too_few_members_are_named() {
    let mut story = Story::with_session(1);
    story.queue.needs(Quorum {
        needed: 2,
        too_few: Some(cause("too few")),
        ..Quorum::of_one()
    });
    story.acquire(1, |_| {});
    assert!(!story.sends(Step::Enter));
    assert!(matches!(
        story.outcome(),
        Some(Outcome::Failed { id: LeaseId(1), .. })
    ));
}

/// A key of a manager whose prefix is `lock/k`, for its lock `stock:7`.
fn foreign(created: i64) -> KeyValue {
    KeyValue {
        key: format!("lock/k/stock:7/x-{LEASE:016x}-{created}").into(),
        ..kv(Kind::Exclusive, created)
    }
}

#[test]
fn keys_of_others_in_a_queue_hide_nobody() {
    for mine in [Kind::Exclusive, Kind::Read, Kind::Permits(2)] {
        let mut story = Story::with_session(1);
        story.acquire(1, |terms| terms.kind = mine);
        let holder = kv(Kind::Exclusive, 5);
        let early = (2..5).map(foreign);
        let queue: Vec<_> = early.chain([holder.clone(), foreign(6)]).collect();
        let key = story.enter(Ok(entered(7, queue.clone())));
        assert!(story.outcome().is_none(), "{mine:?}");
        let look = story.claim_call(Step::Look);
        let there = queue.iter().cloned().chain([entry_of(key.clone(), 7)]);
        story.answer(&look, Ok(range(7, there.collect())));
        story.waits(1);
        let watch = story.watch(2);
        assert_eq!(watch.span.key, holder.key, "{mine:?}");

        story.queue.seen(story.now, watch.id, &Seen::Changed(0));
        let look = story.claim_call(Step::Look);
        let left = queue.iter().filter(|it| it.key != holder.key).cloned();
        let there = left.chain([entry_of(key, 7)]).collect();
        story.answer(&look, Ok(range(8, there)));
        assert_eq!(story.granted(1).0, 8);
    }
}

#[test]
fn a_try_finds_the_lock_free_beside_keys_of_others() {
    let mut story = Story::with_session(1);
    story.acquire(1, |terms| terms.wait = Wait::AtMost(Duration::ZERO));
    story.enter(Ok(txn(4, false, vec![read(4, vec![foreign(3)])])));
    assert!(story.outcome().is_none());
    story.enter(Ok(entered(5, vec![foreign(3)])));
    assert_eq!(story.granted(1).0, 5);
}

#[test]
fn a_permit_whose_entry_was_found_later_is_announced() {
    let mut story = Story::with_session(1);
    let permits = Kind::Permits(2);
    story.acquire(1, |terms| terms.kind = permits);
    let enter = story.claim_call(Step::Enter);
    let there = written(&enter.call, 4);
    story.answer(&enter, Err(unknown()));
    story.outcome();
    let mark = story.mark();
    story.answer(&mark, Ok(txn(5, true, vec![])));
    story.enter(Ok(txn(6, false, vec![read(6, vec![there.clone()])])));
    let look = story.claim_call(Step::Look);
    story.answer(&look, Ok(range(7, vec![there])));
    story.granted(1);
    // Those who came at revision 6 may have seen it wait.
    assert!(story.sends(Step::Announce));
}

#[test]
fn a_waiter_that_is_gone_leaves_no_pause_behind() {
    let mut story = Story::with_session(1);
    for id in [1, 2] {
        story.acquire(id, |terms| terms.key = LockKey::of("other"));
    }
    story.enter(Err(Trouble::said("not now")));
    story.submit(Request::Abandon(LeaseId(1)));
    story.pass(Duration::from_millis(100));
    let enter = story.claim_call(Step::Enter);
    assert!(matches!(enter.to, Recipient::Claim(turn, _) if turn.id == LeaseId(2)));
}

#[test]
fn a_waiter_that_is_gone_and_may_have_an_entry_leaves_no_pause_behind() {
    let mut story = Story::with_session(1);
    let other = |terms: &mut Terms| terms.key = LockKey::of("other");
    story.acquire(1, other);
    story.enter(Err(unknown()));
    let mark = story.mark();
    story.answer(&mark, Ok(txn(5, true, vec![])));
    story.acquire(2, other);
    story.enter(Err(Trouble::said("not now")));
    story.submit(Request::Abandon(LeaseId(1)));
    story.pass(Duration::from_millis(100));
    let enter = story.claim_call(Step::Enter);
    assert!(matches!(enter.to, Recipient::Claim(turn, _) if turn.id == LeaseId(2)));
}

#[test]
fn many_are_refused_at_once() {
    let mut story = Story::with_session(1);
    for id in 1..=10_000 {
        story.acquire(id, |_| {});
    }
    let enter = story.claim_call(Step::Enter);
    story.queue.needs(Quorum {
        too_few: Some(cause("too few")),
        ..Quorum::of_one()
    });
    story.answer(&enter, Ok(entered(30, vec![])));
    let outcomes = std::iter::from_fn(|| story.outcome());
    let refused = outcomes.filter(|it| matches!(it, Outcome::Failed { .. }));
    assert_eq!(refused.count(), 9_999);
    story.collect();
    let looks = story
        .calls
        .iter()
        .filter(|it| matches!(it.to, Recipient::Cluster));
    assert_eq!(looks.count(), 1);
}
