//! The servers of a store as faults see them: each may stand still, be cut off or be slow, whatever store it is.

use std::{fmt::Debug, net::SocketAddr, pin::Pin, time::Duration};

use tokio::time::sleep;

use super::{Profile, Servers, mysql, postgres, site::Site};
use crate::{EtcdCluster, RedisServer, ZooKeeperEnsemble};

/// What is done to servers, in its own time.
pub(super) type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What a fault may do to the servers of any store. They have numbers, by the order of their addresses.
pub(super) trait Fleet: Debug {
    /// Where clients find them, those included that only say where others are.
    fn addresses(&self) -> Vec<SocketAddr>;

    /// Stops one as if its machine hung.
    fn stop(&mut self, server: usize);

    /// Lets it go on.
    fn resume(&mut self, server: usize);

    /// Lets one stand still for so long, or what comes near to it.
    fn halt(&mut self, server: usize, time: Duration) -> Doing<'_, &'static str> {
        Box::pin(async move {
            self.stop(server);
            sleep(time).await;
            self.resume(server);
            "server stopped"
        })
    }

    /// One that clients' requests are for: a master, or the leader.
    fn leader(&mut self) -> Doing<'_, usize>;

    /// Those that could be slow or out of date while that one leads.
    fn witnesses(&self, leader: usize) -> Vec<usize>;

    /// The servers that are left to clients who are on the side of a cut with `leader`, which is the smaller one; the
    /// others are on the other side.
    fn minority(&self, leader: usize) -> Vec<usize> {
        vec![leader]
    }

    /// Cuts these off from all others, and not from clients.
    fn cut_off<'a>(&'a mut self, servers: &'a [usize]) -> Doing<'a, ()>;

    /// Undoes it.
    fn rejoin<'a>(&'a mut self, servers: &'a [usize]) -> Doing<'a, ()>;

    /// Has another one lead in place of this one; nothing where they find out by themselves.
    fn replace(&mut self, leader: usize) -> Doing<'_, ()>;

    /// Cuts a witness off from the others; it answers clients all the same, or will once it sees them again.
    fn blind(&mut self, witness: usize);

    /// Undoes it.
    fn see(&mut self, witness: usize);

    /// Waits until all agree and serve.
    fn settled(&mut self) -> Doing<'_, ()>;

    /// What is there of locks that nobody has or wants any more, once all leases have ended.
    fn left_behind(&mut self) -> Doing<'_, Vec<String>>;
}

/// Such servers, running.
#[derive(Debug)]
pub(super) enum Store {
    Redis(Site),
    ZooKeeper(ZooKeeperEnsemble),
    Etcd(EtcdCluster),
    Postgres(Box<postgres::Site>),
    Mysql(Box<mysql::Site>),
}

impl Store {
    /// Starts them as the profile needs them.
    pub(super) async fn start(servers: Servers, profile: Profile) -> Self {
        const HAVE: &str = "the store's servers can be had: see the notice";
        let test = "torture";
        match servers {
            Servers::ZooKeeper => {
                Self::ZooKeeper(super::zookeeper::start(test, profile).await.expect(HAVE))
            }
            Servers::Etcd => Self::Etcd(super::etcd::start(test, profile).await.expect(HAVE)),
            Servers::Postgres => {
                let site = postgres::Site::start(test, profile).await.expect(HAVE);
                Self::Postgres(Box::new(site))
            }
            Servers::Mysql => {
                let site = mysql::Site::start(test, profile).await.expect(HAVE);
                Self::Mysql(Box::new(site))
            }
            _ => Self::Redis(super::redis::start(servers, profile).await),
        }
    }

    pub(super) fn fleet(&mut self) -> &mut dyn Fleet {
        match self {
            Self::Redis(site) => site,
            Self::ZooKeeper(ensemble) => ensemble,
            Self::Etcd(cluster) => cluster,
            Self::Postgres(site) => site.as_mut(),
            Self::Mysql(site) => site.as_mut(),
        }
    }

    /// The servers, which are of Redis.
    pub(super) fn redis(&mut self) -> &mut Site {
        match self {
            Self::Redis(site) => site,
            _ => panic!("the profile is about servers of Redis"),
        }
    }

    /// The servers, which are of PostgreSQL.
    pub(super) fn postgres(&mut self) -> &mut postgres::Site {
        match self {
            Self::Postgres(site) => site,
            _ => panic!("the profile is about servers of PostgreSQL"),
        }
    }

    /// How many of its clocks can be moved; none if that is not possible.
    pub(super) fn clocks(&self) -> usize {
        match self {
            Self::Redis(site) if site.nodes().iter().all(RedisServer::has_clock) => {
                site.nodes().len()
            }
            Self::Postgres(site) => usize::from(site.has_clock()),
            Self::Mysql(site) => usize::from(site.has_clock()),
            _ => 0,
        }
    }

    /// One of its clocks is ahead of the machine's by so much from now on.
    pub(super) async fn set_clock(&self, number: usize, ahead: Duration) {
        match self {
            Self::Redis(site) => site.nodes()[number].set_clock(ahead).await,
            Self::Postgres(site) => site.set_clock(ahead),
            Self::Mysql(site) => site.set_clock(ahead),
            _ => panic!("its clocks cannot be moved"),
        }
    }

    /// The servers of Redis, if they are.
    pub(super) fn site(&self) -> Option<&Site> {
        match self {
            Self::Redis(site) => Some(site),
            _ => None,
        }
    }
}
