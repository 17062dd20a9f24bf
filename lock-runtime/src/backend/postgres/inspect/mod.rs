//! Answers queries: asks the server step by step, and reads what it says.

mod diagnosis;
mod history;
mod locks;
mod status;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::functions::Functions;
use super::protocol::row::Row;
use super::protocol::statement::Statement;
use super::replies::mismatch;
use super::steps::Inspect;
use crate::backend::queries::Asker;
use crate::backend::queue::protocol::step;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::base::clock::Clock;
use crate::types::error::Cause;
use crate::types::key::LockKey;

/// The server, asked over one of the connections by way of the backend.
#[derive(Debug)]
pub(super) struct Inspector {
    pub(super) asker: Asker<Asked>,
    pub(super) connection: usize,
    pub(super) functions: Arc<Functions>,
    pub(super) clock: Clock,
}

/// A step, and the connection that it goes over.
pub(super) type Asked = step::Asked<Inspect, usize>;

impl Inspector {
    fn ask(&self, step: Inspect) -> impl Future<Output = Result<Vec<Row>, Trouble>> {
        step::ask(&self.asker, self.connection, step)
    }

    /// Looks at something that no function of the schema shows.
    fn look(&self, text: impl Into<String>) -> impl Future<Output = Result<Vec<Row>, Trouble>> {
        self.ask(Inspect::Look(Arc::new(Statement::once(text, &[]))))
    }

    pub(super) async fn force_release(self, key: LockKey) -> Result<usize, Cause> {
        let rows = self.ask(Inspect::ForceRelease(key)).await?;
        let count = rows.first().and_then(|row| row.number(0));
        Ok(count.ok_or_else(mismatch)?)
    }

    pub(super) async fn ask_to_yield(self, key: LockKey) -> Result<usize, Cause> {
        let rows = self.ask(Inspect::Ask(key)).await?;
        let count = rows.first().and_then(|row| row.number(0));
        Ok(count.ok_or_else(mismatch)?)
    }

    /// How long a round trip takes.
    pub(super) async fn echo(self) -> Result<Duration, Cause> {
        let asked = self.clock.now();
        self.look("SELECT 1").await?;
        Ok(self.clock.now().since(asked))
    }
}
