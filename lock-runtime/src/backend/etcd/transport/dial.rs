//! Opens a connection to one member: socket, login, and what the member says about its
//! cluster.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderValue;

use super::channel::Channel;
use crate::backend::etcd::address::Address;
use crate::backend::etcd::protocol::messages::{
    AuthenticateRequest, AuthenticateResponse, Empty, Member, MemberListResponse, StatusResponse,
};
use crate::backend::etcd::protocol::trouble::{Trouble, cause};
use crate::backend::etcd::queue::Quorum;
use crate::backend::setup::Setup;
use crate::backend::transport::distrust::Distrust;
use crate::backend::transport::endpoint::{Route, StreamOptions};
use crate::backend::transport::logins::Logins;
use crate::types::authority::Host;
use crate::types::credentials::Credentials;
use crate::types::error::Cause;

pub(crate) const MEMBER_LIST: &str = "/etcdserverpb.Cluster/MemberList";
pub(crate) const DELETE_RANGE: &str = "/etcdserverpb.KV/DeleteRange";
const STATUS: &str = "/etcdserverpb.Maintenance/Status";

/// An answer of a member, or the reason why the user may not ask for it.
pub(crate) type Permitted<T> = Result<T, Cause>;

/// An open connection, and what the member has said.
pub(crate) struct Opened {
    pub(crate) channel: Channel,
    pub(crate) members: Permitted<Vec<Member>>,
    pub(crate) status: Permitted<StatusResponse>,
}

impl Opened {
    pub(crate) fn cluster(&self) -> Cluster {
        let status = self.status.as_ref().ok();
        Cluster {
            voters: self.members.as_ref().ok().map(|it| voters(it)),
            version: status.map(|it| Version::read(&it.version)),
        }
    }
}

/// The numbers of the members that vote.
pub(crate) fn voters(members: &[Member]) -> Vec<u64> {
    let voters = members.iter().filter(|it| !it.is_learner);
    voters.map(|it| it.id).collect()
}

/// A member's knowledge of its cluster, as far as the user may ask.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// The members that vote.
    pub(crate) voters: Option<Vec<u64>>,
    /// That of the member that was asked.
    pub(crate) version: Option<Version>,
}

impl Cluster {
    /// How many members vote, of which so many are `named`: all of them, for all that is
    /// known.
    pub(crate) fn size(&self, named: usize) -> usize {
        self.voters.as_ref().map_or(named, Vec::len)
    }

    /// How many of the members that are `named` have to confirm a keep-alive.
    pub(crate) fn needed(&self, named: usize) -> usize {
        let majority = self.size(named) / 2 + 1;
        if named < majority && self.version.is_some_and(Version::confirms_leases) {
            1
        } else {
            majority
        }
    }

    /// The members that have to confirm a keep-alive if so many are `named`.
    pub(crate) fn quorum(&self, named: usize) -> Quorum {
        let voters = self.voters.clone().unwrap_or_default();
        Quorum {
            needed: self.needed(named),
            // The proxy of etcd speaks of itself, and has no number.
            voters: if voters.contains(&0) {
                Vec::new()
            } else {
                voters
            },
            too_few: self.too_few(named).map(cause),
        }
    }

    /// Why the members that are named are too few to confirm a lease.
    pub(crate) fn too_few(&self, named: usize) -> Option<String> {
        let needed = self.needed(named);
        (named < needed).then(|| {
            let size = self.size(named);
            let known = match self.version {
                Some(version) => format!("etcd {version}"),
                None => "etcd of a version for which the user may not ask".to_owned(),
            };
            format!(
                "the cluster has {size} members, and {known} may renew a lease that has ended unless {needed} of \
                 them are asked: name all of them, or update to etcd 3.4.31, 3.5.23, 3.6.5 or newer{}",
                if self.version.is_some() {
                    ""
                } else {
                    ", and let the user ask (Maintenance/Status)"
                }
            )
        })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) [u32; 3]);

/// The way to one member.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(crate) route: Route,
    logins: Logins,
    pub(crate) connect_timeout: Duration,
}

impl Dialer {
    pub(crate) fn new(address: &Address, host: &Host, setup: &Setup) -> Self {
        Self {
            route: Route::tcp(host, address.encrypted, setup),
            logins: Logins::new(address.login.clone(), setup),
            connect_timeout: setup.connect_timeout,
        }
    }

    /// Whether it logs in where there are users.
    pub(crate) fn has_login(&self) -> bool {
        !self.logins.is_empty()
    }

    /// Opens a connection; the handshake may take so long.
    pub(crate) async fn open(self, timeout: Duration) -> Result<Opened, Trouble> {
        let login = self.logins.latest().await.map_err(Trouble::NotNow)?;
        let opened = tokio::time::timeout(timeout, self.open_unbounded(login)).await;
        opened.unwrap_or_else(|_| Err(Trouble::said(self.route.silence())))
    }

    async fn open_unbounded(&self, login: Option<Credentials>) -> Result<Opened, Trouble> {
        let options = StreamOptions {
            alpn: Some("h2"),
            ..StreamOptions::default()
        };
        let opening = self.route.open(options);
        let stream = opening.await.map_err(|error| trouble(&error))?;
        let failed = |error: h2::Error| Trouble::unknown(error.to_string());
        let encrypted = if self.route.is_encrypted() { "s" } else { "" };
        let uri = format!("http{encrypted}://{}", self.route.endpoint);
        let mut channel = Channel::open(stream, uri).await.map_err(failed)?;
        if let Some(login) = login {
            channel.token = authenticate(&mut channel, login).await?;
        }
        let members = permitted(channel.ask(MEMBER_LIST, &Empty {}).await)?;
        let status = permitted(channel.ask(STATUS, &Empty {}).await)?;
        Ok(Opened {
            channel,
            members: members.map(|it: MemberListResponse| it.members),
            status,
        })
    }
}

impl Version {
    pub(crate) fn read(text: &str) -> Self {
        let mut version = Self::default();
        let digits = |part: &str| {
            part.split(|c: char| !c.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        };
        for (number, part) in version.0.iter_mut().zip(text.split('.')) {
            *number = digits(part).unwrap_or(0);
        }
        version
    }

    /// Whether a member asks the others before it renews a lease, so that the answer of
    /// one is enough.
    pub(crate) fn confirms_leases(self) -> bool {
        self >= match self.0 {
            [3, 4, _] => Self([3, 4, 31]),
            [3, 5, _] => Self([3, 5, 23]),
            _ => Self([3, 6, 5]),
        }
    }

    /// Whether a leader asks the others before it ends a lease that has not been renewed by itself:
    /// others may lead by then, and may have renewed the lease.
    pub(crate) fn ends_leases_as_leader(self) -> bool {
        self >= match self.0 {
            [3, 4, _] => Self([3, 4, 31]),
            _ => Self([3, 5, 13]),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// The token for later requests; `None` if etcd authenticates nobody.
async fn authenticate(
    channel: &mut Channel,
    login: Credentials,
) -> Result<Option<HeaderValue>, Trouble> {
    let request = AuthenticateRequest {
        name: login.user.unwrap_or_else(|| "root".to_owned()),
        password: login.password,
    };
    let asked = channel.ask("/etcdserverpb.Auth/Authenticate", &request);
    match asked.await {
        Ok(AuthenticateResponse { token }) => HeaderValue::try_from(token)
            .map(Some)
            .map_err(|error| Trouble::Never(cause(error.to_string()))),
        Err(Trouble::Never(why)) if why.to_string().contains("is not enabled") => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

/// An answer about the cluster. Some versions deny it to all users but `root`; locks do not depend
/// on it.
fn permitted<T>(answer: Result<T, Trouble>) -> Result<Permitted<T>, Trouble> {
    match answer {
        Err(Trouble::Never(why)) => Ok(Err(why)),
        answer => answer.map(Ok),
    }
}

fn trouble(error: &io::Error) -> Trouble {
    if let Some(distrust) = Distrust::find(error) {
        return Trouble::Never(Arc::new(distrust));
    }
    Trouble::said(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_says_whether_a_former_leader_ends_leases() {
        for (text, alone) in [
            ("3.4.23", true),
            ("3.4.31", false),
            ("3.5.12", true),
            ("3.5.13", false),
            ("3.6.0", false),
            ("", true),
        ] {
            assert_eq!(
                !Version::read(text).ends_leases_as_leader(),
                alone,
                "{text}"
            );
        }
    }

    #[test]
    fn a_version_says_whether_one_member_is_enough() {
        for (text, version, enough) in [
            ("3.4.23", [3, 4, 23], false),
            ("3.4.31", [3, 4, 31], true),
            ("3.5.22", [3, 5, 22], false),
            ("3.5.23-rc.1", [3, 5, 23], true),
            ("3.6.4", [3, 6, 4], false),
            ("3.6.5", [3, 6, 5], true),
            ("3.7.0", [3, 7, 0], true),
            ("4.0.0", [4, 0, 0], true),
            ("", [0, 0, 0], false),
        ] {
            let read = Version::read(text);
            assert_eq!((read, read.confirms_leases()), (Version(version), enough));
        }
    }
}
