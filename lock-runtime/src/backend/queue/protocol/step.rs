//! What a store adds to the calls of claims.

use std::fmt;
use std::future::Future;

use tokio::sync::oneshot;

use super::trouble::Trouble;
use crate::backend::queries::Asker;
use crate::types::key::LockKey;

/// A call of the store's own, such as a step of a query, which goes the way of all calls.
pub(crate) trait Step: fmt::Debug {
    /// The server's reply to it.
    type Answer: fmt::Debug;
    /// How a call has found its server, in a store that sends calls on from one server to another.
    type Route: fmt::Debug + Default;

    /// The lock that it may grant to a waiter. It is held back during a quarantine.
    fn may_grant(&self) -> Option<&LockKey>;

    /// The lock that it is about.
    fn key(&self) -> Option<&LockKey>;
}

/// The query that awaits the reply to a step.
pub(crate) type AskedBy<S> = oneshot::Sender<Result<<S as Step>::Answer, Trouble>>;

/// A step of a query, and the connection that it goes over.
#[derive(Debug)]
pub(crate) struct Asked<S: Step, C> {
    pub(crate) connection: C,
    pub(crate) step: S,
    pub(crate) by: AskedBy<S>,
}

/// Asks at once; the answer may be awaited later. What was not run is asked again.
pub(crate) fn ask<S: Step + Clone, C: Copy>(
    asker: &Asker<Asked<S, C>>,
    connection: C,
    step: S,
) -> impl Future<Output = Result<S::Answer, Trouble>> {
    let ask = move || {
        let step = step.clone();
        asker.ask(|by| Asked {
            connection,
            step,
            by,
        })
    };
    let mut answer = ask();
    async move {
        loop {
            match answer.await {
                Ok(Err(Trouble::NotRun)) => answer = ask(),
                Ok(answered) => return answered,
                Err(_) => return Err(Trouble::not_now("the connection was given up")),
            }
        }
    }
}
