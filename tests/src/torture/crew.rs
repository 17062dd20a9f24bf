//! The processes, the servers and the network that are tortured.

use std::{ops::Range, path::Path, time::Duration};

use redis::Value;
use tokio::time::{sleep, timeout};

use super::{
    HANDED_KEY, LEADER_KEY, Library, PROCESSES, Profile, Servers, Setting, adoptions,
    check::{Promises, Served},
    clock,
    history::{Event, History, Kind, Mode, monotonic},
    lock_name,
    network::{self, Way},
    site::Site,
    store::Store,
    transfers,
};
use crate::{
    ChainWatch, Chains, HistoryVerdict, HistoryWatch, RedisServer, TIME_LIMIT, Worker, connect,
    etcd_verdict, eventually, zookeeper_verdict,
};

/// How much longer than a key's recovery it may take on a busy machine until every process has been granted something.
const SERVED_WITHIN: Duration = Duration::from_secs(4);

/// Everything that a fault may strike.
#[derive(Debug)]
pub(super) struct Crew {
    /// Those who take locks.
    pub(super) workers: Vec<Worker>,
    /// Where the locks are.
    pub(super) store: Store,
    pub(super) servers: Servers,
    /// The ways to them, each of some workers.
    pub(super) ways: Vec<Way>,
    /// By how much the clocks of servers are ahead.
    pub(super) ahead: Vec<Duration>,
    /// What was seen that must not be.
    pub(super) violations: Vec<String>,
    /// When no majority of the servers was up.
    pub(super) closed: Vec<Range<Duration>>,
    /// When some processes had to be granted locks.
    pub(super) served: Vec<Served>,
    watch: ChainWatch,
    /// What the server does, where the model has all of it.
    history: Option<HistoryWatch>,
    /// What the URL says of the locks.
    query: String,
    pub(super) profile: Profile,
    library: Option<Library>,
    register: RedisServer,
    program: String,
    /// Where servers are that are reached directly.
    url: String,
    directory: tempfile::TempDir,
}

impl Crew {
    /// Starts everything.
    pub(super) async fn start(setting: &Setting, profile: Profile) -> Self {
        let servers = setting.servers;
        let (mut store, ways) = network::lay(setting, profile).await;
        let url = servers.url(&store.fleet().addresses());
        let mut crew = Self {
            workers: Vec::new(),
            watch: ChainWatch::start(nodes(&store)).await,
            history: match nodes(&store) {
                [server] if servers == Servers::Redis && profile.is_followed() => {
                    Some(HistoryWatch::start(server).await)
                }
                _ => None,
            },
            url,
            store,
            servers,
            ways,
            ahead: Vec::new(),
            violations: Vec::new(),
            closed: Vec::new(),
            served: Vec::new(),
            query: profile.protection(servers).query(servers, servers.ttl()),
            profile,
            library: setting.library,
            register: RedisServer::start().await,
            program: setting.program.clone(),
            directory: tempfile::tempdir().expect("a directory"),
        };
        for number in 0..PROCESSES {
            let worker = crew.hire(number).await;
            crew.workers.push(worker);
        }
        crew.began().await;
        crew
    }

    /// Waits until every process has had a lock: the first fault finds all at work.
    async fn began(&mut self) {
        let history = |worker: &Worker| self.directory().join(History::file(worker.pid()));
        let began = async || {
            let files = self.workers.iter().map(history);
            let mut lengths = files.map(|it| it.metadata().map_or(0, |it| it.len()));
            lengths.all(|it| it > 0)
        };
        if timeout(3 * TIME_LIMIT, eventually(4 * TIME_LIMIT, began))
            .await
            .is_err()
        {
            let what = "a process got no lock although nothing had failed";
            self.violations.push(what.to_owned());
        }
    }

    /// Waits until the servers agree and serve again after a fault.
    pub(super) async fn settle(&mut self) {
        let settled = self.store.fleet().settled();
        if timeout(2 * TIME_LIMIT, settled).await.is_err() {
            let what = format!("the servers do not serve again at {:?}", monotonic());
            self.violations.push(what);
        }
    }

    /// Kills a worker and starts another one.
    pub(super) async fn replace(&mut self, number: usize) {
        self.workers[number].kill().await;
        self.workers[number] = self.hire(number).await;
    }

    /// Those that take this way.
    pub(super) fn processes(&self, way: usize) -> Vec<u32> {
        let workers = self.workers.iter().enumerate();
        let own = workers.filter(|(number, _)| number % self.ways.len() == way);
        own.map(|(_, worker)| worker.pid()).collect()
    }

    /// Waits for longer than it takes that others lead and serve, in which these processes have to be granted locks.
    pub(super) async fn serve(&mut self, processes: Vec<u32>, fault: &'static str) {
        let from = monotonic();
        sleep(self.servers.recovery() + SERVED_WITHIN).await;
        self.served.push(Served {
            processes,
            time: from..monotonic(),
            fault,
        });
    }

    /// What holds in spite of the faults. Other libraries promise nothing of it.
    pub(super) fn promises(&self) -> Promises {
        let promises = self.profile.promises(self.servers);
        let kept = self.library.is_none_or(|it| it == Library::Ours);
        Promises {
            exclusive: kept && promises.exclusive,
            fences: kept && promises.fences,
            ..promises
        }
    }

    /// Where the histories are.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What became of tickets.
    pub(super) fn tickets(&self) -> Vec<adoptions::Event> {
        adoptions::read(self.directory()).expect("the histories can be read")
    }

    /// Takes a lock from its holders.
    pub(super) async fn force(&self, lock: &str) {
        let site = self.store.site().expect("servers of Redis");
        let locks = connect(site.url()).await;
        let forced = locks.force_release(lock).await;
        forced.unwrap_or_else(|error| panic!("{lock} cannot be forced: {error}"));
        locks.shutdown().await;
    }

    /// A stolen key has its thief's value or has expired and gone on; it was not deleted before.
    pub(super) async fn check_thief(&mut self, key: &str) {
        let value = self
            .store
            .redis()
            .master_of(key)
            .await
            .cmd(&["GET", key])
            .await;
        if value != Value::BulkString(b"thief".to_vec()) {
            self.violations
                .push(format!("{key}: a foreign value was removed: {value:?}"));
        }
    }

    /// Every key of a lock has a ttl.
    pub(super) async fn check_ttls(&mut self) {
        let Some(site) = self.store.site() else {
            return;
        };
        for master in site.masters().await {
            let keys = master.without_ttl("lock:{*").await;
            // But for the note of a node of a cluster, which is about no lock.
            for key in keys.iter().filter(|key| !key.contains("}:run:")) {
                self.violations.push(format!("{key} has no ttl"));
            }
        }
    }

    /// What is wrong with what transactions have written beside the bodies.
    pub(super) async fn check_accounts(&mut self) {
        if self.profile == Profile::ClockForward {
            let wrong = transfers::check_accounts(&self.url).await;
            self.violations.extend(wrong);
        }
    }

    /// How many entries of locks stay although every process is gone and every lease has had time to end.
    pub(super) async fn left_behind(&mut self) -> usize {
        clock::overtake(self).await;
        if self.servers == Servers::ZooKeeper {
            self.take_turns().await;
        }
        let end = monotonic() + TIME_LIMIT;
        loop {
            let left = self.store.fleet().left_behind().await;
            if left.is_empty() || monotonic() > end {
                let all = left.iter().map(|it| format!("{it} was left behind"));
                self.violations.extend(all);
                return left.len();
            }
            sleep(TIME_LIMIT / 100).await;
        }
    }

    /// Takes each lock that was handed on: an expired ticket stays until somebody asks for its lock.
    async fn take_turns(&mut self) {
        let locks = connect(&*self.url).await;
        for name in (HANDED_KEY..LEADER_KEY).map(lock_name) {
            let turn = locks.lock(&*name).wait(TIME_LIMIT).acquire().await;
            if let Err(error) = turn {
                self.violations
                    .push(format!("{name} stays closed: {error}"));
            }
        }
        locks.shutdown().await;
    }

    /// The fences whose writes to the register of a key were taken, in that order.
    pub(super) async fn writes(&self, key: usize) -> Vec<u64> {
        let log = format!("{}:log", lock_name(key));
        let value = self.register.cmd(&["LRANGE", &log, "0", "-1"]).await;
        redis::from_redis_value(value).expect("numbers")
    }

    /// What came of those to whom a lock was handed together with another one.
    pub(super) async fn chains(&self, events: &[Event]) -> Chains {
        self.watch.catch_up(nodes(&self.store)).await;
        let entered = events.iter().filter(|event| event.kind == Kind::Enter);
        let entered: Vec<_> = entered
            .map(|event| (lock_name(event.grant.key), event.grant.fence))
            .collect();
        let entered = entered.iter().map(|(name, fence)| (name.as_str(), *fence));
        self.watch.chains(entered)
    }

    /// What the model says of the servers' steps, if it has them.
    pub(super) async fn model(&self, events: &[Event]) -> Option<HistoryVerdict> {
        match (&self.store, &self.history, nodes(&self.store)) {
            (_, Some(history), [server]) => Some(history.verdict(server).await),
            (Store::Etcd(cluster), ..) if self.promises().exclusive => {
                Some(etcd_verdict(&cluster.members[1], &lock_name(""), begun(events)).await)
            }
            (Store::ZooKeeper(ensemble), ..) if self.promises().exclusive => {
                Some(zookeeper_verdict(ensemble.history(), begun(events)))
            }
            _ => None,
        }
    }

    async fn hire(&self, number: usize) -> Worker {
        let way = self.ways.get(number % self.ways.len().max(1));
        let url = way.map_or_else(|| self.url.clone(), |way| way.url(self.servers));
        let command = match self.library {
            Some(library) => {
                library.command(&self.program, &url, self.directory(), self.servers.ttl())
            }
            None => self.load(&(url + &self.query)),
        };
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        let (program, args) = words.split_first().expect("a command has a program");
        match way {
            Some(way) => way.spawn(program, args).await,
            None => Worker::spawn(program, args).await,
        }
    }

    /// The command of a process that takes locks of every kind.
    fn load(&self, url: &str) -> Vec<String> {
        let directory = self.directory().to_string_lossy();
        // Not through the network, which is tortured.
        let register = self.register.unix_url();
        let (store, profile) = (self.servers.name(), self.profile.name());
        let args = ["load", store, url, &register, &directory, profile];
        let args = args.map(str::to_owned).into_iter();
        [self.program.clone()].into_iter().chain(args).collect()
    }
}

/// Those that keep locks, if they are of Redis.
fn nodes(store: &Store) -> &[RedisServer] {
    store.site().map_or(&[], Site::nodes)
}

/// The bodies that began under exclusive locks: each with its lock, its fence and its process.
fn begun(events: &[Event]) -> impl Iterator<Item = (String, u64, u32)> {
    let began = |it: &&Event| it.kind == Kind::Enter && it.grant.mode == Mode::Alone;
    let began = events.iter().filter(began).map(|it| it.grant);
    began.map(|it| (lock_name(it.key), it.fence, it.process))
}
