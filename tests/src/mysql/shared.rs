//! One server that the tests of a program share, each test in a database of its own.

use tokio::sync::OnceCell;

use super::{MysqlPeer, MysqlServer};
use crate::{
    postgres::tidy_up,
    stores::{Home, Traces},
    unique,
};

const TEST: &str = "what runs on every store";

/// The server that the first call starts.
async fn server() -> Option<&'static MysqlServer> {
    static SHARED: OnceCell<Option<MysqlServer>> = OnceCell::const_new();
    let start = async || {
        let server = MysqlServer::start(TEST).await?;
        tidy_up(server.process.pid(), server.directory.path());
        Some(server)
    };
    SHARED.get_or_init(start).await.as_ref()
}

/// A database without locks on the shared server, which must be left in peace.
#[derive(Debug)]
pub struct MysqlHome {
    server: &'static MysqlServer,
    database: String,
}

impl MysqlHome {
    /// One of its own; `None`, with a notice, where there is no server.
    pub async fn start() -> Option<Self> {
        let server = server().await?;
        let database = unique("store").replace('-', "_");
        server.cmd(&format!("CREATE DATABASE {database}")).await;
        Some(Self { server, database })
    }

    /// Looks at the database.
    pub async fn peer(&self) -> MysqlPeer {
        MysqlPeer::connect(self.server.addr(), &self.database).await
    }
}

impl Home for MysqlHome {
    fn url(&self) -> String {
        format!("mysql://root@{}/{}", self.server.addr(), self.database)
    }

    fn traces(&self) -> Traces<'_> {
        Box::pin(async { self.peer().await.traces().await })
    }
}
