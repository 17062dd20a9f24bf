//! Redirections and answers by hand.

use super::*;
use crate::backend::redis::protocol::call::Call;
use crate::backend::redis::protocol::inspection::Inspect;

const A: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1).after(Duration::from_millis(millis))
}

fn host(name: &str, port: u16) -> Host {
    let name = name.to_owned();
    Host { name, port }
}

fn range(first: u16, last: u16, port: u16) -> Range {
    let master = host("", port);
    Range {
        first,
        last,
        master,
    }
}

fn sent() -> Sent {
    Sent::new(Call::Step(Inspect::Topology), at(0))
}

fn redirect(slot: u16, name: &str, port: u16, asking: bool) -> Redirect {
    Redirect {
        slot,
        host: name.to_owned(),
        port,
        asking,
    }
}

/// Two nodes `a:1` and `a:2` with half of the slots each.
fn halves() -> (Routes, NodeId, NodeId) {
    let mut routes = Routes::new(&[host("a", 1)], at(0));
    assert!(routes.begins_to_ask(at(0)));
    let (seed, _) = routes.nodes().next().expect("the seed");
    routes.learned(at(1), seed, vec![range(0, 8191, 1), range(8192, 16383, 2)]);
    let second = routes.of(16383).expect("a node");
    (routes, seed, second)
}

#[test]
fn an_answer_says_who_serves_a_slot() {
    let (routes, first, second) = halves();
    assert!(routes.is_known());
    assert_eq!(routes.of(0), Some(first));
    assert_eq!(routes.of(8191), Some(first));
    assert_eq!(routes.of(8192), Some(second));
    assert_eq!(routes.masters(), [first, second]);
    assert_eq!(routes.of(16384), None);
}

#[test]
fn a_moved_slot_is_known_at_once_and_asked_about_once() {
    let (mut routes, first, second) = halves();
    let moved = redirect(7, "", 2, false);
    for _ in 0..3 {
        let mut sent = sent();
        let to = routes.follow(at(150), first, &moved, &mut sent);
        let to = to.expect("a node");
        assert_eq!((to, sent.route.hops, sent.route.asking), (second, 1, false));
    }
    assert_eq!(routes.of(7), Some(second));
    assert_eq!(routes.of(8), Some(first));
    assert!(routes.begins_to_ask(at(150)));
    assert!(!routes.begins_to_ask(at(150)), "it was asked already");

    let all = || {
        [(0, 6, 1), (7, 7, 2), (8, 8191, 1), (8192, 16383, 2)]
            .map(|(first, last, port)| range(first, last, port))
            .to_vec()
    };
    let changed = routes.learned(at(151), first, all());
    assert!(changed.contains(7), "nobody has asked there yet");
    assert!(!changed.contains(8));
    assert!(routes.learned(at(152), first, all()).is_empty());
}

#[test]
fn the_topology_is_asked_for_at_most_every_100_ms() {
    let (mut routes, first, _) = halves();
    routes.doubt(at(1));
    assert_eq!(routes.next_wakeup(), Some(at(0).after(A)));
    assert!(!routes.begins_to_ask(at(99)));
    assert!(routes.begins_to_ask(at(100)));
    routes.doubt(at(150));
    assert!(!routes.begins_to_ask(at(200)), "an answer is awaited");
    routes.not_learned(at(160));
    assert!(!routes.begins_to_ask(at(199)));
    assert!(routes.begins_to_ask(at(200)));
    routes.learned(at(201), first, vec![range(0, 16383, 1)]);
    assert_eq!(routes.next_wakeup(), None);
}

#[test]
fn asking_changes_no_route() {
    let (mut routes, first, second) = halves();
    let ask = redirect(7, "a", 2, true);
    let mut sent = sent();
    let to = routes.follow(at(150), first, &ask, &mut sent);
    assert_eq!((to, sent.route.asking), (Some(second), true));
    assert_eq!(routes.of(7), Some(first));
    assert_eq!(routes.next_wakeup(), None);
}

#[test]
fn a_node_that_a_redirection_names_is_kept_until_it_serves_a_slot() {
    let (mut routes, first, _) = halves();
    let ask = redirect(7, "b", 3, true);
    let guest = routes.follow(at(150), first, &ask, &mut sent());
    let guest = guest.expect("a node");
    let both = || vec![range(0, 8191, 1), range(8192, 16383, 2)];
    routes.learned(at(200), first, both());
    assert!(routes.contains(guest));
    routes.learned(at(70_000), first, both());
    assert!(!routes.contains(guest));
}

#[test]
fn a_node_that_serves_no_slot_any_more_is_forgotten() {
    let (mut routes, first, second) = halves();
    let changed = routes.learned(at(200), first, vec![range(0, 16383, 1)]);
    assert!(!routes.contains(second));
    assert!(changed.contains(8192) && !changed.contains(8191));
    let changed = routes.learned(at(300), first, vec![range(0, 16383, 1)]);
    assert!(changed.is_empty());
}

#[test]
fn an_empty_host_is_that_of_the_node_which_answers() {
    let (mut routes, _, second) = halves();
    let moved = redirect(9000, "", 5, false);
    let to = routes.follow(at(150), second, &moved, &mut sent());
    let named = routes.nodes().find(|(id, _)| Some(*id) == to);
    assert_eq!(named.map(|(_, it)| it.clone()), Some(host("a", 5)));
}

#[test]
fn nodes_that_name_each_other_do_not_keep_a_call_for_ever() {
    let (mut routes, first, second) = halves();
    let (mut call, mut from) = (sent(), first);
    for hops in 0.. {
        let to = if from == first { 2 } else { 1 };
        let followed = routes.follow(at(150), from, &redirect(7, "", to, false), &mut call);
        let Some(next) = followed else {
            assert_eq!(hops, 5);
            return;
        };
        from = next;
        assert!(from == first || from == second);
    }
}

#[test]
fn a_node_that_does_not_answer_keeps_nobody_from_asking_another_one() {
    let (mut routes, first, second) = halves();
    routes.doubt(at(200));
    assert!(routes.begins_to_ask(at(200)));
    assert_eq!(routes.next_wakeup(), Some(at(450)));
    assert!(routes.begins_to_ask(at(450)));
    assert!(routes.awaits(at(450)));
    routes.answered(at(450));
    routes.learned(at(451), second, vec![range(0, 16383, 2)]);
    assert!(!routes.awaits(at(200)), "that answer would be out of date");
    assert!(!routes.contains(first));
    assert_eq!(routes.next_wakeup(), None);
}

#[test]
fn an_answer_that_comes_late_counts_unless_a_later_one_has_come() {
    let (mut routes, ..) = halves();
    for question in [200, 450, 700] {
        routes.doubt(at(question));
        assert!(routes.begins_to_ask(at(question)));
    }
    assert!(routes.awaits(at(200)));
    routes.answered(at(200));
    assert!(!routes.awaits(at(200)) && routes.awaits(at(700)));
    routes.answered(at(700));
    assert!(!routes.awaits(at(450)), "that answer would be out of date");
}

#[test]
fn a_node_that_knows_of_no_slots_leads_to_the_seeds() {
    let seeds = [host("a", 1), host("seed", 9)];
    let mut routes = Routes::new(&seeds, at(0));
    let (first, _) = routes.nodes().next().expect("a seed");
    routes.learned(at(1), first, vec![range(0, 16383, 1)]);
    assert!(routes.nodes().all(|(_, it)| *it != seeds[1]));
    routes.learned(at(2), first, vec![]);
    assert!(routes.nodes().any(|(_, it)| *it == seeds[1]));
}

#[test]
fn a_node_that_has_left_the_cluster_does_not_end_it() {
    let (mut routes, first, second) = halves();
    let changed = routes.learned(at(200), first, vec![]);
    assert!(changed.is_empty());
    assert_eq!(routes.masters(), [first, second]);
    assert_eq!(routes.of(7), Some(first));
    assert!(routes.begins_to_ask(at(300)), "another one is asked");
}

#[test]
fn seeds_are_gone_back_to_when_no_node_can_be_reached() {
    let seeds = [host("a", 1), host("seed", 9)];
    let mut routes = Routes::new(&seeds, at(0));
    let (first, _) = routes.nodes().next().expect("a seed");
    routes.learned(at(1), first, vec![range(0, 16383, 1)]);
    assert!(routes.has_other_nodes());
    let known = |routes: &Routes| routes.nodes().map(|(_, it)| it.clone()).collect::<Vec<_>>();
    assert_eq!(known(&routes), seeds[..1]);
    routes.return_to_seeds(at(2));
    assert!(routes.has_other_nodes());
    assert_eq!(known(&routes), seeds);
    assert_eq!(routes.of(7), Some(first), "which is not forgotten");
    // Not at each answer.
    let mut returns = |now| {
        routes.learned(at(now), first, vec![range(0, 16383, 1)]);
        routes.return_to_seeds(at(now));
        routes.nodes().count() == seeds.len()
    };
    let returned: Vec<_> = (3..4_000).filter(|now| returns(*now)).collect();
    assert_eq!(returned, [252, 752, 1_752, 2_752, 3_752]);
    routes.reached();
    routes.learned(at(4_000), first, vec![range(0, 16383, 1)]);
    assert_eq!(routes.return_at(), Some(at(4_752)));
}

#[test]
fn a_node_without_a_cluster_tells_nothing() {
    let mut routes = Routes::new(&[host("a", 1)], at(0));
    assert!(routes.begins_to_ask(at(0)));
    let (seed, _) = routes.nodes().next().expect("the seed");
    routes.learned(at(1), seed, vec![]);
    assert!(!routes.is_known());
    assert!(routes.contains(seed), "there is nobody else to ask");
}
