//! Asks the holders of a lock whether they would yield, until each has heard of it or is gone.

use std::time::Duration;

use super::status::{REPORT_TIMEOUT, read};
use super::{Server, mismatch};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::queue::reports::Reports;
use crate::backend::redis::protocol::inspection::Inspect;
use crate::backend::token::Token;
use crate::types::error::Cause;
use crate::types::holder::Status;
use crate::types::key::LockKey;

/// How long holders are asked at most. One that cannot be reached for that long has often lost its
/// lease by then.
const LONGEST: Duration = Duration::from_secs(30);

impl<C: Copy> Server<C> {
    /// How many holders have heard of it. `reports` has what they say over the connection.
    pub(in crate::backend::redis) async fn ask_to_yield(
        self,
        key: LockKey,
        mut reports: Reports,
    ) -> Result<usize, Cause> {
        let (status, mut silent) = self.holders(&key).await?;
        let leases = status.holders.iter().filter_map(|it| it.remaining);
        let ends = leases.max().unwrap_or(LONGEST).min(LONGEST);
        let ends = self.clock.now().after(ends);
        reports.want(&silent);
        let asked = silent.len();
        let mut gone = 0;
        while !silent.is_empty() {
            let again = self.clock.now().after(REPORT_TIMEOUT);
            let message = self.ask(Inspect::Wanted(silent.clone()));
            tokio::select! {
                biased;
                heard = hear(&mut silent, &mut reports) => heard?,
                Err(trouble) = message => return Err(trouble.cause()),
                () = self.clock.sleep_until(again) => {}
            }
            if silent.is_empty() || self.clock.now() >= ends {
                break;
            }
            let (_, held) = self.holders(&key).await?;
            let before = silent.len();
            silent.retain(|it| held.contains(it));
            gone += before - silent.len();
        }
        Ok(asked - gone - silent.len())
    }

    /// The holders of a lock, and the tokens of those that can be asked.
    async fn holders(&self, key: &LockKey) -> Result<(Status, Vec<Token>), Cause> {
        let known = self.ask(Inspect::Status(key.clone())).await?;
        read(key.clone(), &known).ok_or_else(mismatch)
    }
}

/// Strikes out those who have heard, until all have.
async fn hear(silent: &mut Vec<Token>, reports: &mut Reports) -> Result<(), Trouble> {
    while !silent.is_empty() {
        let Some(report) = reports.recv().await else {
            return Err(Trouble::not_now("the query was given up"));
        };
        let report = report?;
        silent.retain(|it| *it != report.token);
    }
    Ok(())
}
