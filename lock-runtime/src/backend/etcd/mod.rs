//! The store on etcd: entries in the order of their revisions, on leases that all locks
//! of one ttl share.

mod address;
mod diagnosis;
mod findings;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod inspect;
mod protocol;
mod queue;
mod transport;

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::backend::capabilities::Capabilities;
use crate::backend::queries::Queries;
use crate::backend::scheme::Scheme;
use crate::backend::setup::Setup;
use crate::backend::transport::ready::{connect_failed, in_time, late};
use crate::backend::{Backend, Connecting, Outcome, Request, Target};
use crate::base::clock::{Clock, Moment, Sleep};
use crate::types::authority::names_if;
use crate::types::error::LockError;
use crate::types::query::Query;
use crate::types::url::Url;

use address::Address;
use diagnosis::diagnose;
use inspect::{Asked, Inspector};
use protocol::keys::Keys;
use protocol::trouble::Trouble;
use queue::Queue;
use transport::links::Links;

pub(crate) const SCHEMES: &[Scheme] = &[
    Scheme::plain("etcd://", target),
    Scheme::encrypted("etcds://", target),
];

fn target(url: &mut Url, encrypted: bool) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Address::parse(url, encrypted)?))
}

impl Target for Address {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            answers: false,
            ..Capabilities::all("etcd")
        }
    }

    fn encrypted_hosts(&self) -> Vec<&str> {
        names_if(self.encrypted, &self.hosts)
    }

    fn connect<'a>(&'a self, setup: &'a Setup) -> Connecting<'a> {
        Box::pin(async {
            let etcd = Etcd::connect(setup, self).await?;
            Ok(Box::new(etcd) as Box<dyn Backend>)
        })
    }
}

/// The backend for `etcd://` and `etcds://`.
struct Etcd {
    queue: Queue,
    links: Links,
    queries: Queries<Asked>,
    keys: Arc<Keys>,
    clock: Clock,
    sleep: Sleep,
}

impl Etcd {
    /// Connects to a member, or says why it cannot; a lazy manager leaves that to the
    /// polls that follow.
    async fn connect(setup: &Setup, address: &Address) -> Result<Self, LockError> {
        let mut this = Self {
            queue: Queue::new(&setup.prefix, setup.history),
            links: Links::new(address, setup),
            queries: Queries::new(),
            keys: Keys::new(&setup.prefix).into(),
            clock: setup.clock.clone(),
            sleep: Sleep::default(),
        };
        let up = poll_fn(|cx| this.poll_up(cx));
        if let Err(failed) = in_time(setup, up).await {
            let trouble = failed.or_else(|| this.links.trouble.clone());
            let trouble = trouble.unwrap_or_else(|| Trouble::said(late(setup)));
            let server = address.to_string().into();
            return Err(connect_failed(&server, trouble.cause()));
        }
        match this.links.too_few() {
            Some(why) => Err(LockError::invalid("url", why)),
            None => Ok(this),
        }
    }

    /// Fails at an error that will not go away by itself.
    fn poll_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Trouble>> {
        loop {
            self.links.poll(cx, self.clock.now(), &mut self.queue);
            if self.links.is_up() {
                return Poll::Ready(Ok(()));
            }
            if let Some(refusal) = self.links.refusal() {
                return Poll::Ready(Err(refusal.clone()));
            }
            if self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn begin(&mut self, query: Query) {
        let inspector = Inspector {
            asker: self.queries.asker(),
            keys: Arc::clone(&self.keys),
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
            Query::Health(reply) => queries.probe((), reply, inspector.echo()),
            Query::Diagnose(reply) => {
                let Inspector { keys, clock, .. } = inspector;
                queries.begin(reply, diagnose(self.links.dialers(), keys, clock));
            }
        }
    }

    /// Takes in the answers that have arrived, and gives the calls that follow to the queue.
    fn go_on_with_queries(&mut self, cx: &mut Context<'_>, now: Moment) {
        for probed in self.queries.poll(cx) {
            probed.answer(self.links.is_up(), self.links.last_error(), None);
        }
        while let Some((call, by)) = self.queries.next_asked() {
            self.queue.inspect(now, call, by);
        }
    }

    /// Ready when something is due that no event announces.
    fn poll_sleep(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let wakeups = [self.links.next_wakeup(), self.queue.next_wakeup()];
        let wakeup = wakeups.into_iter().flatten().min();
        self.sleep.poll_until(cx, &self.clock, wakeup)
    }
}

impl Backend for Etcd {
    fn submit(&mut self, now: Moment, request: Request) {
        match request {
            Request::Query(query) => self.begin(query),
            request => self.queue.submit(now, request),
        }
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            if let Some(outcome) = self.queue.next_outcome() {
                return Poll::Ready(outcome);
            }
            let now = self.clock.now();
            self.links.poll(cx, now, &mut self.queue);
            self.go_on_with_queries(cx, now);
            self.queue.tick(now);
            let sent = self.links.send(now, &mut self.queue);
            if let Some(outcome) = self.queue.next_outcome() {
                return Poll::Ready(outcome);
            }
            if !sent && self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd")
            .field("queue", &self.queue)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}
