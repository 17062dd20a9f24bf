//! One server, and a pooler in front of it, that the tests of a program share, each test in a schema of its own.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use tokio::sync::OnceCell;

use super::{PgBouncer, PostgresPeer, PostgresServer};
use crate::{
    stores::{Home, Traces},
    unique,
};

const TEST: &str = "what runs on every store";

/// The server that the first call starts.
async fn server() -> Option<&'static PostgresServer> {
    static SHARED: OnceCell<Option<PostgresServer>> = OnceCell::const_new();
    let start = async || {
        let server = PostgresServer::start(TEST).await?;
        tidy_up(server.processes.pid(), server.directory.path());
        Some(server)
    };
    SHARED.get_or_init(start).await.as_ref()
}

/// The pooler that the first call starts.
async fn pooler(server: &PostgresServer) -> Option<&'static PgBouncer> {
    static SHARED: OnceCell<Option<PgBouncer>> = OnceCell::const_new();
    let start = async || {
        let pooler = PgBouncer::start(TEST, server).await?;
        tidy_up(pooler.process.pid(), pooler.directory.path());
        Some(pooler)
    };
    SHARED.get_or_init(start).await.as_ref()
}

/// A schema without locks on the shared server, which must be left in peace.
#[derive(Debug)]
pub struct PostgresHome {
    server: &'static PostgresServer,
    /// The URL, which may lead through the pooler.
    url: String,
    schema: String,
}

impl PostgresHome {
    /// One to which managers connect directly; `None`, with a notice, where there is no server.
    pub async fn start() -> Option<Self> {
        let server = server().await?;
        Some(Self::at(server, server.url()))
    }

    /// One behind PgBouncer in transaction mode.
    pub async fn start_pooled() -> Option<Self> {
        let server = server().await?;
        Some(Self::at(server, pooler(server).await?.url()))
    }

    fn at(server: &'static PostgresServer, url: String) -> Self {
        let schema = unique("store").replace('-', "_");
        Self {
            server,
            url,
            schema,
        }
    }

    /// Looks at the server.
    pub async fn peer(&self) -> PostgresPeer {
        self.server.peer().await
    }

    /// The schema's name.
    pub fn schema(&self) -> &str {
        &self.schema
    }
}

impl Home for PostgresHome {
    fn url(&self) -> String {
        format!("{}?schema={}", self.url, self.schema)
    }

    fn traces(&self) -> Traces<'_> {
        Box::pin(async { self.server.traces(&self.schema).await })
    }
}

/// Removes the directory of a process when ours has ended: what all tests share is never dropped.
///
/// The kernel ends it then.
pub(crate) fn tidy_up(process: u32, directory: &Path) {
    // It reads until the other end is closed, by our end.
    let mut tidy = Command::new("sh")
        .args([
            "-c",
            "cat; while kill -0 $1; do sleep 0.1; done 2>/dev/null; rm -rf -- \"$2\"",
            "tidy",
        ])
        .arg(process.to_string())
        .arg(directory)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    let input = tidy.stdin.take();
    std::thread::spawn(move || {
        let _open = input;
        tidy.wait()
    });
}
