//! Each property notices a rule that is broken, and the search prints the shortest way there (`-- --nocapture`).

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

use spec::ordered;
use spec::queue::properties::{
    COOLDOWNS_LAST, FENCES_GROW, NO_LATE_POLL, NOBODY_IS_OVERTAKEN, NOBODY_WAITS_FOR_EVER,
    ONE_HOLDER,
};
use spec::queue::rules::{Bug, Rules};
use spec::queue::{Fault, Plan, Scenario};
use spec::scenarios::{FAULTS, chain, cooldown, plan, short_renewals, three, ticket, two};
use stateright::{Checker, HasDiscoveries, Model};

/// Searches for a state in which the property does not hold, and prints the actions that lead there.
fn assert_found<M>(bug: &str, property: &'static str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Debug + Hash + Clone + PartialEq + Send + Sync,
    M::Action: Debug + Clone + PartialEq + Send + Sync,
{
    let wanted = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let found = model
        .checker()
        .finish_when(wanted)
        .spawn_bfs()
        .join()
        .discovery(property);
    let path = found.unwrap_or_else(|| panic!("{bug} goes unnoticed: {property}"));
    println!("{bug}, not true: {property}");
    for action in path.into_actions() {
        println!("    {action:?}");
    }
}

/// Breaks the rule of the queue while these acquisitions meet with so many of these faults.
fn in_queue(bug: Bug, property: &'static str, plans: Vec<Plan>, faults: u8, kinds: &[Fault]) {
    let rules = Rules {
        bug: Some(bug),
        ..Rules::default()
    };
    assert_found(
        &format!("{bug:?}"),
        property,
        Scenario::new("", plans, faults, kinds).with(rules),
    );
}

#[test]
fn one_holder() {
    in_queue(
        Bug::ReleaseOfAnybody,
        ONE_HOLDER,
        three(),
        1,
        &[Fault::Disconnect],
    );
    in_queue(
        Bug::QuarantineSkipped,
        ONE_HOLDER,
        two(),
        1,
        &[Fault::Forget],
    );
    in_queue(Bug::AdoptedWithoutTicket, ONE_HOLDER, ticket(), 0, &[]);
}

#[test]
fn no_poll_after_the_deadline() {
    in_queue(
        Bug::CountedFromTheReply,
        NO_LATE_POLL,
        two(),
        1,
        &[Fault::Stop],
    );
    in_queue(
        Bug::CountedFromThePush,
        NO_LATE_POLL,
        two(),
        1,
        &[Fault::Stop],
    );
    in_queue(
        Bug::PolledWithoutALook,
        NO_LATE_POLL,
        two(),
        1,
        &[Fault::Stop],
    );
}

/// One fault lets a short renewal come late, the other keeps the next renewal from the server.
#[test]
#[ignore = "takes half a minute: `make spec` runs it"]
fn no_poll_after_a_lease_was_cut() {
    let rules = Rules {
        bug: Some(Bug::ShortRenewalForgotten),
        ..short_renewals()
    };
    let scenario = Scenario::new("", chain(), 2, &[Fault::Disconnect]).with(rules);
    assert_found("ShortRenewalForgotten", NO_LATE_POLL, scenario);
}

#[test]
fn fences_grow() {
    in_queue(Bug::FollowersWithoutFences, FENCES_GROW, chain(), 0, &[]);
    in_queue(Bug::AcquireSentAgain, FENCES_GROW, two(), 2, &FAULTS);
    in_queue(
        Bug::CounterStartsAnew,
        FENCES_GROW,
        two(),
        1,
        &[Fault::Forget],
    );
}

#[test]
fn nobody_waits_for_ever() {
    in_queue(
        Bug::NobodyAsks,
        NOBODY_WAITS_FOR_EVER,
        two(),
        1,
        &[Fault::Disconnect],
    );
}

#[test]
fn nobody_is_overtaken() {
    in_queue(Bug::LastComesFirst, NOBODY_IS_OVERTAKEN, three(), 0, &[]);
    in_queue(
        Bug::NewcomerPasses,
        NOBODY_IS_OVERTAKEN,
        three(),
        1,
        &[Fault::Crash],
    );
    let four = vec![plan(0, 0), plan(1, 0), plan(2, 0), plan(1, 0)];
    in_queue(Bug::FollowersOvertake, NOBODY_IS_OVERTAKEN, four, 0, &[]);
}

#[test]
#[ignore = "takes half a minute: `make spec` runs it"]
fn nobody_loses_a_position() {
    in_queue(
        Bug::PositionForgotten,
        NOBODY_IS_OVERTAKEN,
        three(),
        2,
        &[Fault::Disconnect],
    );
}

#[test]
fn cooldowns_and_tickets_last() {
    in_queue(
        Bug::CooldownUnderItsName,
        COOLDOWNS_LAST,
        cooldown(),
        1,
        &[Fault::Disconnect],
    );
    in_queue(
        Bug::TicketEndsWithTheLease,
        COOLDOWNS_LAST,
        ticket(),
        1,
        &[Fault::Disconnect],
    );
}

/// Breaks the rule of an ordered store.
fn in_order(
    bug: ordered::Bug,
    property: &'static str,
    clients: u8,
    faults: u8,
    kinds: &[ordered::Fault],
) {
    let mut scenario = ordered::Scenario::new("", clients, faults, kinds);
    scenario.bug = Some(bug);
    scenario.gives_up = bug == ordered::Bug::UnwantedEntryStays;
    assert_found(&format!("{bug:?}"), property, scenario);
}

#[test]
fn sessions_have_one_holder() {
    use ordered::Fault::{CutOff, Disconnect};
    in_order(
        ordered::Bug::OneDeletionIsProof,
        ONE_HOLDER,
        3,
        1,
        &[Disconnect],
    );
    in_order(
        ordered::Bug::OwnEntryNotLookedFor,
        ONE_HOLDER,
        2,
        2,
        &[CutOff, Disconnect],
    );
    in_order(
        ordered::Bug::HeartbeatOfACutOffServer,
        ONE_HOLDER,
        2,
        1,
        &[CutOff],
    );
}

#[test]
fn no_poll_after_the_deadline_of_a_session() {
    use ordered::Fault::{CutOff, Stop};
    in_order(
        ordered::Bug::CountedFromTheAnswer,
        NO_LATE_POLL,
        1,
        1,
        &[Stop],
    );
    in_order(
        ordered::Bug::PolledWithoutALook,
        NO_LATE_POLL,
        1,
        1,
        &[Stop],
    );
    in_order(
        ordered::Bug::HeartbeatOfACutOffServer,
        NO_LATE_POLL,
        1,
        1,
        &[CutOff],
    );
}

#[test]
fn fences_of_entries_grow() {
    in_order(ordered::Bug::NumbersBeginAgain, FENCES_GROW, 2, 0, &[]);
}

#[test]
fn nobody_watches_for_ever() {
    use ordered::Fault::Disconnect;
    in_order(ordered::Bug::WatchTrusted, NOBODY_WAITS_FOR_EVER, 2, 0, &[]);
    in_order(
        ordered::Bug::CreateSentAgain,
        NOBODY_WAITS_FOR_EVER,
        2,
        1,
        &[Disconnect],
    );
    in_order(
        ordered::Bug::UnwantedEntryStays,
        NOBODY_WAITS_FOR_EVER,
        1,
        1,
        &[Disconnect],
    );
}

#[test]
fn no_entry_is_overtaken() {
    in_order(
        ordered::Bug::OneDeletionIsProof,
        NOBODY_IS_OVERTAKEN,
        3,
        1,
        &[ordered::Fault::Disconnect],
    );
}
