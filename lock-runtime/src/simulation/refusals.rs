//! Calls that the server refuses for good, since a right is missing: they end with an error, and keep no lock closed.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;

use super::downgrades::Downgrading;
use super::seeds::{is_loud, run, seeds};
use super::{CLIENTS, Event, Store, Wire, World};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::protocol::call::{Call, Sent};
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::key::LockKey;

/// How often of 256 times a single call is refused.
const SINGLE: u8 = 4;
/// For how long a right is missing, and there, in milliseconds.
const TIMES: std::ops::Range<u64> = 50..4_000;
/// A forbidden release is repeated after a second, and each way takes up to 400 ms.
const SOON: Duration = Duration::from_millis(2_200);

/// What a user may be forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Right {
    Acquire,
    Adopt,
    Ask,
    Renew,
    Downgrade,
    Pass,
    Issue,
    Release,
}

impl Right {
    const ALL: [Self; 8] = [
        Self::Acquire,
        Self::Adopt,
        Self::Ask,
        Self::Renew,
        Self::Downgrade,
        Self::Pass,
        Self::Issue,
        Self::Release,
    ];

    /// What a call needs.
    pub(super) fn of(call: &Call) -> Option<Self> {
        Some(match call {
            Call::Acquire { bearer, .. } if bearer.terms.adopts.is_some() => Self::Adopt,
            Call::Acquire { .. } => Self::Acquire,
            Call::Ask(_) => Self::Ask,
            Call::Renew { .. } | Call::Raise { .. } | Call::Shorten { .. } => Self::Renew,
            Call::Downgrade(_) => Self::Downgrade,
            Call::Pass { .. } => Self::Pass,
            Call::Issue { .. } => Self::Issue,
            Call::Release { .. } | Call::Leave(_) | Call::Disown(_) => Self::Release,
            Call::Step(_) | Call::Report { .. } => return None,
        })
    }
}

/// The rights of the clients.
pub(super) struct Rights {
    rng: Rng,
    missing: Option<Right>,
    refused: BTreeMap<Right, usize>,
    /// Whether nothing else goes wrong.
    alone: bool,
    /// Holders whose lock is to be released, since the release, the ticket or the downgrade was refused then.
    ending: Vec<(LockKey, Token, Moment)>,
}

impl Rights {
    fn new(rng: Rng) -> Self {
        Self {
            rng,
            missing: None,
            refused: BTreeMap::new(),
            alone: true,
            ending: Vec::new(),
        }
    }

    fn refuses(&mut self, now: Moment, call: &Call) -> bool {
        let Some(right) = Right::of(call) else {
            return false;
        };
        if self.missing != Some(right) && self.rng.u8(..) >= SINGLE {
            return false;
        }
        *self.refused.entry(right).or_default() += 1;
        if let Call::Issue { bearer, .. }
        | Call::Downgrade(bearer)
        | Call::Release { bearer, .. }
        | Call::Leave(bearer) = call
        {
            let key = bearer.terms.key.clone();
            self.ending.retain(|(_, token, _)| *token != bearer.token);
            self.ending.push((key, bearer.token, now));
        }
        true
    }
}

impl World {
    /// Rights are withdrawn and given back.
    fn withdraw_rights(&mut self) {
        self.rights = Some(Rights::new(self.rng.fork()));
        self.change_rights();
    }

    /// The next change of the rights; all are given back in the end.
    pub(super) fn change_rights(&mut self) {
        let faulty = self.faulty();
        if let Some(rights) = &mut self.rights {
            let missing = rights.rng.choice(Right::ALL);
            rights.missing = missing.filter(|_| faulty && rights.rng.bool());
            let (missing, pause) = (rights.missing, rights.rng.u64(TIMES));
            self.say(|| format!("the right that is missing: {missing:?}"));
            if faulty {
                self.after(Duration::from_millis(pause), Event::Rights);
            }
        }
    }

    /// Whether a right is missing for a call; its client hears so.
    pub(super) fn is_forbidden(&mut self, wire: Wire, sent: &Sent) -> bool {
        let (now, faulty) = (self.now, self.faulty());
        let rights = self.rights.as_mut().filter(|_| faulty);
        let forbidden = rights.is_some_and(|it| it.refuses(now, &sent.call));
        if forbidden {
            self.refuse(wire, sent, Trouble::never("NOPERM"));
        }
        forbidden
    }

    /// A client hears why its call is not carried out, in the order of the answers.
    pub(super) fn refuse(&mut self, wire: Wire, sent: &Sent, trouble: Trouble) {
        self.say(|| format!("{wire} {:?} is refused: {}", sent.call, trouble.cause()));
        let sent = Sent {
            route: sent.route,
            ..Sent::new(sent.call.clone(), sent.at)
        };
        let at = self.now.after(self.latency());
        let at = at.max(self.link(wire).answers_until);
        self.link(wire).answers_until = at;
        self.at(at, Event::Refused(wire, sent, trouble));
    }

    /// A lock whose release, ticket or downgrade was refused is free soon after the release is allowed.
    pub(super) fn check_endings(&mut self) -> Result<(), String> {
        let (now, server) = (self.now, &self.servers[0]);
        let Some(rights) = self.rights.as_mut().filter(|it| it.alone) else {
            return Ok(());
        };
        rights
            .ending
            .retain(|(key, token, _)| server.is_held_by(now, key, *token));
        if rights.missing == Some(Right::Release) {
            rights
                .ending
                .iter_mut()
                .for_each(|(.., since)| *since = now);
        }
        let kept = rights.ending.iter();
        let mut kept = kept.filter(|(.., since)| now.since(*since) > SOON);
        kept.next().map_or(Ok(()), |(key, token, since)| {
            let time = now.since(*since);
            Err(format!(
                "{key} is closed {time:?} after {token} was refused"
            ))
        })
    }
}

/// A world of locks that become tickets, and of writers that go on as readers.
fn world(seed: u64, store: Store) -> World {
    let loud = is_loud();
    let mut world = World::of(seed, store, CLIENTS);
    world.loud = loud;
    if seed % 2 != 1 {
        world.transfer();
    }
    for client in &mut world.clients {
        client.crowded = seed % 4 > 1;
        if seed % 4 < 3 {
            client.downgrading = Some(Downgrading::new(world.rng.fork()));
        }
    }
    world.withdraw_rights();
    world
}

/// How often which right was missing.
fn refusals(worlds: impl Iterator<Item = (u64, World)>) -> BTreeMap<Right, usize> {
    let mut all = BTreeMap::new();
    for (seed, mut world) in worlds {
        run(&mut world, seed);
        for (right, times) in world.rights.into_iter().flat_map(|it| it.refused) {
            *all.entry(right).or_default() += times;
        }
    }
    all
}

#[test]
fn what_is_refused_for_good_keeps_no_lock_closed() {
    for store in [Store::One, Store::Knowing] {
        let calm = seeds("0..250")
            .step_by(9)
            .map(|seed| (seed, world(seed, store)));
        let refused = refusals(calm);
        println!("{store:?}: refused {refused:?}");
        let knows = store == Store::Knowing;
        for right in Right::ALL {
            let never = right == Right::Pass && !knows;
            assert_eq!(refused.contains_key(&right), !never, "{right:?}");
        }
    }
}

#[test]
fn what_is_refused_for_good_while_connections_break_ends_for_everybody() {
    for store in [Store::One, Store::Knowing, Store::Sharded] {
        let faulty = seeds("0..250").step_by(23).map(|seed| {
            let mut world = world(seed, store);
            world.rights.iter_mut().for_each(|it| it.alone = false);
            world.after(Duration::from_millis(100), Event::Fault);
            (seed, world)
        });
        assert!(!refusals(faulty).is_empty());
    }
}
