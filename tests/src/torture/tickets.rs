//! Locks that are handed on as tickets: every process hears of every ticket, and several adopt it at once.

use std::{sync::Arc, time::Duration};

use lock_runtime::{LockError, LockGuard, Ticket, current};
use redis::aio::MultiplexedConnection;
use tokio::time::{sleep, timeout};

use super::{
    HANDED, HANDED_KEY,
    body::{Bodies, noted, noted_from},
    history::{Grant, Kind, Mode, monotonic},
    load::{WAIT, Worker},
    lock_name,
};

/// How many tasks of each process hand locks on, where they do nothing else.
pub(super) const TASKS: usize = 16;
/// Where tickets are told to all processes.
const STREAM: &str = "tickets";
/// How many of them a process that stands still may miss.
const KEPT: u32 = 1_000;
/// The shortest time of a ticket.
const SHORTEST: Duration = Duration::from_millis(100);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(20);

/// What a stream says: each entry of each stream has an id, and names with values.
type Said = Option<Vec<(String, Vec<(String, Vec<String>)>)>>;

/// Adopts what others hand on, until the process ends.
pub(super) async fn receive(worker: Arc<Worker>, mut register: MultiplexedConnection) {
    let mut last = "$".to_owned();
    loop {
        let mut read = redis::cmd("XREAD");
        read.arg(("BLOCK", 1_000, "STREAMS", STREAM, &last));
        let said: Said = read
            .query_async(&mut register)
            .await
            .expect("the register is not tortured");
        for (id, words) in said.into_iter().flatten().flat_map(|(_, entries)| entries) {
            let [key, text] = <[String; 2]>::try_from(words).expect("a key and a ticket");
            let ticket: Ticket = text.parse().expect("a ticket");
            let key = key.parse().expect("the number of a lock");
            // At least two of the processes, mostly; and two tasks of one.
            for _ in 0..[0, 1, 1, 2][fastrand::usize(..4)] {
                let worker = Arc::clone(&worker);
                let ticket = ticket.clone();
                tokio::spawn(async move { worker.adopt(key, &ticket).await });
            }
            last = id;
        }
    }
}

impl Worker {
    /// Takes a lock and hands it on.
    pub(super) async fn hand_out(self: &Arc<Self>) {
        let key = HANDED_KEY + fastrand::usize(..HANDED);
        let asked = monotonic();
        let request = self.manager.lock(lock_name(key)).wait(WAIT);
        match request.ttl(self.servers.ttl()).acquire().await {
            Ok(guard) => self.hand_on(key, guard, asked).await,
            Err(_) => sleep(PAUSE).await,
        }
    }

    /// Asks for a ticket, at once or when it may have expired, and hands the lock on.
    async fn adopt(self: &Arc<Self>, key: usize, ticket: &Ticket) {
        let ttl = self.servers.ttl();
        if fastrand::u8(..16) == 0 {
            sleep(ttl.mul_f64(1.2 * fastrand::f64())).await;
        }
        let asked = monotonic();
        let request = self.adoptions.asks(ticket);
        let adopting = self.manager.adopt(ticket).ttl(ttl).wait(WAIT).acquire();
        let patience = if fastrand::u8(..32) == 0 {
            soon()
        } else {
            2 * WAIT
        };
        match timeout(patience, adopting).await {
            Ok(Ok(guard)) => {
                request.adopted();
                self.hand_on(key, guard, asked).await;
            }
            Ok(Err(LockError::InvalidTicket { .. })) => request.refused(),
            Ok(Err(_)) | Err(_) => request.unknown(),
        }
    }

    /// Works under the lock, and then makes a ticket of it, most of the time.
    async fn hand_on(self: &Arc<Self>, key: usize, guard: LockGuard, asked: Duration) {
        let history = &self.history;
        let fence = guard.fencing_token().get();
        let grant = history.grant(key, fence, Mode::Alone);
        history.note_at(asked, Kind::Asked, grant);
        let grants = [grant];
        let body = self.body(&grants, Bodies::Handed);
        if noted(body, &guard, &grants, history).await.is_err() {
            history.note(Kind::Lost, grant);
            return;
        }
        match fastrand::u8(..16) {
            0 => {
                history.note(Kind::Done, grant);
                guard.release();
            }
            1 => {
                history.note(Kind::Done, grant);
                // Taken back, or nobody hears of it.
                let _ticket = timeout(soon(), guard.into_ticket(SHORTEST)).await;
            }
            2..6 => {
                self.work_on(&guard, grant).await;
                self.issue(guard, grant).await;
            }
            _ => self.issue(guard, grant).await,
        }
    }

    /// Leaves a body running under the lock.
    async fn work_on(self: &Arc<Self>, guard: &LockGuard, grant: Grant) {
        let Ok(Some(joined)) = guard.hold(async { current() }).await else {
            return;
        };
        let worker = Arc::clone(self);
        tokio::spawn(async move {
            let body = async {
                loop {
                    sleep(Duration::from_millis(1)).await;
                }
            };
            let history = &worker.history;
            // It is stopped when the ticket takes the place of its guard.
            let _: Result<(), _> = noted_from(Kind::Poll, body, &joined, &[grant], history).await;
        });
    }

    async fn issue(&self, guard: LockGuard, grant: Grant) {
        let ttl = self.servers.ttl();
        let time = SHORTEST + ttl.saturating_sub(SHORTEST).mul_f64(fastrand::f64());
        let from = monotonic();
        let ticket = match guard.into_ticket(time).await {
            Ok(ticket) => ticket,
            Err(error) => {
                // A body was being polled; else the lease has ended, or the server is away.
                let refused = matches!(error, LockError::InvalidOptions { .. });
                let end = if refused { Kind::Done } else { Kind::Lost };
                self.history.note(end, grant);
                return;
            }
        };
        self.history.note(Kind::Issued, grant);
        self.adoptions.issued(&ticket, grant.key, from, time);
        let mut tell = redis::cmd("XADD");
        tell.arg((STREAM, "MAXLEN", "~", KEPT, "*"))
            .arg((grant.key, ticket.to_string()));
        let _: String = tell
            .query_async(&mut self.register.clone())
            .await
            .expect("the register is not tortured");
    }
}

/// Before or after an answer comes.
fn soon() -> Duration {
    Duration::from_micros(fastrand::u64(..3_000))
}
