//! Starts a Redis server on a free port and waits until it accepts connections.

use std::{
    env,
    ffi::OsString,
    io,
    net::Ipv4Addr,
    process::Command,
    sync::{Arc, OnceLock},
};

use tempfile::TempDir;

use super::{
    Authority, Identity, RedisServer, SOCKET,
    clock::{Clock, Clocks},
};
use crate::{net::free_port, process::Process, startup};

/// How often another port is tried when somebody took the one that was free.
pub(super) const ATTEMPTS: u32 = 10;

/// The file of the configuration, where there is one.
const CONFIG: &str = "redis.conf";

/// What a server, or a sentinel, logs when it listens.
const READY: &[&str] = &["ready to accept", "sentinel id is"];

/// What is to be started: see [`RedisServer::builder`].
#[derive(Debug, Default)]
pub struct RedisServerBuilder {
    clock: Option<Clock>,
    args: Vec<String>,
    password: Option<String>,
    addresses: Vec<Ipv4Addr>,
    tls: Option<Encryption>,
    files: Vec<(&'static str, String)>,
}

#[derive(Debug)]
struct Encryption {
    identity: Identity,
    /// Where, unless any port will do.
    port: Option<u16>,
    /// Whose clients may connect, in the format PEM, where they have to say who they are.
    clients: Option<String>,
}

impl RedisServerBuilder {
    /// Sets an option of the server's configuration, such as `("--maxmemory", "5mb")`.
    pub fn arg(mut self, name: &str, value: &str) -> Self {
        self.args.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Asks every client for this password, which must need no escaping in a URL.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.arg("--requirepass", password)
    }

    /// Listens on this address of the machine too, at the same port.
    pub fn listen(mut self, address: Ipv4Addr) -> Self {
        self.addresses.push(address);
        self
    }

    /// Makes every acknowledged write survive [`RedisServer::restart`].
    pub fn append_only(self) -> Self {
        self.arg("--appendonly", "yes")
            .arg("--appendfsync", "always")
    }

    /// Reads this configuration, which the server may write anew.
    pub fn config(self, text: String) -> Self {
        self.file(CONFIG, text)
    }

    /// Is a sentinel instead, with this configuration.
    pub fn sentinel(mut self, config: String) -> Self {
        self.args.push("--sentinel".to_owned());
        self.config(config)
    }

    /// Has one of these clocks.
    pub(crate) fn clock(mut self, clocks: &Arc<Clocks>, number: usize) -> Self {
        self.clock = Some(Clock::new(clocks, number));
        self
    }

    /// Finds this file in its directory.
    pub(super) fn file(mut self, name: &'static str, text: String) -> Self {
        self.files.push((name, text));
        self
    }

    /// Encrypts on a second port, [`RedisServer::tls_addr`].
    pub fn tls(mut self, identity: Identity) -> Self {
        self.tls = Some(Encryption {
            identity,
            port: None,
            clients: None,
        });
        self
    }

    /// The same, for clients that have a certificate of `clients`.
    pub fn tls_for(mut self, identity: Identity, clients: &Authority) -> Self {
        self.tls = Some(Encryption {
            identity,
            port: None,
            clients: Some(clients.pem()),
        });
        self
    }

    /// Encrypts at this port, also what it says to its replicas, which `authority` knows.
    pub(super) fn tls_at(mut self, port: u16, authority: &Authority) -> Self {
        self.tls = Some(Encryption {
            identity: authority.issue_for_loopback(),
            port: Some(port),
            clients: Some(authority.pem()),
        });
        self.arg("--tls-replication", "yes")
    }

    /// Starts the server and waits until it accepts connections.
    pub async fn start(self) -> RedisServer {
        for _ in 0..ATTEMPTS {
            if let Some(server) = self.start_at(free_port()).await {
                return server;
            }
        }
        panic!("no free port for a server in {ATTEMPTS} attempts");
    }

    /// Starts the server at this port, unless somebody has taken it.
    pub(super) async fn start_at(&self, port: u16) -> Option<RedisServer> {
        let directory = tempfile::tempdir().expect("a directory for the server");
        for (name, text) in &self.files {
            std::fs::write(directory.path().join(name), text).expect("a file for the server");
        }
        let tls_port = self
            .tls
            .as_ref()
            .map(|it| it.port.unwrap_or_else(free_port));
        let mut args = self.command_line(port, &directory);
        args.extend(self.tls_args(tls_port, &directory));
        let environment = self.clock.as_ref().map(Clock::environment);
        let environment = environment.unwrap_or_default();
        match start(&environment, &args).await {
            Ok(process) => Some(RedisServer {
                process,
                environment,
                args,
                port,
                tls_port,
                password: self.password.clone(),
                directory,
                clock: self.clock.clone(),
            }),
            Err(log) if log.contains("Address already in use") => None,
            Err(log) => panic!("{} did not start:\n{log}", binary().display()),
        }
    }

    fn command_line(&self, port: u16, directory: &TempDir) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        if self.files.iter().any(|(name, _)| *name == CONFIG) {
            args.push(directory.path().join(CONFIG).into());
        }
        args.push("--bind".into());
        for address in [Ipv4Addr::LOCALHOST].iter().chain(&self.addresses) {
            args.push(address.to_string().into());
        }
        if !self.addresses.is_empty() {
            // Else it would serve loopback alone, as it asks for no password.
            args.extend(["--protected-mode", "no"].map(OsString::from));
        }
        args.extend(["--save", "", "--port"].map(OsString::from));
        args.push(port.to_string().into());
        args.extend(["--dir".into(), directory.path().into()]);
        args.extend(["--unixsocket".into(), directory.path().join(SOCKET).into()]);
        if major_version() >= 7 {
            args.extend(["--enable-debug-command".into(), "yes".into()]);
        }
        args.extend(self.args.iter().map(OsString::from));
        args
    }
}

impl RedisServerBuilder {
    fn tls_args(&self, port: Option<u16>, directory: &TempDir) -> Vec<OsString> {
        let (Some(tls), Some(port)) = (&self.tls, port) else {
            return Vec::new();
        };
        let directory = directory.path();
        tls.identity.write(directory, "server");
        let mut args: Vec<OsString> = vec!["--tls-port".into(), port.to_string().into()];
        for (option, file) in [
            ("--tls-cert-file", "server.pem"),
            ("--tls-key-file", "server.key"),
        ] {
            args.extend([option.into(), directory.join(file).into()]);
        }
        let clients = directory.join("clients.pem");
        match &tls.clients {
            Some(authority) => {
                std::fs::write(&clients, authority).expect("a file");
                args.extend(["--tls-ca-cert-file".into(), clients.into()]);
            }
            None => args.extend(["--tls-auth-clients", "no"].map(OsString::from)),
        }
        args
    }
}

/// Starts a server and waits until it accepts connections; what it logged if it ended instead.
pub(super) async fn start(environment: &[OsString], args: &[OsString]) -> Result<Process, String> {
    let mut words = environment.to_vec();
    if !words.is_empty() {
        words.insert(0, "env".into());
    }
    words.push(binary());
    let args = words[1..].iter().chain(args);
    let (process, _, stdout) = Process::spawn(&words[0], args)
        .await
        .unwrap_or_else(|error| panic!("{}: {error}", binary().display()));

    startup::ready(stdout, READY).await?;
    Ok(process)
}

/// The server's binary.
fn binary() -> OsString {
    env::var_os("REDIS_SERVER").unwrap_or_else(|| "redis-server".into())
}

/// The first number of the server's version.
pub(super) fn major_version() -> u32 {
    static VERSION: OnceLock<u32> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let binary = binary();
        let output = match Command::new(&binary).arg("--version").output() {
            Ok(output) => output,
            Err(error) if error.kind() == io::ErrorKind::NotFound => panic!(
                "{} is not installed; install Debian's package `redis-server`, or name a binary in REDIS_SERVER",
                binary.display()
            ),
            Err(error) => panic!("{} --version: {error}", binary.display()),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        text.split_once("v=")
            .and_then(|(_, version)| version.split('.').next()?.parse().ok())
            .unwrap_or_else(|| panic!("no version in {text:?}"))
    })
}
