//! Promise: many calls that are sent as one leave every lock as the same calls do one by one, with a ttl on each of its
//! keys, and with everybody noted who waits; whatever has happened before.
//!
//! `LOCK_HISTORIES=FROM..TO` chooses the histories, each with fifty such calls.
//!
//! Section: guarantees.md#nothing-is-left-behind

use fastrand::Rng;
use tests::{RedisServer, member, token};

use crate::twins::{CHANNELS, Call, Kept, LOCKS, SECOND, Step, TTL, Twins, What};

/// How often many calls are sent as one in each history.
const TURNS: usize = 50;
const START: u64 = 1_800_000_000 * SECOND;

/// A random history.
struct History {
    rng: Rng,
    twins: Twins,
    /// What is kept of each lock.
    kept: Vec<Kept>,
    /// How many tokens there are.
    tokens: u32,
    /// Whether connections may fall silent, and the clock may jump.
    rough: bool,
}

impl History {
    fn lock(&mut self) -> usize {
        self.rng.usize(..LOCKS.len())
    }

    fn fresh(&mut self) -> u32 {
        self.tokens += 1;
        self.tokens
    }

    /// The holder most of the time, or anybody.
    fn somebody(&mut self, lock: usize) -> u32 {
        let owner = u32::from_str_radix(&self.kept[lock].0, 16).ok();
        owner
            .filter(|_| self.rng.u8(..) < 200)
            .unwrap_or_else(|| self.rng.u32(..=self.tokens))
    }

    /// A waiter, as it is written in the queue.
    fn waiter(&mut self, lock: usize) -> Option<String> {
        let queue = &self.kept[lock].1;
        let count = queue.len() / 2;
        (count > 0).then(|| queue[2 * self.rng.usize(..count)].clone())
    }

    /// Many calls of one connection.
    async fn turn(&mut self, declared: bool) {
        let (one, count) = (self.lock(), self.rng.usize(2..10));
        // Mostly of one kind, as clients send them.
        let mark = ["+", "+", "", "-"][self.rng.usize(..4)];
        let mut steps = Vec::new();
        for _ in 0..count {
            let lock = if declared || self.rng.bool() {
                one
            } else {
                self.lock()
            };
            let what = match self.rng.u8(..20) {
                0..10 => What::Acquire(mark),
                10..12 => What::Acquire(["+", "", "-"][self.rng.usize(..3)]),
                12 => What::Return(mark, self.twins.now - self.rng.u64(..SECOND)),
                13 if !declared => What::Renew,
                14 => What::Leave,
                _ => What::Release,
            };
            let number = match what {
                What::Acquire(_) | What::Return(..) => self.fresh(),
                _ => self.somebody(lock),
            };
            steps.push(Step { lock, number, what });
        }
        let channel = CHANNELS[self.rng.usize(..CHANNELS.len())];
        let before = self.kept.clone();
        self.kept = self.twins.steps(channel, &steps).await;
        self.newcomers_are_last(&before, &steps);
    }

    /// Newcomers are behind all earlier waiters, in the order of the calls. Those who return have positions of their own.
    fn newcomers_are_last(&self, before: &[Kept], steps: &[Step]) {
        for (lock, (before, after)) in before.iter().zip(&self.kept).enumerate() {
            let old: Vec<_> = before.1.chunks(2).map(|it| &it[0]).collect();
            let returns = |member: &&String| {
                let mut returning = steps
                    .iter()
                    .filter(|it| matches!(it.what, What::Return(..)));
                returning.any(|it| member.ends_with(&token(it.number)))
            };
            let after = after.1.chunks(2).map(|it| &it[0]);
            let after: Vec<_> = after.filter(|it| !returns(it)).collect();
            let mut stand = after.iter().filter(|it| !old.contains(it));
            let joined = steps
                .iter()
                .filter(|it| it.lock == lock && matches!(it.what, What::Acquire(_)));
            for step in joined {
                let name = token(step.number);
                let mut rest = stand.clone();
                if rest.next().is_some_and(|it| it.ends_with(&name)) {
                    stand = rest;
                }
            }
            assert_eq!(stand.count(), 0, "the order of {steps:?}");
            let newest = after.iter().skip_while(|it| old.contains(it));
            let passed = newest.filter(|it| old.contains(it)).count();
            assert_eq!(passed, 0, "{steps:?} pass {old:?}");
        }
    }

    /// Something else happens in between.
    async fn event(&mut self) {
        let lock = self.lock();
        match self.rng.u8(..16) {
            0..4 => self.twins.now += self.rng.u64(1..2_000),
            4..6 => self.lease_ends(lock).await,
            6..8 => self.question(lock).await,
            8 => self.leaves(lock).await,
            9..11 => self.shares(lock).await,
            11 => self.comes_back(lock).await,
            12 if self.rough => self.falls_silent(lock).await,
            13 if self.rough => self.clock_steps().await,
            14 if self.rough => self.twins.now += self.rng.u64(..4 * SECOND),
            15 => self.is_forced(lock).await,
            _ => {}
        }
    }

    async fn lease_ends(&mut self, lock: usize) {
        let del = |owner: String| vec![vec!["DEL".into(), owner.clone(), format!("{owner}:h")]];
        self.twins.happen(lock, del).await;
    }

    async fn call(&mut self, script: &'static str, lock: usize, args: Vec<String>) {
        let call = Call { script, lock, args };
        self.kept = self.twins.call(&[call]).await;
    }

    async fn question(&mut self, lock: usize) {
        let Some(waiter) = self.waiter(lock) else {
            return;
        };
        let channel = CHANNELS.iter().find(|it| waiter.contains(*it));
        let channel = (*channel.expect("a channel")).to_owned();
        self.call("ask", lock, vec![channel, waiter]).await;
    }

    async fn leaves(&mut self, lock: usize) {
        if let Some(waiter) = self.waiter(lock) {
            let name = waiter.split('\n').nth(1).expect("a name").to_owned();
            self.call("release", lock, vec![name, waiter]).await;
        }
    }

    /// Somebody wants the lock in another kind, or only tries; or all of them let go.
    async fn shares(&mut self, lock: usize) {
        let holders = self.kept[lock].3.chunks(2).map(|it| it[0].clone());
        let holders: Vec<_> = holders.collect();
        if !holders.is_empty() && self.rng.bool() {
            for name in holders {
                self.call("release", lock, vec![name]).await;
            }
            return;
        }
        let name = token(self.fresh());
        let channel = ["", CHANNELS[0], CHANNELS[1], CHANNELS[2]][self.rng.usize(..4)];
        let kind = ["x", "r", "p2"][self.rng.usize(..3)];
        let args = vec![name, TTL.into(), channel.into(), kind.into()];
        self.call("acquire", lock, args).await;
    }

    /// A waiter comes back with the position that it had.
    async fn comes_back(&mut self, lock: usize) {
        let name = token(self.fresh());
        let position = self.twins.now - self.rng.u64(..SECOND);
        let channel = CHANNELS[self.rng.usize(..CHANNELS.len())];
        let args = vec![
            name,
            TTL.into(),
            channel.into(),
            "x+".into(),
            position.to_string(),
        ];
        self.call("acquire", lock, args).await;
    }

    async fn falls_silent(&mut self, lock: usize) {
        let channel = CHANNELS[self.rng.usize(..CHANNELS.len())];
        let before = self.twins.now - 4 * SECOND;
        let note = move |owner| {
            let words = [
                "ZADD",
                &format!("{owner}:s"),
                "XX",
                &before.to_string(),
                channel,
            ];
            vec![words.map(str::to_owned).to_vec()]
        };
        self.twins.happen(lock, note).await;
    }

    /// The clock goes back, and somebody who waits asks soon.
    async fn clock_steps(&mut self) {
        self.twins.now -= self.rng.u64(1..20 * SECOND);
        for lock in 0..LOCKS.len() {
            let channel = CHANNELS[0].to_owned();
            let waiter = member(&token(0), "x", 1, &channel);
            self.call("ask", lock, vec![channel, waiter]).await;
        }
    }

    async fn is_forced(&mut self, lock: usize) {
        self.call("force", lock, vec!["all".into()]).await;
    }
}

fn seeds() -> std::ops::Range<u64> {
    let Ok(seeds) = std::env::var("LOCK_HISTORIES") else {
        return 0..30;
    };
    let (from, to) = seeds.split_once("..").expect("LOCK_HISTORIES is FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

async fn histories(declared: bool) {
    let server = RedisServer::start().await;
    let twins = Twins::new(&server, declared).await;
    let mut history = History {
        rng: Rng::new(),
        twins,
        kept: Vec::new(),
        tokens: 0,
        rough: false,
    };
    for seed in seeds() {
        println!("LOCK_HISTORIES={seed}..{}", seed + 1);
        history.rng.seed(seed);
        (history.tokens, history.rough) = (0, seed % 2 == 1);
        history.twins.begin(START, !history.rough).await;
        history.kept = history.twins.call(&[]).await;
        for _ in 0..TURNS {
            for _ in 0..history.rng.usize(..4) {
                history.event().await;
            }
            history.turn(declared).await;
        }
    }
}

#[tokio::test]
async fn many_calls_leave_a_lock_as_single_ones_do() {
    histories(false).await;
}

#[tokio::test]
async fn many_calls_leave_a_lock_with_declared_keys_as_single_ones_do() {
    histories(true).await;
}
