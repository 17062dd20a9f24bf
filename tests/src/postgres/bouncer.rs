//! PgBouncer in front of a server: a connection of the server is a client's for one transaction at a time.

use std::{
    ffi::OsString,
    fs,
    net::{Ipv4Addr, SocketAddr},
};

use tempfile::TempDir;

use super::{
    PostgresServer,
    launch::{directory, process},
    programs::{self, give},
};
use crate::{net::free_port, process::Process};

/// How often another port is tried when somebody took the one that was free.
const ATTEMPTS: u32 = 10;

/// A pooler on loopback; dropping it ends it.
#[derive(Debug)]
pub struct PgBouncer {
    // The process is dropped, and so ended, before its directory.
    pub(super) process: Process,
    command: Vec<OsString>,
    port: u16,
    pub(super) directory: TempDir,
}

impl PgBouncer {
    /// One with few connections to the server; `None`, with a notice, where it cannot be had.
    pub async fn start(test: &str, server: &PostgresServer) -> Option<Self> {
        Self::start_with(test, server, &[("pool_mode", "transaction")]).await
    }

    /// The same with these settings.
    pub async fn start_with(
        test: &str,
        server: &PostgresServer,
        settings: &[(&str, &str)],
    ) -> Option<Self> {
        let program = programs::pgbouncer(test)?;
        for _ in 0..ATTEMPTS {
            let (directory, port) = (directory(), free_port());
            let mut command = program.clone();
            command.push(write_files(&directory, port, server, settings));
            match process(&command, &["process up"]).await {
                Ok(process) => {
                    return Some(Self {
                        process,
                        command,
                        port,
                        directory,
                    });
                }
                Err(log) if log.contains("Address already in use") => {}
                Err(log) => panic!("PgBouncer did not start:\n{log}"),
            }
        }
        panic!("no free port for PgBouncer in {ATTEMPTS} attempts");
    }

    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The URL of the server behind it.
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.addr())
    }

    /// Stops it with its connections open, as if its machine hung.
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Kills it, and starts it again.
    pub async fn restart(&mut self) {
        self.process.kill().await;
        let started = process(&self.command, &["process up"]).await;
        self.process = started.unwrap_or_else(|log| panic!("PgBouncer did not start:\n{log}"));
    }
}

/// Writes its configuration; the file's path.
fn write_files(
    directory: &TempDir,
    port: u16,
    server: &PostgresServer,
    settings: &[(&str, &str)],
) -> OsString {
    let path = |name| directory.path().join(name);
    let mut text = format!(
        "[databases]\n* = host=127.0.0.1 port={}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = trust\nauth_file = {}\nmax_client_conn = 500\ndefault_pool_size = 4\n\
         server_login_retry = 0.2\n",
        server.addr().port(),
        path("users").display()
    );
    text.extend(
        settings
            .iter()
            .map(|(name, value)| format!("{name} = {value}\n")),
    );
    for (name, text) in [("users", r#""postgres" """#), ("pgbouncer.ini", &text)] {
        fs::write(path(name), text).expect("a file");
        give(&path(name));
    }
    path("pgbouncer.ini").into()
}
