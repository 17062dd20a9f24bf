//! The store on a PostgreSQL server: a pool of connections, each with the queues of the keys
//! that are bound to it.

mod address;
mod asking;
mod connection;
mod diagnosis;
mod findings;
mod functions;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod protocol;
pub(crate) mod sql;
pub(crate) mod target;
mod transport;

use std::sync::Arc;

use crate::backend::Backend;
use crate::backend::setup::Setup;
use crate::backend::sql::names::Names;
use crate::backend::sql::pool::Pool;
use crate::backend::sql::session::Session;
use crate::backend::sql::upkeep::Upkeep;
use crate::types::error::LockError;

use address::{Address, Commit};
use connection::Connection;
use functions::Functions;
use protocol::schema::Schema;
use transport::dialer::Dialer;
use transport::link::Link;

/// Opens every connection, or says why it cannot; a lazy manager leaves that to the polls that
/// follow.
async fn connect(setup: &Setup, address: &Address) -> Result<Box<dyn Backend>, LockError> {
    if address.commit == Commit::Async && setup.quarantine.is_none() {
        let reason = "a crash of the server forgets grants that are not on its disk: write `commit=sync`, or set \
                      `quarantine` to the longest ttl";
        return Err(LockError::invalid("commit", reason));
    }
    let server = Arc::from(address.to_string());
    let sessions = (0..setup.pool_size).map(|_| Session::new());
    let sessions = sessions.collect::<Result<_, _>>();
    let sessions = sessions.map_err(|error| LockError::unavailable_at(&server, error))?;
    let pool = unconnected(setup, address, sessions);
    Ok(Box::new(pool.connect(setup, &server).await?))
}

/// Not connected yet; the polls that follow open a connection for each session.
fn unconnected(setup: &Setup, address: &Address, sessions: Vec<Session>) -> Pool<Connection> {
    let name = &address.schema;
    let schema = Schema {
        name: name.clone(),
        version: sql::VERSION,
        script: sql::script(name),
    };
    let longest = setup.quarantine.map_or(0, |it| it.as_millis());
    let names = Names::new(&setup.prefix);
    let functions = Arc::new(Functions::new(
        &schema.quoted(),
        names.clone(),
        i64::try_from(longest).unwrap_or(i64::MAX),
        address.commit == Commit::Sync,
        u32::try_from(setup.history).unwrap_or(u32::MAX),
    ));
    let dialer = Dialer::new(address, setup, schema);
    let now = setup.clock.now();
    let connection = |(number, session)| {
        let link = Link::new(number, dialer.clone(), session, now);
        let upkeep = (number == 0).then(|| Upkeep::new(now));
        Connection::new(link, Arc::clone(&functions), upkeep, now)
    };
    let connections = sessions.into_iter().enumerate().map(connection).collect();
    Pool::new(setup, names, connections)
}
