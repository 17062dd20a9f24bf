//! How leases end, of one key and of several, and who is woken then.

use super::*;
use crate::held::home::Nowhere;
use crate::held::running::Running;
use crate::types::deadline::deadline;
use crate::types::terms::LeaseId;

fn lease(clock: &Clock) -> Lease {
    let terms = Terms::of(LeaseId(1), "k", Duration::from_secs(10));
    let ends = deadline(clock.now(), terms.ttl);
    Lease::new(
        terms.into(),
        1,
        clock.now(),
        ends,
        clock.clone(),
        Arc::new(Nowhere),
    )
}

#[test]
fn what_remains_grows_less_and_ends_with_the_lease() {
    let clock = Clock::manual();
    let lease = lease(&clock);
    let all = lease.remaining();
    assert_eq!(all, Duration::from_millis(10_000 - 102 - 200));
    clock.advance(Duration::from_secs(1));
    assert_eq!(lease.remaining() + Duration::from_secs(1), all);
    lease.end();
    assert_eq!(lease.remaining(), Duration::ZERO);
}

#[test]
fn nothing_remains_of_what_another_guard_has_released() {
    let lease = lease(&Clock::manual());
    lease.release();
    assert!(!lease.is_held());
    assert_eq!(lease.remaining(), Duration::ZERO);
}

#[test]
fn a_waker_that_panics_leaves_nobody_asleep() {
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker fails");
        }
    }
    struct Wakes(AtomicBool);
    impl std::task::Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    let lease = lease(&Clock::manual());
    let woken = Arc::new(Wakes(AtomicBool::new(false)));
    let mut slots = [None; 2];
    lease.watch(&mut slots[0], &Arc::new(Panics).into());
    lease.watch(&mut slots[1], &Arc::clone(&woken).into());
    lease.end();
    assert!(woken.0.load(Ordering::SeqCst));
}

#[test]
fn everybody_who_watches_is_woken_once() {
    struct Count(AtomicU64);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    let lease = lease(&Clock::manual());
    let count = Arc::new(Count(AtomicU64::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let mut slots = [None; 4];
    for slot in &mut slots {
        lease.watch(slot, &waker);
    }
    lease.watch(&mut slots[1], &waker);
    lease.unwatch(slots[3]);
    lease.end();
    assert_eq!(count.0.load(Ordering::SeqCst), 3);
}

fn of(key: &str, max_hold: Option<Duration>) -> Arc<Lease> {
    let clock = Clock::manual();
    let terms = Terms {
        max_hold,
        ..Terms::of(LeaseId(1), key, Duration::from_secs(10))
    };
    let ends = deadline(clock.now(), terms.ttl);
    let home = Arc::new(Nowhere);
    Arc::new(Lease::new(terms.into(), 1, clock.now(), ends, clock, home))
}

#[test]
fn leases_of_several_keys_are_one() {
    let (under, top) = (of("a", None), of("b", None));
    top.put_on(&under);
    for (key, locked) in [("a", true), ("b", true), ("c", false)] {
        assert_eq!(top.locks(&LockKey::of(key)), locked, "{key}");
    }
    assert!(top.is_held());
    under.end();
    let lost = top.first_lost().expect("one of them has ended");
    assert_eq!(lost.terms.key, LockKey::of("a"));
}

#[test]
fn leases_of_very_many_keys_are_dropped_on_a_small_stack() {
    let mut top = of("k", None);
    for _ in 0..100_000 {
        let next = of("k", None);
        next.put_on(&top);
        top = next;
    }
    drop(top);
}

#[test]
fn what_may_be_held_at_most_is_the_last_deadline() {
    assert!(!of("k", None).is_final());
    let lease = of("k", Some(Duration::from_secs(1)));
    assert!(lease.is_final());
    let end = lease.deadline();
    lease.extend(end.after(Duration::from_secs(5)));
    assert_eq!(lease.deadline(), end);
}

#[test]
fn a_lease_knows_whether_its_caller_has_got_it() {
    let lease = of("k", None);
    assert!(!lease.has_arrived());
    lease.arrive();
    assert!(lease.has_arrived());
}

#[test]
fn the_driver_is_notified_when_the_last_poll_returns_under_a_lease_that_has_ended() {
    #[derive(Debug, Default)]
    struct Counts(AtomicU64);
    impl Home for Counts {
        fn release(&self, _id: LeaseId, _key: &LockKey, _answer: Option<Answer<bool>>) -> bool {
            false
        }
        fn release_from_destructor(&self, _id: LeaseId) {}
        fn issue(&self, _id: LeaseId, _ticket: TicketId, _time: Duration, _answer: Answer<bool>) {}
        fn downgrade(&self, _id: LeaseId, _answer: Answer<bool>) {}
        fn check_downgrade(&self) -> Result<(), LockError> {
            Ok(())
        }
        fn check_tickets(&self) -> Result<(), LockError> {
            Ok(())
        }
        fn take_back(&self, _terms: Arc<Terms>) {}
        fn poll_returned(&self, id: LeaseId) {
            self.0.fetch_add(id.0, Ordering::SeqCst);
        }
        fn help_to_deliver(&self) {}
    }

    let (clock, counts) = (Clock::manual(), Arc::new(Counts::default()));
    let of = |id, key| {
        let terms = Terms::of(LeaseId(id), key, Duration::from_secs(10));
        let ends = deadline(clock.now(), terms.ttl);
        let (clock, home) = (clock.clone(), Arc::clone(&counts));
        Arc::new(Lease::new(terms.into(), 1, clock.now(), ends, clock, home))
    };
    let (under, top) = (of(1, "a"), of(10, "b"));
    top.put_on(&under);
    top.all().for_each(Lease::arrive);
    drop(Running::begin(&top));
    assert_eq!(counts.0.load(Ordering::SeqCst), 0, "nothing has ended");
    let polls = (Running::begin(&top), Running::begin(&top));
    under.end();
    assert_eq!(under.in_use(), InUse::ByPoll);
    drop(polls.0);
    assert_eq!(counts.0.load(Ordering::SeqCst), 0, "one poll runs yet");
    top.stopped();
    drop(polls.1);
    assert_eq!(counts.0.load(Ordering::SeqCst), 1, "the one that has ended");
    assert_eq!(under.in_use(), InUse::No);
    assert_eq!(top.in_use(), InUse::ByGuard, "it is held");
}

#[test]
fn a_reader_that_was_a_writer_is_known_by_the_same_token() {
    let writer = lease(&Clock::manual()).known_by(Some(7));
    let reader = writer.downgraded();
    let locks: Vec<_> = reader.enclosing().map(|it| (it.token, it.fence)).collect();
    assert_eq!(locks, [(7, 1)]);
}
