//! Promise: a majority of all servers decides, whatever the others say.

mod parts;

use std::time::Duration;

use super::claim::Claim;
use super::clocks::Clocks;
use super::coordinator::Coordinator;
use crate::backend::queue::order::Order;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::terms::{LeaseId, Terms, Wait};

const ID: LeaseId = LeaseId(1);
const TTL: Duration = Duration::from_secs(10);

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_000_000_000 + millis * 1_000_000)
}

/// Five servers that have been asked for a lock.
fn asked() -> Coordinator {
    let mut coordinator = Coordinator::new(Clocks::new(5, 0));
    let terms = Terms::of(ID, "k", TTL);
    coordinator.submit(at(0), Request::Acquire(terms.into()));
    assert_eq!(coordinator.orders().len(), 5);
    coordinator
}

/// The first servers have granted the lock.
fn held_by(servers: usize) -> Coordinator {
    let mut coordinator = asked();
    for server in 0..servers {
        grants(&mut coordinator, server, 0, 9);
    }
    assert!(coordinator.next_outcome().is_some());
    coordinator
}

fn grants(coordinator: &mut Coordinator, server: usize, sent: u64, fence: u64) {
    let granted = Outcome::Granted {
        id: ID,
        fence,
        token: None,
        since: at(sent),
        ttl: TTL,
    };
    coordinator.settle(at(sent + 5), server, granted);
}

/// A server has answered the question of the beginning so many ms later.
fn granted_after(coordinator: &mut Coordinator, server: usize, millis: u64) {
    let granted = Outcome::Granted {
        id: ID,
        fence: 9,
        token: None,
        since: at(0),
        ttl: TTL,
    };
    coordinator.settle(at(millis), server, granted);
}

fn renews(coordinator: &mut Coordinator, server: usize, sent: u64) {
    let renewed = Outcome::Renewed {
        id: ID,
        since: at(sent),
        ttl: TTL,
    };
    coordinator.settle(at(sent + 5), server, renewed);
}

/// The servers that are to raise their counters.
fn raised(coordinator: &mut Coordinator) -> Vec<usize> {
    let orders = coordinator.orders().into_iter();
    let raises = orders.filter(|(_, order)| matches!(order, Order::Raise { fence: 9, .. }));
    raises.map(|(server, _)| server).collect()
}

#[test]
fn validity_counts_from_the_earliest_of_the_majority() {
    let mut coordinator = asked();
    for (server, sent) in [(0, 30), (1, 10), (2, 20)] {
        assert!(coordinator.next_outcome().is_none());
        grants(&mut coordinator, server, sent, 9);
    }
    let outcome = coordinator.next_outcome();
    assert!(
        matches!(outcome, Some(Outcome::Granted { since, fence: 9, .. }) if since == at(10)),
        "{outcome:?}"
    );
}

// Section: guarantees.md#when-a-majority-decides
#[test]
fn the_largest_fence_counts_once_a_majority_has_it() {
    let mut coordinator = asked();
    for (server, fence) in [(0, 3), (1, 9), (2, 5)] {
        grants(&mut coordinator, server, 0, fence);
    }
    assert!(coordinator.next_outcome().is_none());
    assert_eq!(raised(&mut coordinator), [0, 2]);
    renews(&mut coordinator, 0, 10);
    assert!(coordinator.next_outcome().is_none(), "two have it");
    renews(&mut coordinator, 2, 20);
    let outcome = coordinator.next_outcome();
    assert!(
        matches!(outcome, Some(Outcome::Granted { fence: 9, .. })),
        "{outcome:?}"
    );
}

#[test]
fn servers_that_do_not_answer_count_as_against_it() {
    let mut coordinator = asked();
    for server in 2..5 {
        let trouble = Outcome::Trouble {
            id: ID,
            cause: Trouble::not_now("down").cause(),
            soon: false,
        };
        coordinator.settle(at(1), server, trouble);
    }
    for server in 0..2 {
        grants(&mut coordinator, server, 0, 9);
    }
    while let Some(outcome) = coordinator.next_outcome() {
        assert!(matches!(outcome, Outcome::Trouble { .. }), "{outcome:?}");
    }
}

#[test]
fn what_is_too_little_is_yielded_with_the_same_position() {
    let mut coordinator = Coordinator::new(Clocks::new(5, 0));
    let terms = Terms::of(ID, "k", TTL);
    coordinator.submit(at(0), Request::Acquire(terms.into()));
    let first = coordinator
        .orders()
        .into_iter()
        .find_map(|(_, it)| match it {
            Order::Acquire { position, .. } => Some(position),
            _ => None,
        });
    for server in 0..2 {
        grants(&mut coordinator, server, 0, 9);
    }
    for server in 2..5 {
        let waiting = Outcome::Waiting {
            id: ID,
            holder: None,
        };
        coordinator.settle(at(5), server, waiting);
    }
    coordinator.tick(at(5));
    let yields = coordinator
        .orders()
        .into_iter()
        .map(|(server, it)| match it {
            Order::Yield { position, .. } => (server, Some(position)),
            other => panic!("{other:?}"),
        });
    assert_eq!(yields.collect::<Vec<_>>(), [(0, first), (1, first)]);
}

// Section: guarantees.md#when-a-majority-decides
#[test]
fn servers_that_are_far_are_waited_for_as_long_as_they_need() {
    let mut coordinator = asked();
    for (server, after) in [(0, 100), (1, 130), (2, 170)] {
        // Until then everything that was granted is kept.
        coordinator.tick(at(after));
        assert!(coordinator.orders().is_empty(), "after {after} ms");
        granted_after(&mut coordinator, server, after);
    }
    let outcome = coordinator.next_outcome();
    assert!(
        matches!(outcome, Some(Outcome::Granted { .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_server_that_hangs_keeps_nobody_from_what_was_granted_for_long() {
    let mut coordinator = asked();
    granted_after(&mut coordinator, 0, 1);
    granted_after(&mut coordinator, 1, 2);
    coordinator.tick(at(30));
    let yielded = coordinator.orders().into_iter().map(|(server, _)| server);
    assert_eq!(yielded.collect::<Vec<_>>(), [0, 1]);
}

// Section: guarantees.md#when-a-majority-decides
#[test]
fn what_is_granted_late_and_for_a_shorter_time_is_extended() {
    let mut coordinator = asked();
    for server in 0..3 {
        grants(&mut coordinator, server, 0, 9);
    }
    coordinator.orders();
    for (server, seconds) in [(3, 3), (4, 8)] {
        let pushed = Outcome::Granted {
            id: ID,
            fence: 9,
            token: None,
            since: at(0),
            ttl: Duration::from_secs(seconds),
        };
        coordinator.settle(at(5), server, pushed);
    }
    assert_eq!(raised(&mut coordinator), [3]);
}

// Section: guarantees.md#when-a-majority-decides
#[test]
fn the_answer_that_makes_the_majority_counts_although_the_renewal_was_given_up() {
    let mut coordinator = held_by(3);
    // Its counter is behind, and so it is asked twice.
    grants(&mut coordinator, 3, 90, 4);
    coordinator.submit(at(100), Request::Renew(ID));
    coordinator.settle(at(110), 0, Outcome::NotHeld { id: ID });
    let fails = |coordinator: &mut Coordinator| {
        let cause = Claim::too_few().cause();
        coordinator.settle(at(110), 1, Outcome::RenewFailed { id: ID, cause });
    };
    fails(&mut coordinator);
    renews(&mut coordinator, 2, 100);
    grants(&mut coordinator, 4, 100, 9);
    assert!(coordinator.next_outcome().is_none());
    renews(&mut coordinator, 3, 95);
    let outcome = coordinator.next_outcome();
    assert!(
        matches!(outcome, Some(Outcome::RenewFailed { .. })),
        "{outcome:?}"
    );
    fails(&mut coordinator);
    assert!(coordinator.next_outcome().is_none(), "it was reported");
    renews(&mut coordinator, 3, 100);
    let outcome = coordinator.next_outcome();
    assert!(
        matches!(outcome, Some(Outcome::Renewed { .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_majority_renews_and_the_rest_of_all_lose() {
    let mut coordinator = held_by(5);
    coordinator.submit(at(100), Request::Renew(ID));
    for server in 0..2 {
        coordinator.settle(at(110), server, Outcome::NotHeld { id: ID });
    }
    for server in 2..5 {
        assert!(coordinator.next_outcome().is_none());
        renews(&mut coordinator, server, 100);
    }
    let outcome = coordinator.next_outcome();
    assert!(
        matches!(outcome, Some(Outcome::Renewed { .. })),
        "{outcome:?}"
    );
    coordinator.submit(at(200), Request::Renew(ID));
    coordinator.settle(at(210), 2, Outcome::NotHeld { id: ID });
    assert!(coordinator.next_outcome().is_none(), "two are asked again");
    for server in 3..5 {
        coordinator.settle(at(210), server, Outcome::NotHeld { id: ID });
    }
    let outcome = coordinator.next_outcome();
    assert!(
        matches!(outcome, Some(Outcome::NotHeld { .. })),
        "{outcome:?}"
    );
}

// Section: guarantees.md#when-a-majority-decides
#[test]
fn a_holder_waits_ahead_of_those_whose_positions_are_a_little_earlier() {
    let mut coordinator = Coordinator::new(Clocks::new(5, 0));
    let hour = 3_600_000;
    coordinator.submit(at(hour), Request::Acquire(Terms::of(ID, "k", TTL).into()));
    coordinator.orders();
    for server in 0..5 {
        grants(&mut coordinator, server, hour, 9);
    }
    coordinator.submit(at(hour + 100), Request::Renew(ID));
    coordinator.settle(at(hour + 110), 0, Outcome::NotHeld { id: ID });
    coordinator.orders();
    for server in 1..5 {
        renews(&mut coordinator, server, hour + 100);
    }
    let orders = coordinator.orders();
    let [(0, Order::Yield { position, .. })] = orders[..] else {
        panic!("{orders:?}");
    };
    assert!(position < (hour - 5_000) * 1000, "{position}");
}

// Section: guarantees.md#when-a-majority-decides
#[test]
fn a_server_has_the_fence_that_it_was_asked_to_have_and_no_later_one() {
    let mut coordinator = asked();
    for (server, fence) in [(0, 3), (1, 9), (2, 5)] {
        grants(&mut coordinator, server, 0, fence);
    }
    assert_eq!(raised(&mut coordinator), [0, 2]);
    // One is lost meanwhile, and another one brings a larger fence.
    coordinator.settle(at(10), 1, Outcome::NotHeld { id: ID });
    renews(&mut coordinator, 2, 10);
    grants(&mut coordinator, 3, 20, 12);
    renews(&mut coordinator, 2, 30);
    assert!(coordinator.next_outcome().is_none(), "two have 12");
    // That has been asked to have 9.
    renews(&mut coordinator, 0, 30);
    let outcome = coordinator.next_outcome();
    assert!(outcome.is_none(), "two have 12: {outcome:?}");
    renews(&mut coordinator, 0, 40);
    let outcome = coordinator.next_outcome();
    assert!(
        matches!(outcome, Some(Outcome::Granted { fence: 12, .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_try_that_too_few_answer_finds_the_lock_not_held() {
    let mut coordinator = Coordinator::new(Clocks::new(5, 0));
    let terms = Terms {
        wait: Wait::AtMost(Duration::ZERO),
        ..Terms::of(ID, "k", TTL)
    };
    coordinator.submit(at(0), Request::Acquire(terms.into()));
    coordinator.orders();
    let mut now = at(1);
    while now < at(2_000) {
        for server in 0..2 {
            let granted = Outcome::Granted {
                id: ID,
                fence: 9,
                token: None,
                since: now,
                ttl: TTL,
            };
            coordinator.settle(now, server, granted);
        }
        // They are given up, and granted again.
        now = coordinator.next_wakeup().expect("two are too few");
        coordinator.tick(now);
        let outcome = coordinator.next_outcome();
        assert!(outcome.is_none(), "{outcome:?}");
    }
}

#[test]
fn whether_it_was_ours_is_unknown_where_those_that_had_it_do_not_say() {
    let mut coordinator = held_by(5);
    coordinator.submit(at(100), Request::Release(ID));
    let silent = || Err(Trouble::not_now("down").cause());
    let answers = [Ok(true), Ok(true), Ok(false), silent(), silent()];
    for (server, result) in answers.into_iter().enumerate() {
        assert!(coordinator.next_outcome().is_none());
        coordinator.settle(at(110), server, Outcome::Released { id: ID, result });
    }
    let outcome = coordinator.next_outcome();
    assert!(
        matches!(outcome, Some(Outcome::Released { result: Err(_), .. })),
        "{outcome:?}"
    );
}
