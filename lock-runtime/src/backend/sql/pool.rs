//! A pool of connections to a database, each with the queues of the keys that are bound to it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::inspect::{Asked, Inspector};
use super::names::Names;
use super::steps::Queue;
use super::trouble::Trouble;
use crate::backend::queries::Queries;
use crate::backend::queue;
use crate::backend::setup::Setup;
use crate::backend::transport::ready::{in_time, late};
use crate::backend::{Backend, Outcome, Request};
use crate::base::clock::{Clock, Moment, Sleep};
use crate::base::numbers::Numbered;
use crate::types::error::{Cause, LockError};
use crate::types::finding::Finding;
use crate::types::health::LastError;
use crate::types::key::LockKey;
use crate::types::query::Query;
use crate::types::terms::LeaseId;

/// One connection of a pool: its queue, and what goes over its link.
pub(crate) trait Member: fmt::Debug + Send {
    fn queue(&mut self) -> &mut Queue;

    /// Whether it takes calls.
    fn is_up(&self) -> bool;

    /// Whether it is open, and all is answered.
    fn is_quiet(&self) -> bool;

    /// Why the last attempt has failed.
    fn failed(&mut self) -> &mut Option<Trouble>;

    /// The last error.
    fn last_error(&self) -> Option<LastError>;

    /// When something is due that no event announces.
    fn next_wakeup(&self) -> Option<Moment>;

    /// Takes in everything that has arrived; whether there was anything.
    fn receive(&mut self, cx: &mut Context<'_>, now: impl Fn() -> Moment) -> bool;

    /// Sends what there is to send; whether there was anything.
    fn flush(&mut self, now: Moment) -> bool;

    /// Looks at everything that the locks depend on.
    fn diagnose(
        &self,
        inspector: Inspector,
    ) -> impl Future<Output = Result<Vec<Finding>, Cause>> + Send + 'static;
}

/// The backend for a database.
#[derive(Debug)]
pub(crate) struct Pool<M> {
    members: Vec<M>,
    /// The member that each acquisition went to.
    bound: Numbered<LeaseId, usize>,
    names: Names,
    /// Each step goes over the connection of this number.
    queries: Queries<Asked, usize>,
    /// Counts probes: each goes over another connection.
    probes: usize,
    clock: Clock,
    sleep: Sleep,
}

impl<M: Member> Pool<M> {
    /// Of members that are not connected yet; the polls that follow open their connections.
    pub(crate) fn new(setup: &Setup, names: Names, members: Vec<M>) -> Self {
        Self {
            members,
            bound: Numbered::default(),
            names,
            queries: Queries::new(),
            probes: 0,
            clock: setup.clock.clone(),
            sleep: Sleep::default(),
        }
    }

    /// Opens every connection, or says why it cannot; a lazy manager leaves that to the polls that
    /// follow.
    pub(crate) async fn connect(
        mut self,
        setup: &Setup,
        server: &Arc<str>,
    ) -> Result<Self, LockError> {
        match in_time(setup, poll_fn(|cx| self.poll_all_up(cx))).await {
            Ok(()) => Ok(self),
            Err(failed) => {
                let mut members = self.members.iter_mut();
                let last = || members.find_map(|it| it.failed().take());
                let late = || Trouble::from(io::Error::other(late(setup)));
                let trouble = failed.or_else(last).unwrap_or_else(late);
                Err(trouble.into_error(server))
            }
        }
    }

    /// Fails at an error that will not go away by itself.
    fn poll_all_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Trouble>> {
        loop {
            let mut busy = false;
            for member in &mut self.members {
                busy |= member.receive(cx, || self.clock.now());
                if let Some(Trouble::Never(_) | Trouble::Invalid(..)) = member.failed() {
                    return Poll::Ready(member.failed().take().map_or(Ok(()), Err));
                }
                busy |= member.flush(self.clock.now());
            }
            if self.members.iter().all(Member::is_up) {
                return Poll::Ready(Ok(()));
            }
            if !busy && self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Commands about one key stay in order, since they share a connection.
    fn member_of(&self, key: &LockKey) -> usize {
        queue::connection_of(key, self.members.len())
    }

    fn next_outcome(&mut self) -> Option<Outcome> {
        let mut members = self.members.iter_mut();
        let outcome = members.find_map(|it| it.queue().next_outcome())?;
        if let Some(id) = outcome.ended() {
            self.bound.remove(&id);
        }
        Some(outcome)
    }

    /// Ready when something is due that no event announces.
    fn poll_sleep(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let all = self.members.iter().filter_map(Member::next_wakeup);
        self.sleep.poll_until(cx, &self.clock, all.min())
    }

    fn begin(&mut self, query: Query) {
        let connection = match &query {
            Query::Status(key, _)
            | Query::ForceRelease(key, _)
            | Query::Ask(key, _)
            | Query::History(key, _) => self.member_of(key),
            Query::List(..) | Query::Overview(..) | Query::Diagnose(_) => 0,
            Query::Health(_) => self.member_to_probe(),
        };
        let inspector = Inspector {
            asker: self.queries.asker(),
            connection,
            names: self.names.clone(),
            clock: self.clock.clone(),
        };
        let queries = &mut self.queries;
        match query {
            Query::Status(key, reply) => queries.begin(reply, inspector.status(key)),
            Query::List(pattern, reply) => queries.begin(reply, inspector.list(pattern)),
            Query::Overview(pattern, reply) => queries.begin(reply, inspector.overview(pattern)),
            Query::ForceRelease(key, reply) => queries.begin(reply, inspector.force_release(key)),
            Query::Ask(key, reply) => queries.begin(reply, inspector.ask_to_yield(key)),
            Query::History(key, reply) => queries.begin(reply, inspector.history(key)),
            Query::Diagnose(reply) => {
                queries.begin(reply, self.members[connection].diagnose(inspector));
            }
            Query::Health(reply) => queries.probe(connection, reply, inspector.echo()),
        }
    }

    /// Gives the steps that follow from what has been answered to the queues.
    fn go_on_with_queries(&mut self, cx: &mut Context<'_>, now: Moment) {
        for probed in self.queries.poll(cx) {
            let member = &mut self.members[probed.connection];
            let until = member.queue().quarantined_until();
            probed.answer(member.is_up(), member.last_error(), until);
        }
        while let Some(asked) = self.queries.next_asked() {
            let queue = self.members[asked.connection].queue();
            queue.inspect(now, asked.step, asked.by);
        }
    }

    /// One that is broken, or else each in turn.
    fn member_to_probe(&mut self) -> usize {
        self.probes = self.probes.wrapping_add(1);
        let broken = self.members.iter().position(|it| !it.is_up());
        broken.unwrap_or(self.probes % self.members.len())
    }
}

impl<M: Member> Backend for Pool<M> {
    fn submit(&mut self, now: Moment, request: Request) {
        let member = match request {
            Request::Query(query) => return self.begin(query),
            Request::Acquire(ref terms) => {
                let member = self.member_of(&terms.key);
                self.bound.insert(terms.id, member);
                member
            }
            Request::Abandon(id)
            | Request::Renew(id)
            | Request::Release(id)
            | Request::Downgrade(id)
            | Request::Issue { id, .. } => self.bound.get(&id).copied().unwrap_or(0),
        };
        self.members[member].queue().submit(now, request);
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            if let Some(outcome) = self.next_outcome() {
                return Poll::Ready(outcome);
            }
            let mut busy = false;
            for member in &mut self.members {
                busy |= member.receive(cx, || self.clock.now());
            }
            let now = self.clock.now();
            self.go_on_with_queries(cx, now);
            for member in &mut self.members {
                busy |= member.flush(now);
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
        self.members.iter().all(Member::is_quiet)
    }
}
