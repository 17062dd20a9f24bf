//! The store on a PostgreSQL server: a pool of connections, each with the queues of the keys
//! that are bound to it.

mod address;
mod batch;
mod connection;
mod findings;
mod functions;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod inspect;
mod protocol;
mod queries;
mod replies;
pub(crate) mod sql;
mod steps;
pub(crate) mod target;
mod transport;
mod upkeep;

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::backend::queries::Queries;
use crate::backend::queue;
use crate::backend::setup::Setup;
use crate::backend::transport::ready::{in_time, late};
use crate::backend::{Backend, Outcome, Request};
use crate::base::clock::{Clock, Moment, Sleep};
use crate::base::numbers::Numbered;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

use address::{Address, Commit};
use connection::Connection;
use functions::Functions;
use inspect::Asked;
use protocol::schema::Schema;
use protocol::session::Session;
use transport::dialer::Dialer;
use transport::link::Link;
use transport::trouble::Trouble;
use upkeep::Upkeep;

/// The backend for PostgreSQL.
#[derive(Debug)]
struct Postgres {
    connections: Vec<Connection>,
    /// The connection that each acquisition went to.
    bound: Numbered<LeaseId, usize>,
    functions: Arc<Functions>,
    /// Each step goes over the connection of this number.
    queries: Queries<Asked, usize>,
    /// Counts probes: each goes over another connection.
    probes: usize,
    clock: Clock,
    sleep: Sleep,
}

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
    let mut this = Postgres::unconnected(setup, address, sessions);
    match in_time(setup, poll_fn(|cx| this.poll_all_up(cx))).await {
        Ok(()) => Ok(Box::new(this)),
        Err(failed) => {
            let mut connections = this.connections.iter_mut();
            let last = || connections.find_map(|it| it.failed.take());
            let late = || Trouble::from(io::Error::other(late(setup)));
            let trouble = failed.or_else(last).unwrap_or_else(late);
            Err(trouble.into_error(&server))
        }
    }
}

impl Postgres {
    /// Not connected yet; the polls that follow open a connection for each session.
    fn unconnected(setup: &Setup, address: &Address, sessions: Vec<Session>) -> Self {
        let name = &address.schema;
        let schema = Schema {
            name: name.clone(),
            version: sql::VERSION,
            script: sql::script(name),
        };
        let longest = setup.quarantine.map_or(0, |it| it.as_millis());
        let functions = Arc::new(Functions::new(
            &schema.quoted(),
            &setup.prefix,
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
        Self {
            connections: sessions.into_iter().enumerate().map(connection).collect(),
            bound: Numbered::default(),
            functions,
            queries: Queries::new(),
            probes: 0,
            clock: setup.clock.clone(),
            sleep: Sleep::default(),
        }
    }

    /// Fails at an error that will not go away by itself.
    fn poll_all_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Trouble>> {
        loop {
            let mut busy = false;
            for connection in &mut self.connections {
                busy |= connection.receive(cx, || self.clock.now());
                if let Some(Trouble::Never(_) | Trouble::Invalid(..)) = connection.failed {
                    return Poll::Ready(connection.failed.take().map_or(Ok(()), Err));
                }
                busy |= connection.flush(self.clock.now());
            }
            if self.connections.iter().all(Connection::is_up) {
                return Poll::Ready(Ok(()));
            }
            if !busy && self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Commands about one key stay in order, since they share a connection.
    fn connection_of(&self, key: &LockKey) -> usize {
        queue::connection_of(key, self.connections.len())
    }

    fn next_outcome(&mut self) -> Option<Outcome> {
        let mut connections = self.connections.iter_mut();
        let outcome = connections.find_map(|it| it.queue.next_outcome())?;
        if let Some(id) = outcome.ended() {
            self.bound.remove(&id);
        }
        Some(outcome)
    }

    /// Ready when something is due that no event announces.
    fn poll_sleep(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let all = self.connections.iter().filter_map(Connection::next_wakeup);
        self.sleep.poll_until(cx, &self.clock, all.min())
    }
}

impl Backend for Postgres {
    fn submit(&mut self, now: Moment, request: Request) {
        let connection = match request {
            Request::Query(query) => return self.begin(query),
            Request::Acquire(ref terms) => {
                let connection = self.connection_of(&terms.key);
                self.bound.insert(terms.id, connection);
                connection
            }
            Request::Abandon(id)
            | Request::Renew(id)
            | Request::Release(id)
            | Request::Downgrade(id)
            | Request::Issue { id, .. } => self.bound.get(&id).copied().unwrap_or(0),
        };
        self.connections[connection].queue.submit(now, request);
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            if let Some(outcome) = self.next_outcome() {
                return Poll::Ready(outcome);
            }
            let mut busy = false;
            for connection in &mut self.connections {
                busy |= connection.receive(cx, || self.clock.now());
            }
            let now = self.clock.now();
            self.go_on_with_queries(cx, now);
            for connection in &mut self.connections {
                busy |= connection.flush(now);
            }
            if let Some(outcome) = self.next_outcome() {
                return Poll::Ready(outcome);
            }
            if !busy && self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.connections.iter().all(Connection::is_quiet)
    }
}
