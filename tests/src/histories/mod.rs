//! What a Redis server does to exclusive locks, as its monitor shows it, step by step through the rules of the searched
//! model.
//!
//! A lock is left out from a command on that the model does not have, and from the end of the monitor's connection on,
//! until a script finds it free.

mod calls;
mod entries;
mod etcd;
mod script;
mod zookeeper;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use spec::queue::{
    history::{Event, History, Step},
    rules::Rules,
};
use tokio::{task::JoinSet, time::sleep};

use crate::{RedisServer, TIME_LIMIT, eventually, monitor::Monitor, net::runtime, unique};
use calls::{Scripts, Subject};
pub use etcd::etcd_verdict;
use script::{Line, Ran};
pub use zookeeper::zookeeper_verdict;

/// The pause before a server that has ended a connection is listened to again.
const PAUSE: Duration = Duration::from_millis(20);

/// In microseconds: leases end at a millisecond.
const BLUR: u64 = 2_000;

/// In microseconds: no script takes longer, unless the server is suspended meanwhile.
const PATIENCE: u64 = 50_000;

const SECOND: u64 = 1_000_000;

/// What is before the name of a lock in its keys.
const BRACE: &str = ":{";

/// Listens to all that a server does.
#[derive(Debug)]
pub struct HistoryWatch {
    seen: Arc<Mutex<Seen>>,
    // Dropped, it ends.
    _listener: JoinSet<()>,
}

/// What the model says of a run.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// How many steps it accepts.
    pub accepted: usize,
    /// How many are about locks that were left out.
    pub outside: usize,
    /// The first step of each lock that it refuses, with all before it.
    pub refused: Vec<String>,
}

/// What the server has done.
#[derive(Debug, Default)]
struct Seen {
    scripts: Scripts,
    /// By the key of the owner.
    locks: HashMap<String, Lock>,
    /// The numbers of channels.
    channels: HashMap<String, usize>,
    /// Whether something was missed: locks of which nothing is known may be held.
    missed: bool,
    /// What runs now.
    running: Option<Ran>,
    now: u64,
    echoes: Vec<String>,
}

/// A lock and its model.
#[derive(Debug)]
struct Lock {
    history: History,
    refused: Option<String>,
}

impl HistoryWatch {
    /// Listens to this server from now on, also where it ends connections or starts again.
    pub async fn start(server: &RedisServer) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let mut listener = JoinSet::new();
        listener.spawn_on(listen(server.addr(), Arc::clone(&seen)), runtime().handle());
        let watch = Self {
            seen,
            _listener: listener,
        };
        watch.catch_up(server).await;
        watch
    }

    /// What the model says of all that the server has done until now.
    pub async fn verdict(&self, server: &RedisServer) -> Verdict {
        self.catch_up(server).await;
        let seen = lock(&self.seen);
        let mut verdict = Verdict::default();
        for lock in seen.locks.values() {
            verdict.accepted += lock.history.counts.accepted;
            verdict.outside += lock.history.counts.outside;
            verdict.refused.extend(lock.refused.clone());
        }
        verdict
    }

    async fn catch_up(&self, server: &RedisServer) {
        let echo = unique("echo");
        eventually(TIME_LIMIT, async || {
            server.cmd(&["ECHO", &echo]).await;
            lock(&self.seen).echoes.contains(&echo)
        })
        .await;
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen(server: SocketAddr, seen: Arc<Mutex<Seen>>) {
    loop {
        if let Ok(mut monitor) = Monitor::of(server).await {
            while let Ok(Some(line)) = monitor.line().await {
                lock(&seen).hear(&line);
            }
            lock(&seen).leave_out_all();
        }
        sleep(PAUSE).await;
    }
}

impl Seen {
    fn hear(&mut self, line: &str) {
        let Some(line) = Line::parse(line) else {
            return;
        };
        if let Some(running) = self.running.as_mut().filter(|_| line.by_script) {
            return running.write(line);
        }
        if let Some(ran) = self.running.take() {
            self.end(&ran);
        }
        // A clock that has gone back lets leases last for longer.
        if line.at + BLUR < self.now {
            self.leave_out_all();
        }
        self.now = line.at;
        match line.words.first().map_or("", String::as_str) {
            "echo" => self.echoes.extend(line.words.get(1).cloned()),
            "evalsha" => self.running = Ran::of(line.at, &line.words),
            "flushall" | "flushdb" => self.leave_out_all(),
            name if is_read(name) => {}
            _ => {
                for lock in line.words.iter().filter(|it| it.contains(BRACE)) {
                    self.leave_out(lock);
                }
            }
        }
    }

    /// A script has ended.
    fn end(&mut self, ran: &Ran) {
        // One that the server did not know has done nothing.
        if !ran.has_run() {
            return;
        }
        let Some(calls) = self.scripts.calls(ran) else {
            for lock in ran.keys.clone() {
                self.leave_out(&lock);
            }
            return;
        };
        for (channel, heard) in ran.channels() {
            self.listens(channel, heard);
        }
        for call in calls {
            self.step(ran, call);
        }
    }

    fn step(&mut self, ran: &Ran, subject: Subject) {
        let at = ran.at;
        let channel = subject.channel.as_deref().map(|it| self.channel(it));
        let lock = self.lock(&subject.owner);
        if lock.refused.is_some() {
            return;
        }
        let Some(calls) = subject.calls.filter(|_| ran.duration() <= PATIENCE) else {
            return lock.take(at, Event::Outside);
        };
        // A lease may begin as late as the last command of a script: servers before 7.2 count it from the command that
        // sets it.
        lock.history.blur(BLUR + ran.duration());
        let outcome = ran.outcome(&subject.owner);
        if !lock.history.checks(0) && ran.takes_a_free_lock(&subject.owner) {
            lock.take(at, Event::Free(0));
        }
        let event = Event::Ran {
            client: channel.unwrap_or_default(),
            calls,
            outcome,
            grants: ran.grants(&subject.owner),
        };
        lock.take(at, event);
    }

    fn lock(&mut self, owner: &str) -> &mut Lock {
        let (clients, missed, now) = (self.channels.len(), self.missed, self.now);
        let lock = self.locks.entry(owner.to_owned());
        lock.or_insert_with(|| {
            let mut lock = Lock::new(clients);
            if missed {
                lock.take(now, Event::Outside);
            }
            lock
        })
    }

    /// The number of a channel. Whoever asks has subscribed.
    fn channel(&mut self, channel: &str) -> usize {
        if let Some(number) = self.channels.get(channel) {
            return *number;
        }
        let number = self.channels.len();
        self.channels.insert(channel.to_owned(), number);
        for lock in self.locks.values_mut() {
            lock.history.add_client();
        }
        number
    }

    fn listens(&mut self, channel: &str, heard: bool) {
        let (client, at) = (self.channel(channel), self.now);
        for lock in self.locks.values_mut() {
            lock.take(at, Event::Listens(client, heard));
        }
    }

    /// Also a lock of which nothing else has been seen: it may be held from here on.
    fn leave_out(&mut self, owner: &str) {
        let at = self.now;
        self.lock(owner).take(at, Event::Outside);
    }

    fn leave_out_all(&mut self) {
        self.running = None;
        self.missed = true;
        let at = self.now;
        for lock in self.locks.values_mut() {
            lock.take(at, Event::Outside);
        }
    }
}

impl Lock {
    fn new(clients: usize) -> Self {
        let rules = Rules {
            ttl: 10 * SECOND,
            claim: 3 * SECOND,
            margin: 0,
            silence: 3 * SECOND,
            window: 1_000,
            followers: 63,
            cooldown: 0,
            ticket: 0,
            call_timeout: 0,
            quarantine: false,
            bug: None,
        };
        let mut history = History::new(rules, 1, 0);
        (0..clients).for_each(|_| history.add_client());
        Self {
            history,
            refused: None,
        }
    }

    fn take(&mut self, at: u64, event: Event) {
        if self.refused.is_none() {
            let refused = self.history.step(Step { at, lock: 0, event }).err();
            self.refused = refused.map(|it| it.to_string());
        }
    }
}

/// Whether a command changes nothing.
fn is_read(name: &str) -> bool {
    let reads = [
        "get",
        "mget",
        "exists",
        "ttl",
        "pttl",
        "type",
        "keys",
        "scan",
        "zrange",
        "zcard",
        "zscore",
        "publish",
        "subscribe",
        "script",
        "info",
        "client",
        "hello",
        "select",
        "ping",
        "wait",
        "config",
        "lrange",
        "role",
    ];
    reads.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_whose_first_command_is_not_the_models_is_left_out() {
        for (command, is_left_out) in [
            (r#""eval" "return 1" "1" "lock:{k}""#, true),
            (r#""set" "lock:{k}" "somebody""#, true),
            (r#""get" "lock:{k}""#, false),
        ] {
            let mut seen = Seen::default();
            seen.hear(&format!("+1795800686.026075 [0 127.0.0.1:7] {command}"));
            let history = &seen.lock("lock:{k}").history;
            assert_eq!(!history.checks(0), is_left_out, "{command}");
        }
    }
}
