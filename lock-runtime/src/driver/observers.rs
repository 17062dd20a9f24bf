//! The observers of elections: looks at each election twice a second, once for all of its
//! observers, and shows them each new leader.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::backend::Request;
use crate::base::agenda::Agenda;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::fence::FencingToken;
use crate::types::holder::Status;
use crate::types::key::LockKey;
use crate::types::leader::Leader;
use crate::types::query::Query;

/// Short enough for leaders that last a second, even if an answer takes its time.
const INTERVAL: Duration = Duration::from_millis(500);

/// Where leaders are shown.
pub(crate) type Observer = mpsc::UnboundedSender<Leader>;

type Answer = oneshot::Receiver<Result<Status, Cause>>;

#[derive(Debug, Default)]
pub(super) struct Observers {
    elections: HashMap<LockKey, Election>,
    /// When to look at each of them next.
    looks: Agenda<LockKey>,
    /// The looks that are not answered yet, one for each election at most.
    unanswered: Vec<(LockKey, Answer)>,
}

#[derive(Debug, Default)]
struct Election {
    observers: Vec<Seat>,
    /// Who led at the last look.
    leader: Option<Leader>,
    /// The token of the last leader.
    last: Option<FencingToken>,
    /// Whether the next look is due, and waits for the answer to the last one.
    is_overdue: bool,
}

/// An observer, who comes at any time.
#[derive(Debug)]
struct Seat {
    observer: Observer,
    /// The token of the last leader that it was shown.
    shown: Option<FencingToken>,
}

impl Observers {
    /// Shows the present leader, if it is known, and all that follow.
    pub(super) fn add(&mut self, now: Moment, key: LockKey, observer: Observer) {
        if !self.elections.contains_key(&key) {
            self.looks.insert(now, key.clone());
        }
        let election = self.elections.entry(key).or_default();
        let mut seat = Seat {
            observer,
            shown: None,
        };
        if let Some(leader) = &election.leader {
            seat.show(leader);
        }
        election.observers.push(seat);
    }

    /// Shows what the last looks have found, and returns those that are due.
    pub(super) fn tick(&mut self, now: Moment) -> Vec<Request> {
        self.take_answers(now);
        let mut looks = Vec::new();
        while let Some(key) = self.looks.due(now) {
            if self.is_unobserved(&key) {
                self.elections.remove(&key);
                continue;
            }
            if self.unanswered.iter().any(|(of, _)| *of == key) {
                self.elections.entry(key).or_default().is_overdue = true;
                continue;
            }
            let (reply, answer) = oneshot::channel();
            looks.push(Request::Query(Query::Status(key.clone(), reply)));
            self.unanswered.push((key.clone(), answer));
            self.looks.insert(now.after(INTERVAL), key);
        }
        looks
    }

    pub(super) fn next_wakeup(&self) -> Option<Moment> {
        self.looks.next()
    }

    /// A look that fails, since the server cannot be asked, is followed by the next one.
    fn take_answers(&mut self, now: Moment) {
        let Self {
            elections,
            looks,
            unanswered,
        } = self;
        unanswered.retain_mut(|(key, answer)| {
            let answer = match answer.try_recv() {
                Err(TryRecvError::Empty) => return true,
                Ok(answer) => answer.ok(),
                Err(TryRecvError::Closed) => None,
            };
            if let Some(election) = elections.get_mut(key) {
                // Nobody knows whether the last leader still leads.
                election.show(answer.and_then(Leader::among));
                if std::mem::take(&mut election.is_overdue) {
                    looks.insert(now, key.clone());
                }
            }
            false
        });
    }

    fn is_unobserved(&mut self, key: &LockKey) -> bool {
        self.elections.get_mut(key).is_none_or(|election| {
            election.observers.retain(|it| !it.observer.is_closed());
            election.observers.is_empty()
        })
    }
}

impl Election {
    /// A server that has lost its data may show an older leader, which nobody is to follow.
    fn show(&mut self, leader: Option<Leader>) {
        self.leader = leader.filter(|it| self.last.is_none_or(|last| last <= it.fencing_token));
        if let Some(leader) = &self.leader {
            self.last = Some(leader.fencing_token);
            for seat in &mut self.observers {
                seat.show(leader);
            }
        }
    }
}

impl Seat {
    fn show(&mut self, leader: &Leader) {
        if self.shown != Some(leader.fencing_token) {
            self.shown = Some(leader.fencing_token);
            let _ = self.observer.send(leader.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;
    use crate::base::clock::Clock;
    use crate::types::holder::Holder;

    /// An election, and a server that is asked about it.
    struct Scene {
        clock: Clock,
        observers: Observers,
    }

    impl Scene {
        fn new() -> Self {
            Self {
                clock: Clock::manual(),
                observers: Observers::default(),
            }
        }

        fn observe(&mut self) -> mpsc::UnboundedReceiver<Leader> {
            let (observer, leaders) = mpsc::unbounded_channel();
            let now = self.clock.now();
            self.observers.add(now, LockKey::of("k"), observer);
            leaders
        }

        /// How many looks are due, each of which is answered at once.
        fn look(&mut self, answer: impl Fn() -> Result<Status, Cause>) -> usize {
            let due = self.observers.tick(self.clock.now());
            let looks = due.len();
            for request in due {
                let Request::Query(Query::Status(_, reply)) = request else {
                    panic!("it is no look: {request:?}");
                };
                let _ = reply.send(answer());
            }
            let again = self.observers.tick(self.clock.now());
            assert!(again.is_empty(), "nothing is due at once: {again:?}");
            self.clock.advance(INTERVAL);
            looks
        }

        fn finds(&mut self, fence: u64) -> usize {
            self.look(|| Ok(led(fence)))
        }
    }

    fn led(fence: u64) -> Status {
        let leader = Holder {
            fencing_token: Some(FencingToken::new(fence)),
            data: Some(fence.to_string().into()),
            ..Holder::unknown("token", None)
        };
        let mut status = Status::free(LockKey::of("k"));
        status.holders.push(leader);
        status
    }

    fn seen(leaders: &mut mpsc::UnboundedReceiver<Leader>) -> Vec<u64> {
        std::iter::from_fn(|| leaders.try_recv().ok())
            .map(|it| it.fencing_token.get())
            .collect()
    }

    // Section: guarantees.md#elections
    #[test]
    fn leaders_are_shown_once_and_in_the_order_of_their_fences() {
        let mut scene = Scene::new();
        let mut leaders = scene.observe();
        for (fence, shown) in [(3, &[3][..]), (3, &[]), (5, &[5]), (4, &[]), (6, &[6])] {
            assert_eq!(scene.finds(fence), 1);
            assert_eq!(seen(&mut leaders), shown, "{fence}");
        }
    }

    // Section: guarantees.md#elections
    #[test]
    fn all_observers_of_an_election_share_its_looks() {
        let mut scene = Scene::new();
        let mut first = scene.observe();
        assert_eq!(scene.finds(1), 1);
        let mut later = scene.observe();
        assert_eq!(seen(&mut later), [1], "the present leader");
        assert_eq!(scene.finds(2), 1, "one look for both");
        assert_eq!((seen(&mut first), seen(&mut later)), (vec![1, 2], vec![2]));
        drop(first);
        assert_eq!(scene.finds(3), 1);
        drop(later);
        assert_eq!(scene.finds(4), 0, "nobody observes");
        assert_eq!(scene.observers.next_wakeup(), None);
    }

    // Section: guarantees.md#elections
    #[test]
    fn a_look_that_is_answered_late_is_followed_by_the_next_one_at_once() {
        let mut scene = Scene::new();
        let mut leaders = scene.observe();
        let mut late = scene.observers.tick(scene.clock.now());
        for _ in 0..2 {
            scene.clock.advance(INTERVAL);
            let more = scene.observers.tick(scene.clock.now());
            assert!(more.is_empty(), "one look at a time: {more:?}");
        }
        let Some(Request::Query(Query::Status(_, reply))) = late.pop() else {
            panic!("it is no look");
        };
        let _ = reply.send(Ok(led(1)));
        assert_eq!(scene.finds(2), 1, "the next one is due");
        assert_eq!(seen(&mut leaders), [1, 2]);
        assert_eq!(scene.finds(3), 1);
    }

    // Section: guarantees.md#elections
    #[test]
    fn a_look_that_fails_is_followed_by_the_next_one() {
        let mut scene = Scene::new();
        let mut leaders = scene.observe();
        assert_eq!(scene.look(|| Err(Arc::new(io::Error::other("cut")))), 1);
        assert_eq!(scene.finds(1), 1);
        assert_eq!(seen(&mut leaders), [1]);
    }

    // Section: guarantees.md#elections
    #[test]
    fn who_comes_while_the_leader_is_unknown_is_shown_it_later() {
        for fails in [false, true] {
            let mut scene = Scene::new();
            let mut first = scene.observe();
            scene.finds(5);
            scene.look(|| {
                if fails {
                    Err(Arc::new(io::Error::other("cut")))
                } else {
                    Ok(Status::free(LockKey::of("k")))
                }
            });
            let mut second = scene.observe();
            assert!(seen(&mut second).is_empty(), "nobody knows who leads");
            scene.finds(5);
            assert_eq!((seen(&mut first), seen(&mut second)), (vec![5], vec![5]));
        }
    }

    #[test]
    fn a_new_observer_is_not_shown_a_leader_that_has_resigned() {
        let mut scene = Scene::new();
        let _first = scene.observe();
        scene.finds(1);
        scene.look(|| Ok(Status::free(LockKey::of("k"))));
        assert!(seen(&mut scene.observe()).is_empty());
    }
}
