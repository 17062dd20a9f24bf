//! Starts servers on free ports, each from a copy of one data directory.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use tempfile::TempDir;
use tokio::{io::AsyncWriteExt as _, process::Command, sync::OnceCell};

use super::{
    DATABASE, MysqlServer,
    programs::{self, Program},
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

/// What a server says when it accepts connections.
const READY: &[&str] = &["ready for connections"];

/// Settings of every server, small ones.
const OPTIONS: [&str; 6] = [
    "--bind-address=127.0.0.1",
    "--innodb-buffer-pool-size=32M",
    "--innodb-flush-method=nosync",
    "--key-buffer-size=1M",
    "--max-connections=400",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
];

/// What only MariaDB knows.
const OF_MARIADB: [&str; 2] = [
    "--innodb-log-file-size=8M",
    "--aria-pagecache-buffer-size=1M",
];

/// What only MySQL knows. It keeps a binary log by default.
const OF_MYSQL: [&str; 4] = [
    "--innodb-redo-log-capacity=16M",
    "--mysqlx=OFF",
    "--secure-file-priv=NULL",
    "--performance-schema=OFF",
];

/// The scripts that make the tables of a new server.
const SCRIPTS: [&str; 3] = [
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
];

/// The server to be started: see [`MysqlServer::builder`].
#[derive(Clone, Debug, Default)]
pub struct MysqlServerBuilder {
    options: Vec<String>,
    identity: Option<(String, String)>,
    plain: bool,
    /// The size of a disk of its own, in MB.
    disk: Option<u32>,
    clock: Option<Clock>,
}

impl MysqlServerBuilder {
    /// Adds an option of the command line, such as `--read-only`.
    pub fn option(mut self, option: &str) -> Self {
        self.options.push(option.to_owned());
        self
    }

    /// Encrypts for those who ask for it, on the same port.
    pub fn tls(mut self, identity: Identity) -> Self {
        self.identity = Some((identity.certificate, identity.key));
        self
    }

    /// Encrypts for nobody. MySQL has a certificate of its own by default.
    pub fn plain(mut self) -> Self {
        self.plain = true;
        self
    }

    /// Has a clock that can be moved, where that is possible; a notice says if it is not.
    pub fn moved_clock(mut self, test: &str) -> Self {
        let clocks = Clocks::new(1, test).map(Arc::new);
        self.clock = clocks.map(|clocks| Clock::new(&clocks, 0));
        self
    }

    /// Gives it a disk of its own of so many MB, which a test may [fill](MysqlServer::fill_disk).
    pub fn disk(mut self, size: u32) -> Self {
        self.disk = Some(size);
        self
    }

    /// Starts the server; `None`, with a notice, where it cannot be had.
    pub async fn start(self, test: &str) -> Option<MysqlServer> {
        let program = programs::find(test)?;
        let template = template(program).await;
        for _ in 0..ATTEMPTS {
            let directory = tempfile::tempdir().expect("a directory for the server");
            let disk = match self.disk {
                Some(size) => Some(Disk::mount(directory.path(), size, test)?),
                None => None,
            };
            let data = directory.path().join("data");
            run(["cp", "-a"]
                .map(OsString::from)
                .into_iter()
                .chain([template.clone().into(), data.clone().into()]))
            .await;
            if let Some(server) = self.start_at(program, directory, disk, &data).await {
                return Some(server);
            }
        }
        panic!("no free port for a server in {ATTEMPTS} attempts");
    }

    /// Starts a server with the data in a directory, unless somebody takes its port.
    async fn start_at(
        &self,
        program: &Program,
        directory: TempDir,
        disk: Option<Disk>,
        data: &Path,
    ) -> Option<MysqlServer> {
        let port = free_port();
        let socket = directory.path().join("socket");
        // A server that starts deletes the temporary tables of others from a folder that they share. Not on its disk, which may
        // be full.
        let scratch = tempfile::tempdir().expect("a directory for the server");
        let mut command = program.words(data, scratch.path());
        if let Some(clock) = &self.clock {
            let words = ["env", "MOVED_CLOCK_AT_ONCE=yes"].map(OsString::from);
            command.splice(0..0, words.into_iter().chain(clock.environment()));
        }
        command.extend(OPTIONS.map(OsString::from));
        if program.is_mysql {
            command.extend(OF_MYSQL.map(OsString::from));
        } else {
            command.extend(OF_MARIADB.map(OsString::from));
        }
        command.push(format!("--port={port}").into());
        command.push(format!("--server-id={port}").into());
        command.push(format!("--socket={}", socket.display()).into());
        command.push(format!("--pid-file={}", directory.path().join("pid").display()).into());
        if let Some((certificate, key)) = &self.identity {
            for (option, text) in [("ssl-cert", certificate), ("ssl-key", key)] {
                let file = directory.path().join(option);
                fs::write(&file, text).expect("a file for the server");
                command.push(format!("--{option}={}", file.display()).into());
            }
        }
        if self.plain {
            let option = if program.is_mysql {
                "--tls-version="
            } else {
                "--skip-ssl"
            };
            command.push(option.into());
        }
        command.extend(self.options.iter().map(OsString::from));
        match process(&command).await {
            Ok(process) => Some(MysqlServer {
                process,
                command,
                port,
                clock: self.clock.clone(),
                disk,
                directory,
                _scratch: scratch,
            }),
            Err(log) if log.contains("Address already in use") => None,
            Err(log) => panic!("the server did not start:\n{log}"),
        }
    }
}

/// Starts a server, and waits until it accepts connections; what it logged if it ended instead.
pub(super) async fn process(command: &[OsString]) -> Result<Process, String> {
    let logged = ["-c", r#"exec "$@" 2>&1"#, "sh"].map(OsString::from);
    let args = logged.iter().chain(command);
    let (process, _, log) = Process::spawn("sh".as_ref(), args)
        .await
        .expect("a shell starts");
    startup::ready(log, READY).await?;
    Ok(process)
}

/// The data directory that all others are copies of.
async fn template(program: &Program) -> PathBuf {
    static TEMPLATE: OnceCell<PathBuf> = OnceCell::const_new();
    let make = async || {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/mysql-data");
        let name = if program.is_mysql {
            "template-mysql"
        } else {
            "template"
        };
        let template = kept.join(name);
        if !template.exists() {
            let fresh = kept.join(unique("fresh"));
            fs::create_dir_all(&fresh).expect("a folder for the data");
            if program.is_mysql {
                initialize(program, &fresh).await;
            } else {
                bootstrap(program, &fresh).await;
            }
            // Another process may have been faster.
            if fs::rename(&fresh, &template).is_err() {
                fs::remove_dir_all(&fresh).expect("a folder of ours");
            }
        }
        template
    };
    TEMPLATE.get_or_init(make).await.clone()
}

/// Makes the tables of a new server, whose user `root` needs no password.
async fn bootstrap(program: &Program, data: &Path) {
    let mut script =
        "CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n"
            .to_owned();
    for name in SCRIPTS {
        script += &fs::read_to_string(program.share().join(name)).expect("a script of the server");
    }
    script.extend(["\nCREATE DATABASE ", DATABASE, ";\n"]);
    let mut words = program.words(data, data);
    words.extend(["--bootstrap", "--innodb-log-file-size=8M"].map(OsString::from));
    words.extend(
        [
            "--innodb-buffer-pool-size=16M",
            "--innodb-flush-method=nosync",
        ]
        .map(OsString::from),
    );
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a server");
    let mut input = child.stdin.take().expect("stdin is piped");
    let write = async move {
        input
            .write_all(script.as_bytes())
            .await
            .expect("the server reads");
    };
    let ((), output) = tokio::join!(write, child.wait_with_output());
    let output = output.expect("the server ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
}

/// The same for MySQL, which has its scripts built in.
async fn initialize(program: &Program, data: &Path) {
    let script = data.with_extension("sql");
    fs::write(&script, format!("CREATE DATABASE {DATABASE};\n")).expect("a file for the server");
    let mut words = program.words(data, data);
    words.extend(["--initialize-insecure", "--innodb-flush-method=nosync"].map(OsString::from));
    words.extend(OF_MYSQL.map(OsString::from));
    words.push(format!("--init-file={}", script.display()).into());
    run(words.into_iter()).await;
    fs::remove_file(script).expect("a file of ours");
}

async fn run(words: impl Iterator<Item = OsString>) {
    let words: Vec<_> = words.collect();
    let status = Command::new(&words[0]).args(&words[1..]).status().await;
    assert!(status.is_ok_and(|it| it.success()), "{words:?}");
}
