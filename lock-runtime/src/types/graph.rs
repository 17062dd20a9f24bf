//! Which holders wait for the locks of other holders, and who waits in a circle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use crate::types::fence::FencingToken;
use crate::types::finding::{Finding, Severity};
use crate::types::holder::{Holder, Status, Waiter};
use crate::types::key::LockKey;
use crate::types::kind::Kind;

/// A chain of calls that holds a lock and waits for another one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Edge {
    /// The lock that it holds.
    pub holds: LockKey,
    /// Its acquisition of that lock.
    pub holder: Holder,
    /// The lock for which it waits.
    pub waits_for: LockKey,
    /// Its acquisition of that one, which was asked for in the body under the first lock, or for
    /// several keys at once.
    pub waiter: Waiter,
    /// Whether each holder of the second lock is in its way. One of several permits may be enough.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) needs_all: bool,
}

/// Chains of calls that wait for each other: each waits for the lock that the next one holds, and
/// the last one for that of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Cycle {
    /// The chains of calls, in this order.
    pub edges: Vec<Edge>,
}

/// Which holders wait for other locks; see [`LockManager::graph`](crate::LockManager::graph).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Graph {
    /// Each chain of calls that holds a lock and waits for another one, sorted by names.
    pub edges: Vec<Edge>,
    /// Those that wait for each other.
    pub cycles: Vec<Cycle>,
    /// Chains of calls whose processes do not answer, so that it is not known whether they still
    /// hold the lock. They are in no cycle.
    pub unsure: Vec<Edge>,
    /// The servers of a cluster that did not answer, each with the reason: their locks are missing.
    pub unanswered: Vec<Box<str>>,
}

/// What one look at the locks has found.
#[derive(Debug, Default)]
pub(crate) struct Look {
    edges: Vec<Edge>,
    unsure: Vec<Edge>,
}

/// The kinds in which locks are held.
pub(crate) type Kinds = BTreeMap<LockKey, Kind>;

impl Look {
    /// Joins the holders and waiters of some locks.
    pub(crate) fn at(locks: &[Status], kinds: &Kinds) -> Self {
        let mut holders = BTreeMap::<&str, Vec<(&LockKey, &Holder)>>::new();
        for lock in locks {
            for holder in &lock.holders {
                let same = holders.entry(&holder.id).or_default();
                same.push((&lock.key, holder));
            }
        }
        let mut look = Self::default();
        for lock in locks {
            let kind = kinds.get(&lock.key);
            let mut needs_all = kind == Some(&Kind::Exclusive);
            for waiter in &lock.waiters {
                // Behind one of another kind, nobody enters before all holders have left.
                needs_all |= kind.is_some_and(|it| *it != waiter.kind);
                for held in &waiter.holds {
                    for (key, holder) in holders.get(&*held.id).into_iter().flatten() {
                        let edge = || Edge {
                            holds: (*key).clone(),
                            holder: (*holder).clone(),
                            waits_for: lock.key.clone(),
                            waiter: waiter.clone(),
                            needs_all,
                        };
                        if holder.works_under(held) {
                            look.edges.push(edge());
                        } else if holder.answers == Some(false) {
                            look.unsure.push(edge());
                        }
                    }
                }
            }
        }
        look
    }

    /// The locks of all that was found.
    pub(crate) fn keys(&self) -> BTreeSet<LockKey> {
        let all = self.edges.iter().chain(&self.unsure);
        all.flat_map(|it| [it.holds.clone(), it.waits_for.clone()])
            .collect()
    }
}

impl Graph {
    /// What two looks have found, one begun after the other had ended: each acquisition that is in
    /// both held or waited all the time between them, so all these edges existed at one moment.
    pub(crate) fn in_both(first: &Look, second: Look) -> Self {
        let kept = |before: &[Edge], now: Vec<Edge>| {
            let before: BTreeSet<_> = before.iter().map(Edge::acquisitions).collect();
            let is_kept = |it: &Edge| before.contains(&it.acquisitions());
            let mut kept: Vec<_> = now.into_iter().filter(is_kept).collect();
            let order = |it: &Edge| (it.holds.clone(), it.waits_for.clone(), it.waiter.id.clone());
            kept.sort_by_cached_key(order);
            kept
        };
        let edges = kept(&first.edges, second.edges);
        Self {
            cycles: cycles(&edges),
            edges,
            unsure: kept(&first.unsure, second.unsure),
            unanswered: Vec::new(),
        }
    }

    /// What a diagnosis says of it.
    pub(crate) fn finding(&self) -> Finding {
        if let Some(cycle) = self.cycles.first() {
            let more = match self.cycles.len() - 1 {
                0 => String::new(),
                more => format!("; {more} more"),
            };
            return Finding::fine("cycles", format!("{cycle}{more}")).but(
                Severity::Error,
                "they hold what the others wait for: nobody goes on before a wait or a lease ends",
                "take these locks in the same order everywhere, or in one call with several keys; a release by force ends a cycle",
            );
        }
        let silent = self.unsure.len();
        Finding::fine("cycles", "no holders are seen to wait for each other").unless(
            silent == 0,
            Severity::Notice,
            "holders that wait for other locks do not answer, so cycles among them are not seen",
            "`lockctl graph` names them",
        )
    }
}

/// One cycle through each edge that is in any, the shortest.
fn cycles(edges: &[Edge]) -> Vec<Cycle> {
    let mut by_lock = BTreeMap::<&LockKey, Vec<usize>>::new();
    for (number, edge) in edges.iter().enumerate().filter(|(_, it)| it.needs_all) {
        by_lock.entry(&edge.holds).or_default().push(number);
    }
    let next = |number: usize| {
        let edge = &edges[number];
        let next = by_lock.get(&edge.waits_for);
        next.into_iter().flatten().copied()
    };
    let mut cycles = Vec::new();
    let mut known = BTreeSet::<usize>::new();
    for first in by_lock.values().flatten().copied() {
        if known.contains(&first) {
            continue;
        }
        if let Some(cycle) = back_to(first, next, |it| edges[it].waits_for == edges[first].holds) {
            known.extend(&cycle);
            let edges = cycle.iter().map(|it| edges[*it].clone()).collect();
            cycles.push(Cycle { edges });
        }
    }
    cycles
}

/// The shortest way from the first number to one that closes the circle.
fn back_to<I: Iterator<Item = usize>>(
    first: usize,
    next: impl Fn(usize) -> I,
    closes: impl Fn(usize) -> bool,
) -> Option<Vec<usize>> {
    let mut before = BTreeMap::from([(first, first)]);
    let mut queue = VecDeque::from([first]);
    while let Some(mut at) = queue.pop_front() {
        if closes(at) {
            let mut way = vec![at];
            while at != first {
                at = before[&at];
                way.push(at);
            }
            way.reverse();
            return Some(way);
        }
        for other in next(at) {
            before.entry(other).or_insert_with(|| {
                queue.push_back(other);
                at
            });
        }
    }
    None
}

impl Edge {
    /// What identifies the two acquisitions.
    fn acquisitions(&self) -> (&LockKey, &str, Option<FencingToken>, &LockKey, &str) {
        let holder = &self.holder;
        let (holds, fence) = (&self.holds, holder.fencing_token);
        (holds, &holder.id, fence, &self.waits_for, &self.waiter.id)
    }
}

/// `shop::transfer` in process 7 on web-1 holds `a` for 4s and waits for `b` for 3s.
impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.holder.since.and_then(|since| since.elapsed().ok());
        let time =
            |time: Option<Duration>| time.map_or_else(String::new, |it| format!(" for {it:.0?}"));
        write!(
            f,
            "{} holds `{}`{} and waits for `{}`{}",
            self.holder,
            self.holds,
            time(held),
            self.waits_for,
            time(self.waiter.waited)
        )
    }
}

/// Its chains of calls, separated by semicolons.
impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, edge) in self.edges.iter().enumerate() {
            write!(f, "{}{edge}", if number > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::enclosing::HeldLock;

    /// A lock with a holder, and with waiters that hold other locks.
    fn lock(key: &str, (id, fence): (&str, u64), waiters: &[(&str, &str, u64)]) -> Status {
        let waiter = |(id, holds, fence): &(&str, &str, u64)| {
            let holder = Holder {
                holds: vec![HeldLock::new(*holds, *fence)],
                ..Holder::unknown(*id, None)
            };
            Waiter::new(holder, Kind::Exclusive, None)
        };
        let holder = Holder {
            fencing_token: Some(FencingToken::new(fence)),
            ..Holder::unknown(id, None)
        };
        Status {
            holders: vec![holder],
            waiting: waiters.len(),
            waiters: waiters.iter().map(waiter).collect(),
            ..Status::free(LockKey::of(key))
        }
    }

    fn look(locks: &[Status]) -> Look {
        let kinds = locks.iter().map(|it| (it.key.clone(), Kind::Exclusive));
        Look::at(locks, &kinds.collect())
    }

    fn circle() -> [Status; 2] {
        [
            lock("a", ("1", 7), &[("3", "2", 8)]),
            lock("b", ("2", 8), &[("4", "1", 7)]),
        ]
    }

    fn found(first: &[Status], second: &[Status]) -> (usize, Vec<usize>) {
        let graph = Graph::in_both(&look(first), look(second));
        let lengths = graph.cycles.iter().map(|it| it.edges.len()).collect();
        (graph.edges.len(), lengths)
    }

    #[test]
    fn holders_that_wait_for_each_other_are_a_cycle() {
        assert_eq!(found(&circle(), &circle()), (2, vec![2]));
        let long: Vec<_> = (0..5)
            .map(|at: u64| {
                let [own, next] = [at, (at + 1) % 5].map(|it| it.to_string());
                let waiter = (&*format!("w{at}"), &*next, (at + 1) % 5);
                lock(&own, (&own, at), &[waiter])
            })
            .collect();
        assert_eq!(found(&long, &long), (5, vec![5]));
        assert_eq!(found(&long[1..], &long[1..]), (3, vec![]));
    }

    #[test]
    fn what_only_one_of_two_looks_has_seen_is_in_no_graph() {
        let [a, b] = circle();
        let elsewhere = lock("b", ("2", 8), &[("5", "1", 7)]);
        for second in [
            vec![a.clone(), elsewhere],
            vec![a.clone(), lock("b", ("2", 9), &[("4", "1", 7)])],
            vec![a.clone()],
        ] {
            let (_, cycles) = found(&circle(), &second);
            assert!(cycles.is_empty(), "{second:?}");
            let (_, cycles) = found(&second, &[a.clone(), b.clone()]);
            assert!(cycles.is_empty(), "{second:?}");
        }
    }

    #[test]
    fn a_holder_under_the_same_id_with_another_number_is_another_acquisition() {
        // The first of a chain has released `a`, and a follower holds it.
        let passed = [lock("a", ("1", 8), &[("3", "2", 8)]), circle()[1].clone()];
        assert_eq!(found(&passed, &passed), (1, vec![]));
    }

    #[test]
    fn a_holder_that_does_not_answer_is_in_no_cycle() {
        let mut locks = circle();
        locks[0].holders[0].answers = Some(false);
        assert_eq!(found(&locks, &locks), (1, vec![]));
        let graph = Graph::in_both(&look(&locks), look(&locks));
        assert_eq!(graph.unsure.len(), 1);
        assert_eq!(graph.finding().severity, Severity::Notice);
    }

    #[test]
    fn one_of_several_permits_is_no_obstacle_and_a_reader_behind_a_writer_is() {
        let kinds = |kind| {
            let kind = |it: &Status| (it.key.clone(), kind);
            circle().iter().map(kind).collect::<Kinds>()
        };
        let in_kind = |held: Kind, wanted: Kind, ahead: Option<Kind>| {
            let mut locks = circle();
            for lock in &mut locks {
                lock.waiters[0].kind = wanted;
                let ahead = ahead.map(|kind| Waiter::new(Holder::unknown("9", None), kind, None));
                lock.waiters.splice(0..0, ahead);
            }
            let look = || Look::at(&locks, &kinds(held));
            Graph::in_both(&look(), look()).cycles.len()
        };
        assert_eq!(in_kind(Kind::Permits(2), Kind::Permits(2), None), 0);
        assert_eq!(in_kind(Kind::Permits(2), Kind::Exclusive, None), 1);
        assert_eq!(in_kind(Kind::Read, Kind::Read, None), 0);
        let writer = Some(Kind::Exclusive);
        assert_eq!(in_kind(Kind::Read, Kind::Read, writer), 1);
        assert_eq!(in_kind(Kind::Exclusive, Kind::Read, None), 1);
    }

    #[test]
    fn a_cycle_is_a_sentence() {
        let look = || look(&circle());
        let graph = Graph::in_both(&look(), look());
        let words =
            "somebody else holds `a` and waits for `b`; somebody else holds `b` and waits for `a`";
        assert_eq!(graph.cycles[0].to_string(), words);
        assert_eq!(graph.finding().severity, Severity::Error);
    }
}
