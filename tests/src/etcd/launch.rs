//! Starts members of etcd on free ports and waits until they have a leader.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use super::{EtcdCluster, EtcdServer};
use crate::{net::free_port, process::Process};

/// How often other ports are tried when somebody took those that were free.
const ATTEMPTS: u32 = 5;

/// Where `make setup` puts it; else that of the machine.
static BINARY: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/etcd/usr/bin/etcd");
    [fetched, PathBuf::from("etcd")].into_iter().find(|binary| {
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

/// A cluster that serves.
pub(super) async fn cluster(members: usize) -> EtcdCluster {
    for _ in 0..ATTEMPTS {
        let ports: Vec<_> = (0..members).map(|_| (free_port(), free_port())).collect();
        let peers: Vec<_> = ports
            .iter()
            .enumerate()
            .map(|(name, (_, peer))| format!("m{name}=http://127.0.0.1:{peer}"))
            .collect();
        let mut cluster = EtcdCluster {
            members: Vec::new(),
        };
        for (name, (client, peer)) in ports.iter().enumerate() {
            let directory = tempfile::tempdir().expect("a directory for the member");
            let args = args(name, *client, *peer, &peers.join(","), directory.path());
            cluster.members.push(EtcdServer {
                process: process(&args).await,
                args,
                port: *client,
                _directory: directory,
            });
        }
        if all_ready(&mut cluster).await {
            return cluster;
        }
    }
    panic!("no cluster of etcd has started in {ATTEMPTS} attempts");
}

/// `false` if a member has ended instead.
async fn all_ready(cluster: &mut EtcdCluster) -> bool {
    for member in &mut cluster.members {
        while !member.is_healthy().await {
            if member.process.has_ended() {
                return false;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    true
}

fn args(name: usize, client: u16, peer: u16, peers: &str, directory: &Path) -> Vec<String> {
    let client = format!("http://127.0.0.1:{client}");
    let peer = format!("http://127.0.0.1:{peer}");
    let options = [
        ("--name", format!("m{name}")),
        ("--data-dir", directory.join("data").display().to_string()),
        ("--listen-client-urls", client.clone()),
        ("--advertise-client-urls", client),
        ("--listen-peer-urls", peer.clone()),
        ("--initial-advertise-peer-urls", peer),
        ("--initial-cluster", peers.to_owned()),
        ("--logger", "zap".to_owned()),
        ("--log-outputs", "/dev/null".to_owned()),
    ];
    let mut args = vec!["--unsafe-no-fsync".to_owned()];
    args.extend(options.map(|(name, value)| format!("{name}={value}")));
    args
}

/// A member that begins to start.
pub(super) async fn process(args: &[String]) -> Process {
    let binary = BINARY.as_ref().expect("there is a member");
    let (process, ..) = Process::spawn(binary.as_os_str(), args)
        .await
        .expect("etcd starts");
    process
}
