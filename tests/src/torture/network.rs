//! The ways from the processes to the servers, and what is done to them.

use std::{io, net::SocketAddr, time::Duration};

use tokio::time::sleep;

use super::{
    Profile, Servers, Setting, probe, proxies::Proxies, site::Site, store::Store, trap::Trap,
};
use crate::{RedisServer, Worker, namespace::Namespace};

/// How many ways there are, each of some processes.
const WAYS: u32 = 2;

/// What the ways are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Cables to network namespaces, which lose packets.
    Namespaces,
    /// TCP proxies, which hold back bytes.
    Proxies,
}

impl Medium {
    /// Namespaces, tried out.
    ///
    /// # Errors
    ///
    /// Why they cannot be made, or do not do what they are for.
    pub fn probe(program: &str) -> io::Result<Self> {
        Namespace::sweep();
        probe::check(&Namespace::make(0)?, program)?;
        Ok(Self::Namespaces)
    }
}

/// The way of some processes to the servers.
#[derive(Debug)]
pub(super) enum Way {
    /// To one server.
    Namespace(Namespace, SocketAddr),
    /// To many.
    Proxies(Proxies),
}

/// Starts the servers and the ways to them. Where no fault of the profile is about a way, servers that say to clients
/// where others are, are reached directly. The clock of a server at the end of cables cannot be moved.
pub(super) async fn lay(setting: &Setting, profile: Profile) -> (Store, Vec<Way>) {
    let servers = setting.servers;
    let with_cables = !profile.needs_proxies() && profile != Profile::Clock;
    if servers == Servers::Redis && setting.medium == Medium::Namespaces && with_cables {
        return lay_cables().await;
    }
    let mut store = Store::start(servers, profile).await;
    let ways = if profile.needs_ways() || servers == Servers::Redis {
        let targets = store.fleet().addresses();
        let ways = (0..WAYS).map(|_| Way::Proxies(Proxies::start(&targets)));
        ways.collect()
    } else {
        Vec::new()
    };
    (store, ways)
}

async fn lay_cables() -> (Store, Vec<Way>) {
    let namespaces: Vec<_> = (0..WAYS).map(Namespace::make).map(must).collect();
    let mut server = RedisServer::builder();
    for namespace in &namespaces {
        server = server.listen(namespace.host());
    }
    let server = server.start().await;
    let ways = namespaces.into_iter().map(|namespace| {
        let addr = (namespace.host(), server.port()).into();
        Way::Namespace(namespace, addr)
    });
    let ways = ways.collect();
    (Store::Redis(Site::One(Box::new(server))), ways)
}

impl Way {
    /// The servers' URL for those who take this way.
    pub(super) fn url(&self, servers: Servers) -> String {
        match self {
            Self::Namespace(_, addr) => servers.url(&[*addr]),
            Self::Proxies(proxies) => servers.url(&proxies.addresses()),
        }
    }

    /// What breaks its connections at a message, of clients or of servers.
    pub(super) fn trap(&self, from_server: bool) -> &Trap {
        self.proxies().trap(from_server)
    }

    /// Its proxies, by the numbers of the servers.
    pub(super) fn proxies(&self) -> &Proxies {
        match self {
            Self::Proxies(proxies) => proxies,
            Self::Namespace(..) => panic!("the profile needs proxies"),
        }
    }

    /// Starts a process that takes this way.
    pub(super) async fn spawn(&self, program: &str, args: &[&str]) -> Worker {
        match self {
            Self::Namespace(namespace, _) => {
                let [first, words @ ..] = namespace.enter();
                let words = [&words[..], &[program], args].concat();
                Worker::spawn(first, words).await
            }
            Self::Proxies(_) => Worker::spawn(program, args).await,
        }
    }

    /// Closes the way for a while, wholly or in part, or breaks what goes through it; says what it was.
    pub(super) async fn strike(&self, time: Duration) -> &'static str {
        let what = match fastrand::u8(..5) {
            0 => {
                self.stop(true, false);
                "requests stopped"
            }
            1 => {
                self.stop(false, true);
                "replies stopped"
            }
            2 => {
                self.cut().await;
                return "cut";
            }
            3 if self.unplug() => "unplugged",
            _ => {
                self.stop(true, true);
                "both stopped"
            }
        };
        sleep(time).await;
        if fastrand::bool() {
            // What was sent meanwhile is lost, else it comes late.
            self.cut().await;
        }
        self.pass();
        what
    }

    fn stop(&self, requests: bool, replies: bool) {
        match self {
            Self::Namespace(namespace, _) => must(namespace.stop(requests, replies)),
            Self::Proxies(proxies) => proxies.hold(requests, replies),
        }
    }

    /// Whether it can be.
    fn unplug(&self) -> bool {
        match self {
            Self::Namespace(namespace, _) => must(namespace.unplug()),
            Self::Proxies(_) => return false,
        }
        true
    }

    fn pass(&self) {
        match self {
            Self::Namespace(namespace, _) => must(namespace.pass()),
            Self::Proxies(proxies) => proxies.pass(),
        }
    }

    async fn cut(&self) {
        match self {
            Self::Namespace(namespace, _) => must(namespace.cut()),
            Self::Proxies(proxies) => proxies.cut().await,
        }
    }
}

fn must<T>(outcome: io::Result<T>) -> T {
    outcome.unwrap_or_else(|error| panic!("the network cannot be changed any more: {error}"))
}
