//! Histories by hand: a good one, and one for every rule that is broken.

use std::time::Duration;

use super::{Counted, Event, Report, check};

/// A history: `MILLISECOND PROCESS OPERATION EVENT` a line, where a step and a grant last until a far deadline unless
/// they say which one, in milliseconds.
fn checked(history: &str) -> Report {
    let events: Vec<_> = history.trim().lines().map(event).collect();
    assert!(events.is_sorted_by_key(|event| event.at));
    check(&events, Counted::Together)
}

fn event(line: &str) -> Event {
    let mut words = line.trim().splitn(3, ' ');
    let mut word = || words.next().expect("a time, a process, and the rest");
    let at = Duration::from_millis(word().parse().expect("a number"));
    let (process, rest) = (word(), word());
    let mut words: Vec<String> = rest.split(' ').map(ToOwned::to_owned).collect();
    let place = match words[1].as_str() {
        "granted" => 3,
        "step" => 2,
        _ => return Event::parse(process, at, rest),
    };
    let until: u64 = words[place].parse().expect("milliseconds");
    words[place] = (until * 1_000_000).to_string();
    Event::parse(process, at, &words.join(" "))
}

/// The first thing that is wrong with a history.
fn complaint(history: &str) -> String {
    let report = checked(history);
    let first = report.violations.first().expect("something is wrong");
    format!("operation {} {}", first.operation, first.what)
}

const GOOD: &str = "
    1 a 1 begin exclusive k
    2 a 1 granted 10 500 k
    2 a 1 step 500
    5 b 2 begin permits-2 k
    6 b 3 begin permits-2 k m
    6 c 4 begin permits-2 k
    8 a 1 step 500
    8 a 1 done
    9 b 2 granted 11 500 k
    9 b 2 step 500
    9 b 3 granted 13 500 m k
    9 b 3 step 500
    12 b 2 step 500
    12 b 2 done
    13 c 4 granted 12 500 k
    13 c 4 step 500
    14 b 3 step 500
    14 b 3 done
    20 c 4 kill
    30 a 5 begin exclusive k
    60 a 5 failed contended
    600 a 6 begin read k
    601 a 6 granted 14 900 k
    601 a 6 step 900
    601 d 7 begin read k
    602 d 7 granted 15 900 k
    602 d 7 step 900
    603 a 6 step 900
    603 d 7 done
    603 d 7 release
    603 a 6 stop
    604 d 7 released true
    1500 a 6 lost
";

#[test]
fn a_good_history_passes() {
    let report = checked(GOOD);
    assert!(report.violations.is_empty(), "{report:?}");
    let shown = (
        report.operations,
        report.exclusive,
        report.permits,
        report.read,
    );
    assert_eq!(shown, (7, 1, 3, 2));
    let shown = (report.several, report.together, report.losses);
    assert_eq!(shown, (1, 3, 1));
    assert_eq!((report.kills, report.stops), (1, 1));
    assert_eq!(report.errors["contended"], 1);
}

#[test]
fn a_run_that_shows_nothing_fails() {
    let report = checked(GOOD);
    assert!(report.complaints(1000).len() > 5);
}

#[test]
fn two_hold_a_key_alone() {
    let said = complaint(
        "1 a 1 begin exclusive k
         1 a 1 granted 10 500 k
         1 a 1 step 500
         2 b 2 begin exclusive k
         2 b 2 granted 11 500 k
         2 b 2 step 500
         3 a 1 step 500
         3 a 1 done
         4 b 2 done",
    );
    assert!(said.contains("beside operation 1"), "{said}");
}

#[test]
fn a_reader_is_let_in_beside_a_writer() {
    let said = complaint(
        "1 a 1 begin exclusive k
         1 a 1 granted 10 500 k
         1 a 1 step 500
         2 b 2 begin read k
         2 b 2 granted 11 500 k
         2 b 2 step 500
         2 b 2 done
         3 a 1 step 500
         3 a 1 done",
    );
    assert!(said.starts_with("operation 2 holds k (read)"), "{said}");
}

#[test]
fn one_permit_too_many() {
    let said = complaint(
        "1 a 1 begin permits-2 k
         1 a 1 granted 10 500 k
         1 a 1 step 500
         1 a 2 begin permits-2 k
         1 a 2 granted 11 500 k
         1 a 2 step 500
         2 b 3 begin permits-2 k
         2 b 3 granted 12 500 k
         2 b 3 step 500
         2 b 3 done
         3 a 1 step 500
         3 a 1 done
         3 a 2 step 500
         3 a 2 done",
    );
    assert!(
        said.starts_with("operation 3 holds one of 2 permits"),
        "{said}"
    );
}

#[test]
fn permits_of_another_number_are_another_kind() {
    let said = complaint(
        "1 a 1 begin permits-2 k
         1 a 1 granted 10 500 k
         1 a 1 step 500
         2 b 2 begin permits-3 k
         2 b 2 granted 11 500 k
         2 b 2 step 500
         2 b 2 done
         3 a 1 step 500
         3 a 1 done",
    );
    assert!(
        said.starts_with("operation 2 holds k (permits-3)"),
        "{said}"
    );
}

#[test]
fn the_second_key_of_two_is_somebody_elses() {
    let said = complaint(
        "1 a 1 begin exclusive m
         1 a 1 granted 10 500 m
         1 a 1 step 500
         2 b 2 begin exclusive k m
         2 b 2 granted 11 500 m k
         2 b 2 step 500
         2 b 2 done
         3 a 1 step 500
         3 a 1 done",
    );
    assert!(said.starts_with("operation 2 holds m"), "{said}");
}

#[test]
fn a_release_is_confirmed_although_somebody_else_was_in() {
    let said = complaint(
        "1 a 1 begin exclusive k
         1 a 1 granted 10 500 k
         1 a 1 step 500
         1 a 1 done
         2 b 2 begin exclusive k
         2 b 2 granted 11 500 k
         2 b 2 step 500
         2 b 2 done
         3 a 1 release
         4 a 1 released true",
    );
    assert!(said.contains("beside operation 1"), "{said}");
}

#[test]
fn a_later_holder_has_a_smaller_fence() {
    let said = complaint(
        "1 a 1 begin read k
         1 a 1 granted 10 500 k
         1 a 1 step 500
         1 a 1 done
         2 b 2 begin exclusive k
         2 b 2 granted 9 500 k
         2 b 2 step 500
         2 b 2 done",
    );
    assert!(said.contains("with the fence 9 after 10"), "{said}");
}

/// A holder works on after its lock was revoked, by force or since the server has forgotten it, when numbers
/// up to `highest` had been given out.
fn after_it_was_revoked(highest: u64) -> Report {
    checked(&format!(
        "1 a 1 begin exclusive k
         1 a 1 granted 10 500 k
         1 a 1 step 500
         2 a 1 revoked k 1500000 {highest}
         3 b 2 begin exclusive k
         3 b 2 granted 11 500 k
         3 b 2 step 500
         4 a 1 step 500
         4 a 1 lost
         5 b 2 step 500
         5 b 2 done"
    ))
}

#[test]
fn the_holder_of_a_revoked_lock_may_not_know_it_yet() {
    let report = after_it_was_revoked(10);
    assert!(report.violations.is_empty(), "{report:?}");
    assert_eq!(report.revoked, 1);
}

#[test]
fn who_was_granted_a_lock_after_it_was_revoked_is_not_excused() {
    let report = after_it_was_revoked(9);
    assert!(
        report.violations[0].what.contains("beside operation 1"),
        "{report:?}"
    );
}

#[test]
fn readers_need_no_order_among_themselves() {
    let report = checked(
        "1 a 1 begin read k
         1 a 1 granted 10 500 k
         1 a 1 step 500
         1 a 1 done
         2 b 2 begin read k
         2 b 2 granted 9 500 k
         2 b 2 step 500
         2 b 2 done",
    );
    assert!(report.violations.is_empty(), "{report:?}");
}

#[test]
fn two_have_one_fence() {
    let said = complaint(
        "1 a 1 begin read k
         1 a 1 granted 10 500 k
         1 a 1 cancelled
         2 b 2 begin read m
         2 b 2 granted 10 500 m
         2 b 2 cancelled",
    );
    assert!(said.contains("has the fence 10 of operation 1"), "{said}");
}

#[test]
fn bodies_that_must_not_be() {
    for (events, expected) in [
        ("2 a 1 step 500", "had a body without a grant"),
        (
            "2 a 1 failed contended\n3 a 1 step 500",
            "went on after its end",
        ),
        (
            "2 a 1 failed contended\n3 a 1 granted 1 500 k",
            "went on after its end",
        ),
        (
            "2 a 1 granted 1 500 k\n2 a 1 step 500\n3 a 1 failed unavailable",
            "had a body, and failed",
        ),
        (
            "2 a 1 granted 1 500 k\n2 a 1 granted 2 500 k",
            "was granted twice",
        ),
        (
            "2 a 1 granted 1 500 k\n3 a 1 lost\n4 a 1 step 500",
            "went on after its end",
        ),
        (
            "2 a 1 cancelled\n4 a 1 granted 1 500 k",
            "went on after its end",
        ),
        (
            "2 a 1 granted 1 500 k\n506 a 1 step 0",
            "had a turn after its deadline",
        ),
        ("2 a 1 granted 1 500 m", "was not granted the keys"),
        ("2 a 1 done", "ended a body without a grant"),
        ("2 a 1 failed shut-down", "failed in a way that it must not"),
        (
            "2 a 1 failed invalid-options",
            "failed in a way that it must not",
        ),
        ("2 a 1 granted 1 500 k", "never ended"),
        ("2 a 1 begin read k\n2 a 1 cancelled", "began twice"),
        (
            "2 a 2 cancelled\n2 a 1 cancelled",
            "did something before it began",
        ),
    ] {
        let said = complaint(&format!("1 a 1 begin exclusive k\n{events}"));
        assert!(said.contains(expected), "{said}: {expected}");
    }
}
