//! The user by which servers of one fleet speak to each other: without its rights a server is cut off from them, and
//! not from clients.

use super::RedisServer;

/// The user's name and password.
pub(super) const PEERS: &str = "peers";

/// What every server of a fleet is configured with.
pub(super) fn config() -> String {
    format!(
        "user {PEERS} on >{PEERS} ~* &* +@all\n\
         masteruser {PEERS}\n\
         masterauth {PEERS}\n\
         repl-diskless-sync yes\n\
         repl-diskless-sync-delay 0\n"
    )
}

impl RedisServer {
    /// Refuses replicas and sentinels from now on, those that are connected too.
    pub(super) async fn shun_peers(&self) {
        self.cmd(&["ACL", "SETUSER", PEERS, "-@all"]).await;
        self.cmd(&["CLIENT", "KILL", "USER", PEERS]).await;
    }

    /// Serves replicas and sentinels again.
    pub(super) async fn admit_peers(&self) {
        self.cmd(&["ACL", "SETUSER", PEERS, "+@all"]).await;
    }

    /// Whether the server is a master now, and how many replicas have all that it has sent them.
    pub(super) async fn replicas_online(&self) -> Option<usize> {
        let info: String = self.read(&["INFO", "replication"]).await;
        let master = info.lines().any(|line| line == "role:master");
        master.then(|| info.matches("state=online").count())
    }

    /// Whether the server takes writes, as far as it knows.
    pub async fn is_master(&self) -> bool {
        self.replicas_online().await.is_some()
    }
}
