//! What becomes of those to whom a lock was handed together with another one: how many chains servers form, and who in
//! them gets the lock.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};

use crate::{
    RedisServer, TIME_LIMIT, eventually,
    monitor::{Monitor, command},
    net::runtime,
    protocol::token_of,
    unique,
};

/// The pause before a server that has ended a connection is listened to again.
const PAUSE: Duration = Duration::from_millis(20);

/// Listens to everything that servers do. A subscriber would not do: the servers would count it among those who hear
/// of their grants.
#[derive(Debug)]
pub struct ChainWatch {
    seen: Arc<Mutex<Seen>>,
    // Dropped, they end.
    _listeners: JoinSet<()>,
}

/// What has become of those who were to be passed a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chains {
    /// How often a lock was handed to several at once.
    pub formed: usize,
    /// How many they were at the most.
    pub longest: usize,
    /// How many they were in all, beside the first ones.
    pub followers: usize,
    /// How many of those were handed the lock.
    pub entered: usize,
    /// How many of them waited again instead.
    pub started_over: usize,
}

impl Chains {
    /// How many gave up and were skipped, or died.
    pub fn gone(&self) -> usize {
        self.followers - self.entered - self.started_over
    }
}

impl fmt::Display for Chains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} chains, the longest of {}, with {} followers: {} were handed the lock, {} waited again, {} gave up or died",
            self.formed,
            self.longest,
            self.followers,
            self.entered,
            self.started_over,
            self.gone()
        )
    }
}

/// The key of an owner, and the number of a grant.
type Number = (String, u64);

/// What servers have done.
#[derive(Debug, Default)]
struct Seen {
    /// The position of each token that waits or has waited.
    positions: HashMap<String, String>,
    /// The numbers of those who follow, by the keys of owners and the positions in their queues.
    following: HashMap<String, HashMap<String, u64>>,
    /// The numbers that were set aside, and whether their owners have acquired again.
    set_aside: HashMap<Number, bool>,
    formed: usize,
    longest: usize,
    /// What was said to servers for nothing but to hear it here.
    echoes: Vec<String>,
}

impl ChainWatch {
    /// Listens to these servers from now on, also where they end connections or start again.
    pub async fn start(servers: impl IntoIterator<Item = &RedisServer>) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let mut listeners = JoinSet::new();
        let servers: Vec<_> = servers.into_iter().collect();
        for server in &servers {
            let listener = listen(server.addr(), Arc::clone(&seen));
            listeners.spawn_on(listener, runtime().handle());
        }
        let watch = Self {
            seen,
            _listeners: listeners,
        };
        watch.catch_up(servers).await;
        watch
    }

    /// Returns when everything is known that these servers have done until now.
    pub async fn catch_up(&self, servers: impl IntoIterator<Item = &RedisServer>) {
        for server in servers {
            let echo = unique("echo");
            eventually(TIME_LIMIT, async || {
                server.cmd(&["ECHO", &echo]).await;
                lock(&self.seen).echoes.contains(&echo)
            })
            .await;
        }
    }

    /// What came of it, given the names of the locks that were taken, and the fences.
    pub fn chains<'a>(&self, entered: impl IntoIterator<Item = (&'a str, u64)>) -> Chains {
        let entered = entered.into_iter();
        let entered: HashSet<_> = entered
            .map(|(name, fence)| (RedisServer::owner_key(name), fence))
            .collect();
        let seen = lock(&self.seen);
        let mut chains = Chains {
            formed: seen.formed,
            longest: seen.longest,
            followers: seen.set_aside.len(),
            ..Chains::default()
        };
        for (follower, again) in &seen.set_aside {
            if entered.contains(follower) {
                chains.entered += 1;
            } else if *again {
                chains.started_over += 1;
            }
        }
        chains
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
        }
        sleep(PAUSE).await;
    }
}

impl Seen {
    fn hear(&mut self, line: &str) {
        // Few of the commands matter here.
        let matters = [
            r#" lua] "ZADD""#,
            r#" lua] "PUBLISH""#,
            r#"] "EVALSHA""#,
            r#"] "ECHO""#,
        ];
        if !matters.iter().any(|it| line.contains(it)) {
            return;
        }
        let Some((_, words)) = command(line) else {
            return;
        };
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["echo", said] => self.echoes.push((*said).to_owned()),
            ["evalsha", _, count, rest @ ..] => {
                let count = count
                    .parse()
                    .map_or(0, |count: usize| count.min(rest.len()));
                let (keys, arguments) = rest.split_at(count);
                for owner in keys {
                    self.called(owner, arguments);
                }
            }
            ["zadd", _, "NX", position, member] => self.joins(position, member),
            ["publish", _, message] => self.handed(message),
            _ => {}
        }
    }

    /// Each position belongs to one waiter: a call that names it, alone or as one of many, comes from a follower that
    /// acquires again.
    fn called(&mut self, owner: &str, arguments: &[&str]) {
        let Some(following) = self.following.get_mut(owner) else {
            return;
        };
        for argument in arguments {
            let position = argument.rsplit('@').next().unwrap_or_default();
            if let Some(fence) = following.remove(position) {
                self.set_aside.insert((owner.to_owned(), fence), true);
            }
        }
    }

    fn joins(&mut self, position: &str, member: &str) {
        if let Some((_, name)) = member.split_once('\n') {
            let token = token_of(name).to_owned();
            self.positions.insert(token, position.to_owned());
        }
    }

    fn handed(&mut self, message: &str) {
        let lines: Vec<_> = message.split('\n').collect();
        let [fence, owner, first, followers @ ..] = lines.as_slice() else {
            return;
        };
        self.positions.remove(token_of(first));
        let Some(fence) = fence.parse::<u64>().ok().filter(|_| !followers.is_empty()) else {
            return;
        };
        self.formed += 1;
        self.longest = self.longest.max(1 + followers.len());
        let following = self.following.entry((*owner).to_owned()).or_default();
        for (token, fence) in followers.iter().zip(fence + 1..) {
            self.set_aside.insert(((*owner).to_owned(), fence), false);
            let position = self.positions.remove(*token);
            following.extend(position.map(|position| (position, fence)));
        }
    }
}
