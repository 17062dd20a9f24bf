//! Nobody holds a lock beside another one: clients of all kinds, some of which die, stop and come too late.
//!
//! `LOCK_SQL_SECONDS` sets for how long, `LOCK_SQL_SEED` what they do.

use std::{
    collections::BTreeMap,
    env,
    time::{Duration, Instant},
};

use fastrand::Rng;
use tests::PostgresHome;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    installed,
    peer::{Peer, Wanted},
};

const CLIENTS: u64 = 8;
const LOCKS: [&str; 3] = ["lock:{a}", "lock:{b}", "lock:{c}"];

/// A time for which a client was sure of a lock, or had closed it.
#[derive(Debug)]
struct Held {
    lock: &'static str,
    kind: &'static str,
    from: Instant,
    to: Instant,
    fence: i64,
    /// The place in the queue, if it waited.
    place: Option<i64>,
}

/// What a client did, and how often.
#[derive(Debug, Default)]
struct Report {
    held: Vec<Held>,
    mistakes: Vec<String>,
    counts: BTreeMap<&'static str, u32>,
}

/// A client with one acquisition at a time.
struct Client {
    home: &'static PostgresHome,
    peer: Peer,
    rng: Rng,
    report: Report,
}

/// An acquisition, and until when it is sure of its lock.
struct Lease {
    fence: i64,
    place: Option<i64>,
    deadline: Instant,
}

/// The last moment of a lease that was asked for before `sent`.
fn deadline(sent: Instant, ttl: u32) -> Instant {
    let ttl = Duration::from_millis(ttl.into());
    sent + ttl.mul_f64(0.99).saturating_sub(Duration::from_millis(2))
}

/// The lease of a grant that was asked for before `sent`, and its token.
fn lease(wanted: &Wanted, fence: i64, sent: Instant) -> (Lease, u128) {
    let deadline = deadline(sent, wanted.ttl);
    let place = wanted.place;
    let lease = Lease {
        fence,
        place,
        deadline,
    };
    (lease, wanted.token)
}

impl Client {
    async fn connect(home: &PostgresHome, rng: &mut Rng) -> Peer {
        if rng.u8(..) < 200 {
            Peer::new(home).await
        } else {
            Peer::pooled(home).await
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.report.counts.entry(what).or_default() += 1;
    }

    fn one_in(&mut self, many: u32) -> bool {
        self.rng.u32(..many) == 0
    }

    /// The connection ends with whatever it had.
    async fn die(&mut self) {
        self.count("died");
        self.peer = Self::connect(self.home, &mut self.rng).await;
    }

    async fn run(mut self, ends: Instant) -> Report {
        while Instant::now() < ends {
            let kind =
                ["x", "x+", "r", "p2", "p3"][[0, 0, 0, 1, 1, 2, 2, 3, 3, 4][self.rng.usize(..10)]];
            let wanted = Wanted {
                kind,
                ttl: [200, 400, 1_000][self.rng.usize(..3)],
                wait: self.rng.u8(..) < 200,
                ..Wanted::new(LOCKS[self.rng.usize(..3)], self.rng.u128(..))
            };
            if let Some((lease, token)) = self.acquire(wanted.clone()).await {
                self.hold(&Wanted { token, ..wanted }, lease).await;
            }
            if self.one_in(300) {
                self.die().await;
            }
        }
        self.report
    }

    /// Takes the lock, or waits for it as long as it likes.
    async fn acquire(&mut self, mut wanted: Wanted) -> Option<(Lease, u128)> {
        let sent = Instant::now();
        let reply = self.peer.acquire(&wanted).await;
        match &*reply.status {
            "granted" => {
                self.count("granted at once");
                return Some(lease(&wanted, reply.fence, sent));
            }
            "waiting" => wanted.place = Some(reply.place),
            _ => return None,
        }
        if self.one_in(200) {
            self.die().await;
            return None;
        }
        if self.one_in(200) {
            self.count("stopped");
            sleep(Duration::from_secs(1)).await;
        }
        let time_limit = [20, 300, 3_000][self.rng.usize(..3)];
        let gives_up = sent + Duration::from_millis(time_limit);
        let mut left = Some(reply.left);
        while let Some(time) = left {
            if let Some(granted) = self.pushed(&wanted, time).await {
                return Some(granted);
            }
            if Instant::now() > gives_up {
                self.count("gave up");
                self.peer.leave(&wanted.lock, wanted.token).await;
                return None;
            }
            match self.ask(&mut wanted).await {
                Ok(granted) => return Some(granted),
                Err(next) => left = next,
            }
        }
        None
    }

    /// Waits for a push until the lease of the holder has ended, and confirms the grant.
    async fn pushed(&mut self, wanted: &Wanted, left: i64) -> Option<(Lease, u128)> {
        let pause = u64::try_from(left).unwrap().min(1_000) + self.rng.u64(1..50);
        let fence = self.listen(wanted, Duration::from_millis(pause)).await?;
        let sent = Instant::now();
        // A push proves nothing: the lease may have ended since.
        let (lock, token, ttl) = (&*wanted.lock, wanted.token, wanted.ttl);
        if !self.peer.renew(lock, token, ttl).await {
            return None;
        }
        self.count("pushed");
        Some(lease(wanted, fence, sent))
    }

    /// Asks for the token's place, and acquires again if it is gone; how long the holder has left, or nothing where it is
    /// no use to wait.
    async fn ask(&mut self, wanted: &mut Wanted) -> Result<(Lease, u128), Option<i64>> {
        let sent = Instant::now();
        let (lock, token, ttl) = (&*wanted.lock, wanted.token, wanted.ttl);
        let standings = self.peer.ask_with(lock, &[token], ttl, 0).await;
        match standings.fences.unwrap()[0] {
            0 => return Err(Some(standings.left)),
            -1 => self.count("gone"),
            fence => {
                self.count("asked");
                return Ok(lease(wanted, fence, sent));
            }
        }
        wanted.token = self.rng.u128(..);
        let sent = Instant::now();
        let reply = self.peer.acquire(wanted).await;
        match &*reply.status {
            "granted" => Ok(lease(wanted, reply.fence, sent)),
            _ => Err(Some(reply.left)),
        }
    }

    /// The fence under which the token was granted its lock, if that is heard of within this time.
    async fn listen(&mut self, wanted: &Wanted, limit: Duration) -> Option<i64> {
        let grants = self.peer.grants(limit).await.into_iter();
        let ours =
            grants.filter(|(_, name, tokens)| *name == wanted.lock && tokens[0] == wanted.token);
        ours.map(|(fence, ..)| fence).next_back()
    }

    /// Holds the lock for some time, at most until its deadline.
    async fn hold(&mut self, wanted: &Wanted, mut lease: Lease) {
        let (lock, token, ttl) = (&*wanted.lock, wanted.token, wanted.ttl);
        let from = Instant::now();
        if from >= lease.deadline {
            return self.count("too late");
        }
        let overrun = if self.one_in(20) {
            u64::from(ttl) * 6 / 5
        } else {
            0
        };
        let time = [0, 0, 2, 10, 50, overrun][self.rng.usize(..6)];
        sleep(Duration::from_millis(time)).await;
        if self.one_in(5) && Instant::now() < lease.deadline {
            let sent = Instant::now();
            let ours = self.peer.renew(lock, token, ttl).await;
            if Instant::now() < lease.deadline {
                if ours {
                    self.count("renewed");
                    lease.deadline = deadline(sent, ttl);
                } else {
                    self.report
                        .mistakes
                        .push(format!("{lock} was lost while it was held"));
                }
            }
        }
        let name = LOCKS.into_iter().find(|it| *it == lock).unwrap();
        let kind = if wanted.kind == "x+" {
            "x"
        } else {
            wanted.kind
        };
        let to = Instant::now().min(lease.deadline);
        let held = |from, to, place| Held {
            lock: name,
            kind,
            from,
            to,
            fence: lease.fence,
            place,
        };
        self.report.held.push(held(from, to, lease.place));
        if self.one_in(100) {
            return self.count("left alone");
        }
        let rest = if self.one_in(40) {
            [50, 200][self.rng.usize(..2)]
        } else {
            0
        };
        let released = Instant::now();
        if self.peer.release_with(lock, token, rest, false, 0).await && rest > 0 {
            self.count("cooled down");
            let cool = Duration::from_millis(rest.into()).mul_f64(0.99);
            self.report.held.push(held(released, released + cool, None));
        }
    }
}

/// What contradicts the promise, in the order of time.
fn contradictions(held: &mut [Held]) -> Vec<String> {
    let mut wrong = Vec::new();
    held.sort_by_key(|it| it.from);
    for (at, one) in held.iter().enumerate() {
        let beside: Vec<_> = held[..at]
            .iter()
            .filter(|it| it.lock == one.lock && it.to > one.from)
            .collect();
        let alike = beside.iter().all(|it| it.kind == one.kind);
        let most = one
            .kind
            .strip_prefix('p')
            .map_or(usize::MAX, |it| it.parse().unwrap());
        if !beside.is_empty() && (one.kind == "x" || !alike || beside.len() >= most) {
            wrong.push(format!("{one:?} beside {beside:?}"));
        }
    }
    for lock in LOCKS {
        let exclusive: Vec<_> = held
            .iter()
            .filter(|it| it.lock == lock && it.kind == "x")
            .collect();
        for pair in exclusive.windows(2) {
            if pair[1].fence < pair[0].fence {
                wrong.push(format!(
                    "{:?} has a smaller fence than {:?}",
                    pair[1], pair[0]
                ));
            }
        }
    }
    wrong
}

/// How often a waiter was granted the lock before one that had joined more than a millisecond earlier.
fn overtaken(held: &[Held]) -> usize {
    let mut served: Vec<_> = held
        .iter()
        .filter_map(|it| Some((it.lock, it.fence, it.place?)))
        .collect();
    served.sort_unstable();
    served
        .windows(2)
        .filter(|it| it[0].0 == it[1].0 && it[0].2 > it[1].2 + 1_000)
        .count()
}

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |it| it.parse().unwrap())
}

// Section: postgres.md#what-it-promises
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_holds_a_lock_beside_another_one() {
    let Some(home) = installed().await else {
        return;
    };
    let home: &'static PostgresHome = Box::leak(Box::new(home));
    let seed = setting("LOCK_SQL_SEED", fastrand::u64(..));
    let ends = Instant::now() + Duration::from_secs(setting("LOCK_SQL_SECONDS", 6));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let mut rng = Rng::with_seed(seed.wrapping_add(number));
        let peer = Client::connect(home, &mut rng).await;
        clients.spawn(
            Client {
                home,
                peer,
                rng,
                report: Report::default(),
            }
            .run(ends),
        );
    }
    let (mut held, mut counts) = (Vec::new(), BTreeMap::new());
    for report in clients.join_all().await {
        assert!(
            report.mistakes.is_empty(),
            "seed {seed}: {:?}",
            report.mistakes
        );
        held.extend(report.held);
        for (what, count) in report.counts {
            *counts.entry(what).or_insert(0) += count;
        }
    }
    let wrong = contradictions(&mut held);
    assert!(
        wrong.is_empty(),
        "seed {seed}: {} of {}: {:?}",
        wrong.len(),
        held.len(),
        wrong.first()
    );
    assert!(held.len() > 50, "{} holds alone: {counts:?}", held.len());
    let (overtaken, gone) = (overtaken(&held), counts.get("gone").copied().unwrap_or(0));
    println!(
        "seed {seed}: {} holds, {overtaken} overtaken, {counts:?}",
        held.len()
    );
    // A waiter that was taken for gone comes back to its place, behind the one that was served meanwhile.
    assert!(
        overtaken <= gone as usize,
        "seed {seed}: {overtaken} overtaken, {counts:?}"
    );
    counts_are_whole(home).await;
}

/// Counters agree with what they count.
async fn counts_are_whole(home: &PostgresHome) {
    let schema = home.schema();
    let wrong = format!(
        "SELECT l.name FROM {schema}.lock l WHERE waiters <>
            (SELECT count(*) FROM {schema}.waiter w WHERE w.name = l.name AND w.place > l.head)
         UNION SELECT w.name FROM {schema}.waiter w, {schema}.lock l WHERE w.name = l.name AND w.place <= l.head
         UNION SELECT name FROM {schema}.lock GROUP BY name HAVING count(*) > 1
         UNION SELECT s.name FROM {schema}.sharer s, {schema}.lock l WHERE s.name = l.name AND s.fence < l.low"
    );
    assert_eq!(home.peer().await.column(&wrong).await, Vec::<String>::new());
}
