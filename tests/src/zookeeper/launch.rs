//! Starts a ZooKeeper server on a free port and waits until it has a leader.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
    time::Duration,
};

use tempfile::TempDir;

use super::{ZooKeeperServer, peer::ZooKeeperPeer};
use crate::{Authority, TIME_LIMIT, eventually, net::free_port, process::Process};

/// What the server consists of.
const JARS: &[&str] = &[
    "zookeeper",
    "zookeeper-jute",
    "slf4j-api",
    "slf4j-simple",
    "metrics-core",
    "snappy-java",
    "commons-io",
    // For encryption.
    "netty-buffer",
    "netty-codec",
    "netty-common",
    "netty-handler",
    "netty-resolver",
    "netty-transport",
    "netty-transport-native-epoll",
    "netty-transport-native-unix-common",
];

/// Sessions of 0.2 s to 60 s, and no wait for disks.
const CONFIGURATION: &str = "minSessionTimeout=200\nmaxSessionTimeout=60000\ninitLimit=100\nsyncLimit=60\n\
     maxClientCnxns=0\nadmin.enableServer=false\nclientPortAddress=127.0.0.1\n4lw.commands.whitelist=*\n";

/// What lines of a configuration begin with that are for the machine; to the server they are comments.
pub(super) const PROPERTY: &str = "#-D";

/// How often another port is tried when somebody took the one that was free.
const ATTEMPTS: u32 = 5;

/// The path of the server's jars, if there are a machine for them and all of them.
static CLASS_PATH: LazyLock<Option<OsString>> = LazyLock::new(|| {
    let java = Command::new("java")
        .arg("-version")
        .stderr(Stdio::null())
        .status();
    if !java.is_ok_and(|status| status.success()) {
        return None;
    }
    // What the environment names, where `make setup` puts them, and those of the machine.
    let named = std::env::var_os("ZOOKEEPER_JARS").map(PathBuf::from);
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/zookeeper/usr/share/java");
    let known = [fetched, PathBuf::from("/usr/share/java")];
    named.iter().chain(&known).find_map(|directory| {
        let jars = JARS.iter().map(|jar| directory.join(format!("{jar}.jar")));
        let jars: Vec<_> = jars.collect();
        jars.iter()
            .all(|jar| jar.exists())
            .then(|| std::env::join_paths(jars).ok())
            .flatten()
    })
});

/// Whether servers can be started here; if not, a notice says that `test` is skipped.
pub(super) fn is_installed(test: &str) -> bool {
    if CLASS_PATH.is_none() {
        let notice = format!(
            "NOTICE: {test} not run on ZooKeeper: no Java, or no jars; `make setup` fetches those\n"
        );
        // Not by a macro: the output of a test that passes is not shown.
        let _ = io::stderr().write_all(notice.as_bytes());
    }
    CLASS_PATH.is_some()
}

/// A server that stands alone, and has a second port that encrypts if there is an authority.
pub(super) async fn alone(authority: Option<&Authority>) -> ZooKeeperServer {
    for _ in 0..ATTEMPTS {
        let (port, secure_port) = (free_port(), free_port());
        let directory = directory(&format!("tickTime=100\nclientPort={port}\n"));
        if let Some(authority) = authority {
            encrypt(directory.path(), secure_port, authority);
        }
        let process = process(&directory).await;
        if ready_within(TIME_LIMIT, (Ipv4Addr::LOCALHOST, port).into()).await {
            return ZooKeeperServer {
                process,
                port,
                secure_port,
                directory,
            };
        }
    }
    panic!("no ZooKeeper server has started in {ATTEMPTS} attempts");
}

/// Lets a server encrypt on another port, and ask clients for certificates of the same authority.
fn encrypt(directory: &Path, port: u16, authority: &Authority) {
    let identity = authority.issue_for_loopback();
    // One file holds both.
    let pair = identity.key + &identity.certificate;
    let path = |name: &str| directory.join(name);
    fs::write(path("server.pem"), pair).expect("a file");
    fs::write(path("ca.pem"), authority.pem()).expect("a file");
    let [server, ca] = ["server.pem", "ca.pem"].map(|name| path(name).display().to_string());
    let more = format!(
        "secureClientPort={port}\nsecureClientPortAddress=127.0.0.1\n\
         serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
         ssl.clientAuth=need\nssl.clientHostnameVerification=false\n\
         ssl.keyStore.location={server}\nssl.keyStore.type=PEM\n\
         ssl.trustStore.location={ca}\nssl.trustStore.type=PEM\n"
    );
    let mut file = fs::OpenOptions::new();
    let file = file.append(true).open(path("zoo.cfg"));
    let written = file.and_then(|mut file| file.write_all(more.as_bytes()));
    written.expect("a file");
}

/// A directory with a configuration.
pub(super) fn directory(more: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory for the server");
    let data = directory.path().join("data");
    fs::create_dir(&data).expect("a directory for its data");
    let configuration = format!("{CONFIGURATION}dataDir={}\n{more}", data.display());
    fs::write(directory.path().join("zoo.cfg"), configuration).expect("a file");
    directory
}

/// A server with the configuration in a directory.
pub(super) async fn process(directory: &TempDir) -> Process {
    let class_path = CLASS_PATH.clone().expect("there is a server");
    let mut args: Vec<OsString> = [
        "-Xmx64m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
        "-Dzookeeper.forceSync=no",
        "-Dznode.container.checkIntervalMs=1000",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
        "-cp",
    ]
    .map(OsString::from)
    .into();
    args.push(class_path);
    let configuration = directory.path().join("zoo.cfg");
    let text = fs::read_to_string(&configuration).expect("a file");
    let properties = text.lines().filter_map(|it| it.strip_prefix(PROPERTY));
    args.extend(properties.map(|it| format!("-D{it}").into()));
    args.push("org.apache.zookeeper.server.quorum.QuorumPeerMain".into());
    args.push(configuration.into());
    let (process, ..) = Process::spawn("java".as_ref(), args)
        .await
        .expect("Java starts");
    process
}

/// Waits until sessions can be opened, which an election precedes where there are several servers.
pub(super) async fn ready(addr: SocketAddr) {
    eventually(3 * TIME_LIMIT, async || {
        ZooKeeperPeer::try_connect(addr).await.is_ok()
    })
    .await;
}

async fn ready_within(limit: Duration, addr: SocketAddr) -> bool {
    tokio::time::timeout(limit, ready(addr)).await.is_ok()
}
