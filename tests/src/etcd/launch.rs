//! Starts members of etcd on free ports and waits until they have a leader.

use std::{
    ffi::OsStr,
    io::{self, Write as _},
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use super::{EtcdCluster, EtcdServer};
use crate::{
    Authority,
    namespace::{Namespace, OF_A_PROCESS},
    net::free_port,
    process::Process,
};

/// How often other ports are tried when somebody took those that were free.
const ATTEMPTS: u32 = 5;

/// What `ETCD_SERVER` names; else where `make setup` puts it; else that of the machine.
static BINARY: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let named = std::env::var_os("ETCD_SERVER").map(PathBuf::from);
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/etcd/usr/bin/etcd");
    let all = named.into_iter().chain([fetched, PathBuf::from("etcd")]);
    all.into_iter().find(|binary| {
        let version = Command::new(binary)
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        version.is_ok_and(|status| status.success())
    })
});

/// Whether members can be started here; if not, a notice says that `test` is skipped.
pub(super) fn is_installed(test: &str) -> bool {
    if BINARY.is_none() {
        let notice =
            format!("NOTICE: {test} not run on etcd: no binary; `make setup` fetches it\n");
        // Not by a macro: the output of a test that passes is not shown.
        let _ = io::stderr().write_all(notice.as_bytes());
    }
    BINARY.is_some()
}

/// A network for a member that stands apart; if there can be none, a notice says that `test` is skipped.
pub(super) fn network(test: &str) -> Option<Namespace> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed) % OF_A_PROCESS;
    match Namespace::make(number) {
        Ok(network) => Some(network),
        Err(error) => {
            let notice = format!("NOTICE: {test} not run: no network namespaces: {error}\n");
            let _ = io::stderr().write_all(notice.as_bytes());
            None
        }
    }
}

/// Where a member runs.
struct Endpoint<'a> {
    /// The words that run a program there, before its own.
    enter: Vec<&'a str>,
    /// Where clients reach it, and the other members.
    host: Ipv4Addr,
    peer: Ipv4Addr,
}

/// A cluster that serves, with encryption if there is an authority, and its first member in a network if there is one.
pub(super) async fn cluster(
    members: usize,
    authority: Option<&Authority>,
    network: Option<Namespace>,
    limits: &[(&str, &str)],
) -> EtcdCluster {
    let endpoint = |name| match &network {
        Some(network) if name == 0 => Endpoint {
            enter: network.enter().into(),
            host: network.open(),
            peer: network.guest(),
        },
        _ => Endpoint {
            enter: Vec::new(),
            host: Ipv4Addr::LOCALHOST,
            peer: network
                .as_ref()
                .map_or(Ipv4Addr::LOCALHOST, Namespace::host),
        },
    };
    for _ in 0..ATTEMPTS {
        let peer = |name| format!("m{name}=http://{}:{}", endpoint(name).peer, free_port());
        let peers: Vec<_> = (0..members).map(peer).collect();
        let mut started = Vec::new();
        for name in 0..members {
            started.push(member(name, &endpoint(name), &peers, authority, limits).await);
        }
        if all_ready(&mut started).await {
            return EtcdCluster {
                members: started,
                network,
            };
        }
    }
    panic!("no cluster of etcd has started in {ATTEMPTS} attempts");
}

async fn member(
    name: usize,
    endpoint: &Endpoint<'_>,
    peers: &[String],
    authority: Option<&Authority>,
    limits: &[(&str, &str)],
) -> EtcdServer {
    let directory = tempfile::tempdir().expect("a directory for the member");
    let port = free_port();
    let health = authority.map_or(port, |_| free_port());
    let scheme = if authority.is_some() { "https" } else { "http" };
    let client = format!("{scheme}://{}:{port}", endpoint.host);
    let (_, peer) = peers[name].split_once('=').expect("a name and an address");
    let path = |file: &str| directory.path().join(file).display().to_string();
    let mut options = vec![
        ("name", format!("m{name}")),
        ("data-dir", path("data")),
        ("listen-client-urls", client.clone()),
        ("advertise-client-urls", client),
        ("listen-peer-urls", peer.to_owned()),
        ("initial-advertise-peer-urls", peer.to_owned()),
        ("initial-cluster", peers.join(",")),
        ("snapshot-count", "100".to_owned()),
        ("logger", "zap".to_owned()),
        ("log-outputs", "/dev/null".to_owned()),
        // The least: passwords are checked quickly on a busy machine too.
        ("bcrypt-cost", "4".to_owned()),
    ];
    options.extend(
        limits
            .iter()
            .map(|(name, limit)| (*name, (*limit).to_owned())),
    );
    if peers.len() == 1 {
        // Nobody else is to be heard before it leads.
        options.push(("heartbeat-interval", "10".to_owned()));
        options.push(("election-timeout", "100".to_owned()));
    }
    if let Some(authority) = authority {
        authority
            .issue_for_loopback()
            .write(directory.path(), "server");
        std::fs::write(path("ca.pem"), authority.pem()).expect("a file");
        options.extend([
            ("cert-file", path("server.pem")),
            ("key-file", path("server.key")),
            ("trusted-ca-file", path("ca.pem")),
            ("listen-metrics-urls", format!("http://127.0.0.1:{health}")),
        ]);
    }
    let binary = BINARY.as_ref().expect("there is a member");
    let words = endpoint.enter.iter().map(|word| (*word).to_owned());
    let mut command: Vec<_> = words.chain([binary.display().to_string()]).collect();
    command.push("--unsafe-no-fsync".to_owned());
    if authority.is_some() {
        command.push("--client-cert-auth".to_owned());
    }
    command.extend(
        options
            .into_iter()
            .map(|(name, value)| format!("--{name}={value}")),
    );
    EtcdServer {
        process: process(&command).await,
        command,
        host: endpoint.host,
        port,
        health,
        directory,
    }
}

/// `false` if a member has ended instead.
async fn all_ready(members: &mut [EtcdServer]) -> bool {
    for member in members {
        while !member.is_healthy().await {
            if member.process.has_ended() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    true
}

/// A member that begins to start.
pub(super) async fn process(command: &[String]) -> Process {
    // It warns of connections that clients cut, which is what tests do.
    let silently = ["-c", r#"exec "$0" "$@" 2>/dev/null"#].map(OsStr::new);
    let args = silently.into_iter().chain(command.iter().map(OsStr::new));
    let (process, ..) = Process::spawn("sh".as_ref(), args)
        .await
        .expect("etcd starts");
    process
}
