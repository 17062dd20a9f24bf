//! What a tortured process does: takes locks of every kind for bodies whose polls are noted, and which write to a fenced
//! register.

use std::{path::Path, sync::Arc, time::Duration};

use lock_runtime::{Capabilities, LockConfig, LockError, LockGuard, LockManager, LockRequest};
use redis::{Script, aio::MultiplexedConnection};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    HOT, HOT_KEY, LEADER_KEY, LONG, PERMITS, PERMITS_KEY, Profile, READERS_KEY, SHARED, SHORT,
    Servers,
    adoptions::Adoptions,
    body::{Bodies, linger, noted_from},
    history::{Grant, History, Kind, Mode, monotonic},
    lock_name,
    outcome::{Bounds, acquired},
    panics, tickets, transfers,
};
use crate::server::connect;

/// Takes a write only under a fence that is none of an earlier holder's.
const WRITE: &str = "
local last = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) < last then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('RPUSH', KEYS[1] .. ':log', ARGV[1])
return 1
";

/// How many others may wait where their number is limited.
const MOST_WAITERS: u32 = 2;

/// Longer than a fault.
pub(super) const WAIT: Duration = Duration::from_secs(5);

const USUAL: Bounds = Bounds {
    wait: WAIT,
    limited: false,
};

/// Runs until the process ends.
///
/// It takes locks of these servers at that URL.
pub async fn run(
    servers: Servers,
    locks: &str,
    register: &str,
    directory: &Path,
    profile: Profile,
) {
    panics::note(directory);
    let config = LockConfig::new(locks).expect("a URL of a store that is built in");
    let worker = Arc::new(Worker {
        // A fault may strike while it starts.
        manager: LockManager::connect(config.ttl(servers.ttl()).lazy())
            .await
            .expect("a manager"),
        servers,
        cooldowns: profile.has_cooldowns(),
        register: connect(register).await,
        history: History::open(directory).expect("the history can be written"),
        adoptions: Adoptions::open(directory).expect("the history can be written"),
    });
    let can = *worker.manager.capabilities();
    let mut tasks = JoinSet::new();
    for (bodies, count) in crowd(profile, servers, &can) {
        for _ in 0..count {
            let worker = Arc::clone(&worker);
            tasks.spawn(async move {
                loop {
                    worker.section(bodies).await;
                }
            });
        }
    }
    if profile == Profile::ClockForward {
        for _ in 0..transfers::TASKS {
            tasks.spawn(transfers::transfer(
                worker.manager.clone(),
                locks.to_owned(),
            ));
        }
    }
    if can.tickets {
        // One that waits for tickets holds up whoever shares its connection.
        let register = connect(register).await;
        tasks.spawn(tickets::receive(worker, register));
    }
    tasks.join_all().await;
}

/// Whose bodies are how long, and how many tasks have such bodies.
fn crowd(profile: Profile, servers: Servers, can: &Capabilities) -> Vec<(Bodies, usize)> {
    if profile == Profile::Tickets {
        return vec![(Bodies::Handed, tickets::TASKS)];
    }
    let if_it = |can: bool, count| if can { count } else { 0 };
    let short = match profile.more_tasks() {
        0 => Bodies::Short,
        _ => Bodies::Crowded,
    };
    vec![
        (Bodies::Long, LONG),
        (Bodies::Fixed, 1),
        (short, SHORT + profile.more_tasks()),
        (Bodies::Reading, if_it(can.read, SHARED)),
        (Bodies::Permitted, if_it(can.permits, SHARED)),
        // Without quick hand-overs there is nothing to see.
        (Bodies::Hot, if_it(servers.hot(), HOT)),
        (Bodies::Handed, if_it(can.tickets, 1)),
        (Bodies::Leading, if_it(can.fencing, 1)),
    ]
}

pub(super) struct Worker {
    pub(super) manager: LockManager,
    pub(super) servers: Servers,
    cooldowns: bool,
    pub(super) register: MultiplexedConnection,
    pub(super) history: History,
    pub(super) adoptions: Adoptions,
}

impl Worker {
    async fn section(self: &Arc<Self>, bodies: Bodies) {
        let turn = async |keys: &[usize], how: fn(LockRequest) -> LockRequest| {
            drop(self.turn(keys, Mode::Alone, bodies, how).await);
        };
        let [first, second] = [0; 2].map(|_| fastrand::usize(..SHORT));
        match bodies {
            Bodies::Long => turn(&[fastrand::usize(..LONG)], |it| it).await,
            Bodies::Fixed => self.fixed().await,
            Bodies::Short if first != second && fastrand::u8(..8) == 0 => {
                turn(&[LONG + first, LONG + second], |it| it).await;
            }
            Bodies::Short | Bodies::Crowded => turn(&[LONG + first], |it| it).await,
            Bodies::Reading if fastrand::u8(..4) == 0 => self.write_and_read().await,
            Bodies::Reading => self.shared(READERS_KEY, Mode::Read, bodies).await,
            Bodies::Permitted => {
                let mode = Mode::Permits(PERMITS);
                self.shared(PERMITS_KEY, mode, bodies).await;
            }
            Bodies::Hot => self.want_the_same().await,
            Bodies::Handed => self.hand_out().await,
            Bodies::Leading => self.lead().await,
        }
    }

    /// A writer, which half of the time goes on as a reader.
    async fn write_and_read(&self) {
        let bodies = Bodies::Reading;
        let writer = self.turn(&[READERS_KEY], Mode::Alone, bodies, |it| it);
        let Some(writer) = writer.await else { return };
        if !self.manager.capabilities().downgrade || fastrand::bool() {
            return;
        }
        // The server may be away, and the lease may end.
        let Ok(reader) = writer.downgrade().await else {
            return;
        };
        let fence = reader.fencing_token().get();
        let grant = self.history.grant(READERS_KEY, fence, Mode::Read);
        // It entered as the writer, under the same fence.
        self.hold(Kind::Poll, bodies, &reader, &[grant]).await;
    }

    async fn lead(&self) {
        let asked = monotonic();
        let election = self.manager.election(lock_name(LEADER_KEY));
        let candidate = election.candidate("a leader").ttl(self.servers.ttl());
        let Ok(Ok(leadership)) = timeout(WAIT, candidate.campaign()).await else {
            sleep(Duration::from_millis(20)).await;
            return;
        };
        let fence = leadership.fencing_token().get();
        let grant = self.history.grant(LEADER_KEY, fence, Mode::Alone);
        self.history.note_at(asked, Kind::Asked, grant);
        let guard = leadership.guard();
        self.hold(Kind::Enter, Bodies::Leading, guard, &[grant])
            .await;
        leadership.resign();
    }

    /// Leases that end while a poll runs: those that are not renewed, or are limited.
    async fn fixed(&self) {
        let keys = [fastrand::usize(..LONG)];
        let most = self.servers.ttl();
        let how = |request: LockRequest| {
            if fastrand::bool() {
                request.renew(false)
            } else {
                request.max_hold(most)
            }
        };
        drop(self.turn(&keys, Mode::Alone, Bodies::Fixed, how).await);
    }

    async fn shared(&self, key: usize, mode: Mode, bodies: Bodies) {
        let limits = self.manager.capabilities().max_waiters && fastrand::bool();
        let how = |request: LockRequest| match mode {
            Mode::Permits(most) if limits => request.permits(most).max_waiters(MOST_WAITERS),
            Mode::Permits(most) => request.permits(most),
            _ => request.read(),
        };
        let bounds = Bounds {
            limited: limits,
            ..USUAL
        };
        drop(self.turn_within(bounds, &[key], mode, bodies, how).await);
    }

    /// Turns of all sorts wait in one queue, and some are given up, at any stage.
    async fn want_the_same(&self) {
        let soon = Duration::from_millis(fastrand::u64(..30));
        let turn = async |how: fn(LockRequest) -> LockRequest| {
            drop(self.turn(&[HOT_KEY], Mode::Alone, Bodies::Hot, how).await);
        };
        match fastrand::u8(..32) {
            0 | 1 => turn(|it| it.renew(false)).await,
            2 if self.cooldowns => turn(|it| it.min_hold(Duration::from_millis(5))).await,
            3 => self.hardly_wait().await,
            4..8 => {
                let _given_up = timeout(soon, turn(|it| it)).await;
            }
            8 => self.shared(HOT_KEY, Mode::Read, Bodies::Hot).await,
            _ => turn(|it| it).await,
        }
        sleep(soon / 2).await;
    }

    async fn hardly_wait(&self) {
        let bounds = Bounds {
            wait: Duration::from_millis(10),
            ..USUAL
        };
        let turn = self.turn_within(bounds, &[HOT_KEY], Mode::Alone, Bodies::Hot, |it| it);
        drop(turn.await);
    }

    /// Returns the guard when the body is over, if it was not lost.
    async fn turn(
        &self,
        keys: &[usize],
        mode: Mode,
        bodies: Bodies,
        how: impl FnOnce(LockRequest) -> LockRequest,
    ) -> Option<LockGuard> {
        self.turn_within(USUAL, keys, mode, bodies, how).await
    }

    /// The same within other bounds.
    async fn turn_within(
        &self,
        bounds: Bounds,
        keys: &[usize],
        mode: Mode,
        bodies: Bodies,
        how: impl FnOnce(LockRequest) -> LockRequest,
    ) -> Option<LockGuard> {
        let asked = monotonic();
        let request = match keys {
            [key] => self.manager.lock(lock_name(*key)),
            keys => self.manager.lock_all(keys.iter().map(|it| lock_name(*it))),
        };
        let request = request.ttl(self.servers.ttl()).wait(bounds.wait);
        let Some(guard) = acquired(how(request).acquire(), bounds).await else {
            // The server is away, for as long as the faults decide, or the queue is full.
            sleep(Duration::from_millis(20)).await;
            return None;
        };
        let history = &self.history;
        let grants: Vec<_> = guard
            .keys()
            .map(|key| {
                let fence = guard.fencing_token_of(key).unwrap_or(guard.fencing_token());
                let number = keys.iter().find(|it| lock_name(**it) == key.to_string());
                history.grant(
                    *number.expect("a key that was asked for"),
                    fence.get(),
                    mode,
                )
            })
            .collect();
        for grant in &grants {
            history.note_at(asked, Kind::Asked, *grant);
        }
        if bodies == Bodies::Fixed {
            for grant in &grants {
                self.history.note(Kind::Fixed, *grant);
            }
        }
        let done = self.hold(Kind::Enter, bodies, &guard, &grants).await;
        done.then_some(guard)
    }

    /// Works under a lock, and says whether the work was done.
    async fn hold(&self, first: Kind, bodies: Bodies, guard: &LockGuard, grants: &[Grant]) -> bool {
        let body = self.body(grants, bodies);
        let end = match noted_from(first, body, guard, grants, &self.history).await {
            Ok(()) => Kind::Done,
            Err(LockError::Lost { .. }) if bodies == Bodies::Fixed => Kind::Expired,
            Err(LockError::Lost { .. }) => Kind::Lost,
            Err(error) => panic!("a body ends by itself or is lost: {error}"),
        };
        for grant in grants {
            self.history.note(end, *grant);
        }
        end == Kind::Done
    }

    pub(super) async fn body(&self, grants: &[Grant], bodies: Bodies) {
        let (writes, pause) = bodies.length(self.servers);
        for _ in 0..writes {
            for grant in grants.iter().filter(|it| it.mode == Mode::Alone) {
                self.write(*grant).await;
            }
            linger(bodies, self.servers.margin());
            sleep(pause).await;
        }
    }

    async fn write(&self, grant: Grant) {
        let script = Script::new(WRITE);
        let mut write = script.key(lock_name(grant.key));
        let taken: bool = write
            .arg(grant.fence)
            .invoke_async(&mut self.register.clone())
            .await
            .expect("the register is not tortured");
        let kind = if taken { Kind::Accepted } else { Kind::Stale };
        self.history.note(kind, grant);
    }
}
