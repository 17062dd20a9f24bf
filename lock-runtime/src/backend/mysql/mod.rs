//! The store on a MySQL or MariaDB server: a pool of connections, each with the queues of the keys
//! that are bound to it.

mod address;
mod connection;
mod diagnosis;
mod findings;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod procedures;
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

use address::Address;
use connection::Connection;
use procedures::Procedures;
use transport::dialer::Dialer;
use transport::link::Link;

/// Opens every connection, or says why it cannot; a lazy manager leaves that to the polls that
/// follow.
async fn connect(setup: &Setup, address: &Address) -> Result<Box<dyn Backend>, LockError> {
    let server = Arc::from(address.to_string());
    let sessions = (0..setup.pool_size).map(|_| Session::new());
    let sessions = sessions.collect::<Result<_, _>>();
    let sessions = sessions.map_err(|error| LockError::unavailable_at(&server, error))?;
    let pool = unconnected(setup, address, sessions);
    Ok(Box::new(pool.connect(setup, &server).await?))
}

/// Not connected yet; the polls that follow open a connection for each session.
fn unconnected(setup: &Setup, address: &Address, sessions: Vec<Session>) -> Pool<Connection> {
    let longest = setup.quarantine.map_or(0, |it| it.as_millis());
    let names = Names::new(&setup.prefix);
    let longest = i64::try_from(longest).unwrap_or(i64::MAX);
    let history = i64::try_from(setup.history).unwrap_or(i64::MAX);
    let procedures = Arc::new(Procedures::new(names.clone(), longest, history));
    let dialer = Dialer::new(address, setup);
    let now = setup.clock.now();
    let connection = |(number, session)| {
        let link = Link::new(number, dialer.clone(), session, now);
        let upkeep = (number == 0).then(|| Upkeep::new(now));
        Connection::new(link, Arc::clone(&procedures), upkeep, now)
    };
    let connections = sessions.into_iter().enumerate().map(connection).collect();
    Pool::new(setup, names, connections)
}
