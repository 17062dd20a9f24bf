//! Many calls at once answer what the same calls answer one by one, and never wait for others in a circle.
//!
//! Section: postgres.md#what-it-promises

use std::{collections::BTreeMap, time::Duration};

use fastrand::Rng;
use tests::{PostgresHome, SqlError, TIME_LIMIT, eventually, within};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    installed,
    peer::{LONG_MS, Peer, Reply, Wanted},
};

const LOCKS: [&str; 3] = ["lock:{a}", "lock:{b}", "lock:{c}"];

/// A call: what it does, to which lock, under which token, and for how many ms.
type Call = (&'static str, &'static str, u128, u32);

#[tokio::test]
async fn many_calls_at_once_leave_what_they_leave_one_by_one() {
    let (Some(one), Some(other)) = (installed().await, installed().await) else {
        return;
    };
    for seed in 0..20 {
        let mut rng = Rng::with_seed(seed);
        let mut twins = [sessions(&one).await, sessions(&other).await];
        let mut tokens = 0;
        for _ in 0..30 {
            let session = rng.usize(..2);
            let calls: Vec<Call> = (0..rng.usize(1..12))
                .map(|_| call(&mut rng, &mut tokens))
                .collect();
            let together = twins[0][session].try_many(&calls).await.unwrap();
            let together: BTreeMap<_, _> = together.iter().map(|it| (it.call, told(it))).collect();
            for (number, call) in calls.iter().enumerate() {
                let alone = by_itself(&mut twins[1][session], call).await;
                assert_eq!(
                    together[&(number + 1)],
                    alone,
                    "{call:?} of {calls:?}, seed {seed}"
                );
            }
            let [one, other] = &mut twins;
            assert_eq!(
                kept(&mut one[0]).await,
                kept(&mut other[0]).await,
                "seed {seed}"
            );
            for twin in &mut twins {
                prolong(&mut twin[0]).await;
            }
        }
        for home in [&one, &other] {
            let schema = home.schema();
            let clear = format!("DELETE FROM {schema}.lock; DELETE FROM {schema}.waiter");
            home.peer().await.rows(&clear).await;
        }
    }
}

async fn sessions(home: &PostgresHome) -> [Peer; 2] {
    [Peer::new(home).await, Peer::pooled(home).await]
}

fn call(rng: &mut Rng, tokens: &mut u128) -> Call {
    let lock = LOCKS[rng.usize(..LOCKS.len())];
    if rng.bool() {
        *tokens += 1;
        return (["x", "x-"][rng.usize(..2)], lock, *tokens, LONG_MS);
    }
    // Mostly one of the last, which may hold the lock.
    let token = tokens.saturating_sub(rng.u128(..12));
    (["-", "="][rng.usize(..2)], lock, token, LONG_MS)
}

async fn by_itself(peer: &mut Peer, call: &Call) -> (String, i64) {
    let (action, lock, token, ttl) = *call;
    let ours = match action {
        "-" => peer.release(lock, token).await,
        "=" => peer.renew(lock, token, ttl).await,
        kind => {
            return told(
                &peer
                    .acquire(&Wanted {
                        kind,
                        ttl,
                        ..Wanted::new(lock, token)
                    })
                    .await,
            );
        }
    };
    (if ours { "ours" } else { "not ours" }.to_owned(), 0)
}

/// What does not depend on the moment.
fn told(reply: &Reply) -> (String, i64) {
    (reply.status.clone(), reply.others)
}

/// All locks, with who holds them and who waits in which order.
async fn kept(peer: &mut Peer) -> Vec<String> {
    let schema = peer.schema.clone();
    let sql = format!(
        "SELECT concat_ws(' ', l.name, l.token, l.waiters, l.uses, l.expires > clock_timestamp(),
            (SELECT string_agg(w.token::text, ' ' ORDER BY w.place) FROM {schema}.waiter w WHERE w.name = l.name))
         FROM {schema}.lock l ORDER BY l.name"
    );
    peer.sql.column(&sql).await
}

/// A lock that was handed over is held for 3 s alone: a busy machine may need longer for a seed.
async fn prolong(peer: &mut Peer) {
    let schema = &peer.schema;
    let sql = format!(
        "UPDATE {schema}.lock SET expires = clock_timestamp() + interval '1 hour' WHERE expires > '-infinity'"
    );
    peer.sql.rows(&sql).await;
}

#[tokio::test]
async fn batches_lock_the_rows_of_their_locks_in_one_order() {
    let Some(home) = installed().await else {
        return;
    };
    let schema = home.schema();
    let mut admin = Peer::new(&home).await;
    for lock in ["a", "b", "c", "d"] {
        admin.take(lock, 1).await;
        admin.release(lock, 1).await;
    }
    let lasting = "SET lock_timeout = '30s'";
    let functions = [
        "many(text[],text[],uuid[],text[],int[],uuid,bool,int,bool)",
        "renew(text[],uuid[],int[],bool)",
    ];
    for function in functions {
        let alter = format!("ALTER FUNCTION {schema}.{function} {lasting}");
        admin.sql.rows(&alter).await;
    }
    for action in ["x", "=", "-", "renew"] {
        // Each batch waits for this in its middle.
        let middle =
            format!("BEGIN; SELECT FROM {schema}.lock WHERE name IN ('c', 'd') FOR UPDATE");
        admin.sql.rows(&middle).await;
        let mut batches = JoinSet::new();
        for names in [["b", "c", "a"], ["a", "d", "b"]] {
            let peer = Peer::new(&home).await;
            batches.spawn(send_batch(peer, action, names));
        }
        let waiting = format!(
            "SELECT count(*) FROM pg_stat_activity
             WHERE wait_event_type = 'Lock' AND query LIKE '%{schema}.%'"
        );
        let both = async || home.peer().await.value(&waiting).await == "2";
        eventually(TIME_LIMIT, both).await;
        admin.sql.rows("COMMIT").await;
        for ended in within(TIME_LIMIT, batches.join_all()).await {
            ended.unwrap_or_else(|error| panic!("{action}: {error}"));
        }
    }
}

async fn send_batch(mut peer: Peer, action: &str, names: [&str; 3]) -> Result<(), SqlError> {
    if action == "renew" {
        return peer
            .try_renew_all(&names.map(|name| (name, 2, LONG_MS)))
            .await
            .map(drop);
    }
    peer.try_many(&names.map(|name| (action, name, 2, LONG_MS)))
        .await
        .map(drop)
}

#[tokio::test]
async fn batches_of_the_same_locks_do_not_wait_for_each_other() {
    let Some(home) = installed().await else {
        return;
    };
    let ends = Instant::now() + Duration::from_secs(3);
    let mut clients = JoinSet::new();
    for seed in 0..4 {
        let peer = Peer::new(&home).await;
        clients.spawn(send_batches(peer, Rng::with_seed(seed), ends));
    }
    let batches: u32 = within(TIME_LIMIT, clients.join_all())
        .await
        .into_iter()
        .sum();
    assert!(batches > 10, "{batches} batches alone");
}

/// Calls the same locks in another order each time; how often.
async fn send_batches(mut peer: Peer, mut rng: Rng, ends: Instant) -> u32 {
    let mut batches = 0;
    while Instant::now() < ends {
        // Half of them are of this moment: several clients make their rows at once.
        let moment = ends.saturating_duration_since(Instant::now()).as_millis() / 50;
        let name = |number| match number % 2 {
            0 => format!("lock:{{{number}}}"),
            _ => format!("lock:{{{number} at {moment}}}"),
        };
        let mut names: Vec<_> = (0..16).map(name).collect();
        rng.shuffle(&mut names);
        let tokens: Vec<_> = names.iter().map(|_| rng.u128(..)).collect();
        let leases = names.iter().zip(&tokens);
        let leases: Vec<_> = leases
            .map(|(name, token)| (name.as_str(), *token, LONG_MS))
            .collect();
        for action in ["x", "=", "-"] {
            let calls: Vec<_> = leases.iter().map(|it| (action, it.0, it.1, it.2)).collect();
            let replies = peer.try_many(&calls).await;
            replies.unwrap_or_else(|error| panic!("{error}"));
            peer.renew_all(&leases).await;
            batches += 1;
        }
        for (name, token, _) in leases {
            peer.leave(name, token).await;
        }
    }
    batches
}
