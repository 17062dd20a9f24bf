//! The ways from the processes to the server, and what is done to them.

use std::{io, net::SocketAddr, time::Duration};

use tokio::time::sleep;

use super::{
    Setting, probe,
    site::{Servers, Site},
};
use crate::{Proxy, RedisServer, Worker, namespace::Namespace};

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

/// The way of some processes to the server.
#[derive(Debug)]
pub(super) enum Way {
    Namespace(Namespace, SocketAddr),
    Proxy(Proxy),
}

/// Starts the servers and the ways to them. Servers that say to clients where others are, are reached directly: there
/// is nothing in between.
pub(super) async fn lay(setting: &Setting, options: &[(&str, &str)]) -> (Site, Vec<Way>) {
    if setting.servers != Servers::Redis {
        let site = Site::start(setting.servers, options).await;
        return (site, Vec::new());
    }
    if setting.medium == Medium::Proxies {
        let server = RedisServer::start().await;
        let proxies = (0..WAYS).map(|_| Proxy::start(server.addr()));
        let ways = proxies.map(Way::Proxy).collect();
        return (Site::One(Box::new(server)), ways);
    }
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
    (Site::One(Box::new(server)), ways)
}

impl Way {
    /// The server's URL for those who take this way.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Namespace(_, addr) => format!("redis://{addr}"),
            Self::Proxy(proxy) => proxy.url(),
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
            Self::Proxy(_) => Worker::spawn(program, args).await,
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
            Self::Proxy(proxy) => {
                if requests {
                    proxy.requests().hold();
                }
                if replies {
                    proxy.replies().hold();
                }
            }
        }
    }

    /// Whether it can be.
    fn unplug(&self) -> bool {
        match self {
            Self::Namespace(namespace, _) => must(namespace.unplug()),
            Self::Proxy(_) => return false,
        }
        true
    }

    fn pass(&self) {
        match self {
            Self::Namespace(namespace, _) => must(namespace.pass()),
            Self::Proxy(proxy) => {
                proxy.requests().pass();
                proxy.replies().pass();
            }
        }
    }

    async fn cut(&self) {
        match self {
            Self::Namespace(namespace, _) => must(namespace.cut()),
            Self::Proxy(proxy) => proxy.cut().await,
        }
    }
}

fn must<T>(outcome: io::Result<T>) -> T {
    outcome.unwrap_or_else(|error| panic!("the network cannot be changed any more: {error}"))
}
