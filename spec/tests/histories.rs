//! A history that no rule breaks is accepted; one wrong step is refused, and the refusal says what was before it.

use spec::queue::history::{Answer, Call, Event, Grant, History, Id, Outcome, Step, Who};
use spec::queue::rules::Rules;
use spec::queue::setting::Company;

const SECOND: u64 = 1_000_000_000;

/// Two clients that are connected, and one lock.
fn history() -> History {
    let rules = Rules {
        ttl: 10 * SECOND,
        claim: 3 * SECOND,
        margin: 0,
        silence: 3 * SECOND,
        window: 1000,
        followers: 63,
        cooldown: 0,
        ticket: 0,
        call_timeout: 0,
        quarantine: false,
        bug: None,
    };
    let mut history = History::new(rules, 1, 2);
    for client in 0..2 {
        history
            .step(at(0, Event::Listens(client, true)))
            .expect("a connection");
    }
    history
}

fn at(seconds: u64, event: Event) -> Step {
    Step {
        at: seconds * SECOND,
        lock: 0,
        event,
    }
}

fn who(token: u128) -> Who {
    Who {
        token: Id(token),
        ttl: 10 * SECOND,
    }
}

fn ran(seconds: u64, client: usize, call: Call, reply: Answer, grants: Vec<Grant>) -> Step {
    let outcome = Outcome::Replies(vec![reply]);
    at(
        seconds,
        Event::Ran {
            client,
            calls: vec![call],
            outcome,
            grants,
        },
    )
}

fn to_wait(token: u128, company: Company) -> Call {
    Call::Acquire {
        who: who(token),
        position: None,
        company,
        tries: false,
        rank: 1,
    }
}

fn acquire(seconds: u64, token: u128, reply: Answer) -> Step {
    let call = to_wait(token, Company::Unsaid);
    ran(seconds, usize::from(token > 1), call, reply, Vec::new())
}

fn release(seconds: u64, token: u128, ours: bool, granted: &[(u128, u64)]) -> Step {
    let call = Call::Release(who(token), 0);
    let grants = granted.iter().map(|(token, fence)| Grant {
        token: Id(*token),
        fence: *fence,
        followers: Vec::new(),
    });
    ran(
        seconds,
        usize::from(token > 1),
        call,
        Answer::Ours(ours),
        grants.collect(),
    )
}

/// The first holder renews its lease.
fn renewal(seconds: u64, ours: bool) -> Step {
    let call = Call::Renew(who(1));
    ran(seconds, 0, call, Answer::Ours(ours), Vec::new())
}

fn polled(seconds: u64, client: usize, fence: u64) -> Step {
    at(seconds, Event::Polled(client, fence))
}

/// One holds the lock, two wait for it.
fn queue() -> Vec<Step> {
    vec![
        acquire(1, 1, Answer::Granted(100)),
        polled(1, 0, 100),
        acquire(2, 2, Answer::Waiting(Some(2_000_000))),
        acquire(3, 3, Answer::Waiting(Some(3_000_000))),
    ]
}

/// The history after these steps, none of which the model refuses.
fn accepted(mut history: History, steps: Vec<Step>) -> History {
    for step in steps {
        if let Err(refusal) = history.step(step) {
            panic!("{refusal}");
        }
    }
    history
}

/// What the model says against the last of these steps; all before it are accepted.
fn refused(steps: Vec<Step>, last: Step) -> String {
    let mut history = accepted(history(), steps);
    history.step(last).expect_err("a refusal").to_string()
}

/// Somebody joins the queue when the lock is free again, and the first waiter is granted it.
fn handed_over(seconds: u64) -> Step {
    let call = to_wait(4, Company::Unsaid);
    let first = Grant {
        token: Id(3),
        fence: 102,
        followers: Vec::new(),
    };
    let joined = Answer::Waiting(Some(8_000_000));
    ran(seconds, 1, call, joined, vec![first])
}

#[test]
fn a_lock_that_is_handed_over_is_accepted() {
    let rest = [
        release(4, 1, true, &[(2, 101)]),
        polled(5, 1, 101),
        release(5, 1, false, &[]),
        // The lease of a grant that is not renewed ends after 3 s.
        handed_over(8),
    ];
    let history = accepted(history(), [queue(), rest.into()].concat());
    assert_eq!(history.counts.accepted, 10);
}

#[test]
fn a_grant_to_two_is_refused() {
    let refusal = refused(queue(), acquire(4, 4, Answer::Granted(101)));
    assert!(refusal.contains("the reply is [Waiting("), "{refusal}");
    assert!(
        refusal.contains("owner: Holder 00000000000000000000000000000001"),
        "{refusal}"
    );
    assert!(
        refusal.starts_with("the model refuses step 7 of lock 0"),
        "{refusal}"
    );
}

#[test]
fn a_grant_out_of_order_is_refused() {
    let refusal = refused(queue(), release(4, 1, true, &[(3, 101)]));
    assert!(
        refusal
            .contains("the published grants are [Grant { token: 00000000000000000000000000000002,"),
        "{refusal}"
    );
}

#[test]
fn a_fence_that_does_not_grow_is_refused() {
    let refusal = refused(queue(), release(4, 1, true, &[(2, 100)]));
    assert!(refusal.contains("fences are above 100"), "{refusal}");
}

#[test]
fn a_release_that_frees_the_lock_of_another_is_refused() {
    let refusal = refused(queue(), release(4, 3, true, &[(2, 101)]));
    assert!(refusal.contains("the reply is [Ours(false)]"), "{refusal}");
}

#[test]
fn a_lease_that_ends_early_or_late_is_refused() {
    let early = refused(queue(), acquire(10, 4, Answer::Gone));
    assert!(early.contains("the reply is [Waiting("), "{early}");
    let late = refused(queue(), renewal(11, true));
    assert!(late.contains("the reply is [Ours(false)]"), "{late}");
    let lost = refused(queue(), renewal(10, false));
    assert!(lost.contains("the reply is [Ours(true)]"), "{lost}");
}

/// A history of clocks that differ by a second.
fn blurred() -> History {
    let mut history = history();
    history.blur(SECOND);
    history
}

#[test]
fn a_lease_that_is_renewed_after_its_time_lasts_as_long_as_any() {
    let mut steps = queue();
    steps.push(renewal(11, true));
    steps.push(acquire(12, 4, Answer::Waiting(Some(12_000_000))));
    steps.push(acquire(19, 5, Answer::Waiting(Some(19_000_000))));
    accepted(blurred(), steps);
}

/// One of several of its client that wait.
fn joined(seconds: u64, client: usize, token: u128, position: u64) -> Step {
    let call = to_wait(token, Company::More);
    let reply = Answer::Waiting(Some(position));
    ran(seconds, client, call, reply, Vec::new())
}

/// The first holder releases the lock, and these are granted it together.
fn released_to(seconds: u64, first: u128, fence: u64, follower: u128) -> Step {
    let chain = Grant {
        token: Id(first),
        fence,
        followers: vec![Id(follower)],
    };
    let call = Call::Release(who(1), 0);
    ran(seconds, 0, call, Answer::Ours(true), vec![chain])
}

#[test]
fn a_client_that_asks_after_its_time_counts_as_long_as_any() {
    let asked = Call::Ask(vec![who(2)]);
    let steps = vec![
        acquire(1, 1, Answer::Granted(100)),
        joined(2, 1, 2, 2_000_000),
        joined(3, 1, 3, 3_000_000),
        ran(6, 1, asked, Answer::Waiting(None), Vec::new()),
        renewal(7, true),
        released_to(8, 2, 101, 3),
    ];
    accepted(blurred(), steps);
}

#[test]
fn followers_of_one_that_hears_nothing_are_not_ahead_of_others() {
    let steps = vec![
        acquire(1, 1, Answer::Granted(100)),
        joined(2, 1, 2, 2_000_000),
        joined(2, 0, 3, 2_000_100),
        joined(2, 1, 4, 2_000_200),
        joined(3, 0, 5, 3_000_000),
        at(3, Event::Listens(1, false)),
        released_to(4, 3, 102, 5),
    ];
    accepted(history(), steps);
}

#[test]
fn a_body_without_the_lock_is_refused() {
    let handed_over = || [queue(), vec![release(4, 1, true, &[(2, 101)])]].concat();
    let former = refused(handed_over(), polled(4, 0, 100));
    assert!(
        former.contains("the server has not the lock for this body"),
        "{former}"
    );
    let ended = refused(handed_over(), polled(8, 1, 101));
    assert!(
        ended.contains("the server has not the lock for this body"),
        "{ended}"
    );
}

#[test]
fn a_token_that_acquires_twice_is_refused() {
    let refusal = refused(queue(), acquire(4, 2, Answer::Waiting(Some(2_000_000))));
    assert!(
        refusal.contains("nobody acquires twice under one token"),
        "{refusal}"
    );
}

#[test]
fn a_lock_that_was_left_out_is_checked_once_it_is_free() {
    let outside = [
        at(4, Event::Outside),
        acquire(4, 4, Answer::Granted(101)),
        at(5, Event::Free(101)),
        polled(5, 0, 100),
    ];
    let steps = [queue(), outside.into()].concat();
    let refusal = refused(steps, release(6, 1, true, &[]));
    assert!(refusal.contains("the reply is [Ours(false)]"), "{refusal}");
}
