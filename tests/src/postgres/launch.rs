//! Starts servers on free ports, from a copy of one data directory that `initdb` has made.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use tempfile::TempDir;
use tokio::sync::OnceCell;

use super::{
    PostgresServer,
    processes::Processes,
    programs::{self, Programs, give},
};
use crate::{
    Identity,
    disk::Disk,
    net::free_port,
    process::Process,
    server::{Clock, Clocks},
    startup, unique,
};

/// How often another port is tried when somebody took the one that was free.
const ATTEMPTS: u32 = 10;

/// What a server says when it accepts connections, or only such as read.
const READY: &[&str] = &["database system is ready to accept"];

/// Settings of every server. Nothing is lost when one is killed: the system writes what it was given.
const OPTIONS: [(&str, &str); 13] = [
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("listen_addresses", "127.0.0.1"),
    ("max_connections", "300"),
    ("shared_buffers", "32MB"),
    // A server that is killed leaves files of the other kinds behind.
    ("dynamic_shared_memory_type", "mmap"),
    ("jit", "off"),
    ("lc_messages", "C"),
    ("log_min_messages", "log"),
    ("log_checkpoints", "off"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    // Standbys that are slow to connect find what they lack.
    ("wal_keep_size", "64MB"),
];

/// Who may connect from where, behind what a test adds: everybody from here.
const ACCESS: &str = "local all all trust\nlocal replication all trust\n\
     host all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n";

/// The server to be started: see [`PostgresServer::builder`].
#[derive(Clone, Debug, Default)]
pub struct PostgresServerBuilder {
    options: Vec<(String, String)>,
    access: String,
    identity: Option<(String, String)>,
    /// The size of a disk of its own, in MB.
    disk: Option<u32>,
    pub(super) clock: Option<Clock>,
}

impl PostgresServerBuilder {
    /// Sets an option of the server's configuration, such as `("max_connections", "20")`.
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.options.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a line to `pg_hba.conf`, ahead of those that trust everybody.
    pub fn access(mut self, line: &str) -> Self {
        self.access = format!("{}{line}\n", self.access);
        self
    }

    /// Encrypts for those who ask for it, on the same port.
    pub fn tls(mut self, identity: Identity) -> Self {
        self.identity = Some((identity.certificate, identity.key));
        self
    }

    /// Has a clock that can be moved, where that is possible; a notice says if it is not.
    pub(crate) fn moved_clock(mut self, test: &str) -> Self {
        let clocks = Clocks::new(1, test).map(Arc::new);
        self.clock = clocks.map(|clocks| Clock::new(&clocks, 0));
        self
    }

    /// Gives it a disk of its own of so many MB, which a test may [fill](PostgresServer::fill_disk).
    pub fn disk(mut self, size: u32) -> Self {
        self.disk = Some(size);
        // Old segments of the log would leave room for a while.
        self.option("max_wal_size", "16MB")
            .option("min_wal_size", "2MB")
            .option("wal_keep_size", "16MB")
    }

    /// Starts the server; `None`, with a notice, where it cannot be had.
    pub async fn start(self, test: &str) -> Option<PostgresServer> {
        let programs = programs::find(test)?;
        let template = template(programs).await;
        for _ in 0..ATTEMPTS {
            let place = self.place(test)?;
            let data = place.data();
            let copy = ["cp", "-a"].map(OsString::from).into_iter();
            let copy = copy.chain([template.clone().into(), data.clone().into()]);
            programs::run(copy.collect()).await;
            self.write_files(&data);
            if let Some(server) = self.start_at(programs, place, free_port()).await {
                return Some(server);
            }
        }
        panic!("no free port for a server in {ATTEMPTS} attempts");
    }

    /// Copies a running server, and starts the copy as its standby.
    pub(super) async fn start_standby(&self, of: &PostgresServer, port: u16) -> PostgresServer {
        let place = self.place("a standby").expect("as that of the primary");
        base_backup(of, &place.data(), "--write-recovery-conf").await;
        let started = self.start_at(of.programs, place, port).await;
        started.unwrap_or_else(|| panic!("the port {port} is taken"))
    }

    /// An empty directory, with a disk of its own if it is to have one.
    fn place(&self, test: &str) -> Option<Place> {
        let directory = directory();
        let disk = match self.disk {
            Some(size) => Some(Disk::mount(directory.path(), size, test)?),
            None => None,
        };
        give(directory.path());
        Some(Place { disk, directory })
    }

    fn write_files(&self, data: &Path) {
        let mut files = vec![("pg_hba.conf", format!("{}{ACCESS}", self.access))];
        if let Some((certificate, key)) = &self.identity {
            files.push(("server.crt", certificate.clone()));
            files.push(("server.key", key.clone()));
        }
        for (name, text) in files {
            let file = data.join(name);
            fs::write(&file, text).expect("a file for the server");
            give(&file);
        }
    }

    /// Starts a server with the data in a directory at this port, unless somebody has taken it.
    async fn start_at(
        &self,
        programs: &'static Programs,
        place: Place,
        port: u16,
    ) -> Option<PostgresServer> {
        let mut command = programs.words("postgres");
        if let Some(clock) = &self.clock {
            let words = ["env", "MOVED_CLOCK_AT_ONCE=yes"].map(OsString::from);
            let words = words.into_iter().chain(clock.environment());
            let program = command.len() - 1;
            command.splice(program..program, words);
        }
        command.push("-D".into());
        command.push(place.data().into());
        let sockets = place.directory.path().display().to_string();
        let own = [
            ("port", port.to_string()),
            ("unix_socket_directories", sockets),
        ];
        let fixed = OPTIONS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let tls = self.identity.iter();
        let tls = tls.map(|_| ("ssl".to_owned(), "on".to_owned()));
        let options = fixed.into_iter().chain(own).chain(tls);
        for (name, value) in options.chain(self.options.iter().cloned()) {
            command.push("-c".into());
            command.push(format!("{name}={value}").into());
        }
        match processes(&command, place.data()).await {
            Ok(processes) => Some(PostgresServer {
                processes,
                command,
                builder: self.clone(),
                programs,
                port,
                disk: place.disk,
                directory: place.directory,
            }),
            Err(log) if log.contains("Address already in use") => None,
            Err(log) => panic!("PostgreSQL did not start:\n{log}"),
        }
    }
}

/// Where a server keeps its data.
struct Place {
    disk: Option<Disk>,
    directory: TempDir,
}

impl Place {
    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }
}

/// Copies the data of a running server.
pub(super) async fn base_backup(of: &PostgresServer, data: &Path, more: &str) {
    let args = format!(
        "{more} --wal-method=stream --checkpoint=fast --no-sync \
         --host=127.0.0.1 --port={} --username=postgres --pgdata={}",
        of.addr().port(),
        data.display()
    );
    let args = args.split_whitespace();
    of.programs.run("pg_basebackup", args).await;
}

/// Starts a server and waits until it accepts connections; what it logged if it ended instead.
pub(super) async fn processes(command: &[OsString], data: PathBuf) -> Result<Processes, String> {
    let postmaster = process(command, READY).await?;
    Ok(Processes::new(postmaster, data))
}

/// Starts a program that logs to its standard error, and waits until it says that it is ready.
pub(super) async fn process(
    command: &[OsString],
    ready: &'static [&'static str],
) -> Result<Process, String> {
    let logged = ["-c", r#"exec "$@" 2>&1"#, "sh"].map(OsString::from);
    let args = logged.iter().chain(command);
    let (process, _, log) = Process::spawn("sh".as_ref(), args)
        .await
        .expect("a shell starts");
    startup::ready(log, ready).await?;
    Ok(process)
}

/// An empty directory of the servers' user.
pub(super) fn directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory for the server");
    give(directory.path());
    directory
}

/// The data directory that all others are copies of. It is kept, since `initdb` takes seconds on a busy machine.
async fn template(programs: &Programs) -> PathBuf {
    static TEMPLATE: OnceCell<PathBuf> = OnceCell::const_new();
    let make = async || {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/postgres-data");
        let template = kept.join(programs.name());
        if !template.exists() {
            fs::create_dir_all(&kept).expect("a folder for the data");
            let directory = directory();
            let data = directory.path().join("data");
            let args = format!(
                "--username=postgres --auth=trust --encoding=UTF8 --locale=C --no-sync \
                 --no-instructions --wal-segsize=1 --pgdata={}",
                data.display()
            );
            programs.run("initdb", args.split_whitespace()).await;
            let fresh = kept.join(unique(programs.name()));
            let copy = ["cp", "-a"].map(OsString::from).into_iter();
            programs::run(copy.chain([data.into(), fresh.clone().into()]).collect()).await;
            // Another process may have been faster.
            if fs::rename(&fresh, &template).is_err() {
                fs::remove_dir_all(&fresh).expect("a folder of ours");
            }
        }
        template
    };
    TEMPLATE.get_or_init(make).await.clone()
}
