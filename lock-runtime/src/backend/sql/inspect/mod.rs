//! Answers queries: asks the server step by step, and reads what it says.

mod history;
mod locks;
mod status;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::names::Names;
use super::replies::mismatch;
use super::row::Row;
use super::steps::Inspect;
use crate::backend::queries::Asker;
use crate::backend::queue::protocol::step;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::base::clock::Clock;
use crate::types::error::Cause;
use crate::types::key::LockKey;

/// How often a diagnosis measures the way to the server.
const PROBES: usize = 10;

/// The server, asked over one of the connections by way of the backend.
#[derive(Debug)]
pub(crate) struct Inspector {
    pub(crate) asker: Asker<Asked>,
    pub(crate) connection: usize,
    pub(crate) names: Names,
    pub(crate) clock: Clock,
}

/// A step, and the connection that it goes over.
pub(crate) type Asked = step::Asked<Inspect, usize>;

impl Inspector {
    fn ask(&self, step: Inspect) -> impl Future<Output = Result<Vec<Row>, Trouble>> {
        step::ask(&self.asker, self.connection, step)
    }

    /// Looks at something that no function of the schema shows.
    pub(crate) fn look(
        &self,
        text: impl Into<Arc<str>>,
    ) -> impl Future<Output = Result<Vec<Row>, Trouble>> {
        self.ask(Inspect::Look(text.into()))
    }

    pub(crate) async fn force_release(self, key: LockKey) -> Result<usize, Cause> {
        let rows = self.ask(Inspect::ForceRelease(key)).await?;
        let count = rows.first().and_then(|row| row.number(0));
        Ok(count.ok_or_else(mismatch)?)
    }

    pub(crate) async fn ask_to_yield(self, key: LockKey) -> Result<usize, Cause> {
        let rows = self.ask(Inspect::Ask(key)).await?;
        let count = rows.first().and_then(|row| row.number(0));
        Ok(count.ok_or_else(mismatch)?)
    }

    /// How long several round trips take, one after the other.
    pub(crate) async fn round_trips(&self) -> Result<Vec<Duration>, Cause> {
        let mut all = Vec::new();
        for _ in 0..PROBES {
            all.push(self.round_trip().await?);
        }
        Ok(all)
    }

    async fn round_trip(&self) -> Result<Duration, Cause> {
        let asked = self.clock.now();
        self.look("SELECT 1").await?;
        Ok(self.clock.now().since(asked))
    }

    /// How long a round trip takes.
    pub(crate) async fn echo(self) -> Result<Duration, Cause> {
        self.round_trip().await
    }
}
