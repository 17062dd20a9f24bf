//! One server that the tests of a program share, each test in a schema of its own.

use std::process::{Command, Stdio};

use tokio::sync::OnceCell;

use super::{PostgresPeer, PostgresServer};
use crate::{
    stores::{Home, Traces},
    unique,
};

/// A schema without locks on the shared server, which must be left in peace.
#[derive(Debug)]
pub struct PostgresHome {
    server: &'static PostgresServer,
    schema: String,
}

impl PostgresHome {
    /// One on the server that the first call starts; `None`, with a notice, where it cannot be had.
    pub async fn start() -> Option<Self> {
        static SHARED: OnceCell<Option<PostgresServer>> = OnceCell::const_new();
        let start = async || {
            let server = PostgresServer::start("what runs on every store").await?;
            tidy_up(&server);
            Some(server)
        };
        let server = SHARED.get_or_init(start).await.as_ref()?;
        let schema = unique("store").replace('-', "_");
        Some(Self { server, schema })
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
        format!("{}?schema={}", self.server.url(), self.schema)
    }

    fn traces(&self) -> Traces<'_> {
        Box::pin(async { self.server.traces(&self.schema).await })
    }
}

/// Removes the server's directory when this process has ended: what all tests share is never dropped.
///
/// The server shuts down by itself then.
fn tidy_up(server: &PostgresServer) {
    // It reads until the other end is closed, by our end.
    let mut tidy = Command::new("sh")
        .args([
            "-c",
            "cat; while kill -0 $1; do sleep 0.1; done 2>/dev/null; rm -rf -- \"$2\"",
            "tidy",
        ])
        .arg(server.processes.pid().to_string())
        .arg(server.directory.path())
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    let input = tidy.stdin.take();
    std::thread::spawn(move || {
        let _open = input;
        tidy.wait()
    });
}
