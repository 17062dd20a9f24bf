//! The store on etcd: entries in the order of their revisions, on leases that all locks
//! of one ttl share.

mod address;
mod diagnosis;
mod findings;
mod protocol;
mod queue;
mod transport;

use std::collections::HashSet;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::backend::capabilities::Capabilities;
use crate::backend::scheme::Scheme;
use crate::backend::setup::Setup;
#[cfg(feature = "tls")]
use crate::backend::transport::tls::Distrust;
use crate::backend::{Backend, Connecting, Outcome, Request, Target};
use crate::base::clock::{Clock, Moment, Sleep};
use crate::types::authority::names_if;
use crate::types::error::LockError;
use crate::types::finding::Finding;
use crate::types::health::{Health, LastError};
use crate::types::query::{Found, Query, QueryId};
use crate::types::url::Url;

use address::Address;
use diagnosis::diagnose;
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
        Capabilities::all("etcd")
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

/// A diagnosis that is not complete yet.
type Diagnosis = Pin<Box<dyn Future<Output = Vec<Finding>> + Send>>;

/// The backend for `etcd://` and `etcds://`.
struct Etcd {
    queue: Queue,
    links: Links,
    /// The queries that ask whether etcd can be reached.
    probes: HashSet<QueryId>,
    diagnoses: Vec<(QueryId, Diagnosis)>,
    prefix: Box<str>,
    clock: Clock,
    sleep: Sleep,
}

impl Etcd {
    /// Connects to a member, or says why it cannot; a lazy manager leaves that to the
    /// polls that follow.
    async fn connect(setup: &Setup, address: &Address) -> Result<Self, LockError> {
        let mut this = Self {
            queue: Queue::new(&setup.prefix),
            links: Links::new(address, setup),
            probes: HashSet::new(),
            diagnoses: Vec::new(),
            prefix: (*setup.prefix).into(),
            clock: setup.clock.clone(),
            sleep: Sleep::default(),
        };
        if setup.lazy {
            return Ok(this);
        }
        let up = poll_fn(|cx| this.poll_up(cx));
        let failed = match tokio::time::timeout(setup.connect_timeout, up).await {
            Ok(result) => result.err(),
            Err(_) => Some(this.links.trouble.clone().unwrap_or_else(|| {
                Trouble::said(format!("no connection within {:?}", setup.connect_timeout))
            })),
        };
        match failed {
            Some(trouble) => Err(connect_failed(&trouble, address)),
            None => match this.links.too_few() {
                Some(why) => Err(LockError::invalid("url", why)),
                None => Ok(this),
            },
        }
    }

    /// Fails at an error that will not go away by itself.
    fn poll_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Trouble>> {
        loop {
            self.links.poll(cx, self.clock.now(), &mut self.queue);
            if let Some(trouble @ Trouble::Never(_)) = &self.links.trouble {
                return Poll::Ready(Err(trouble.clone()));
            }
            if self.links.is_up() {
                return Poll::Ready(Ok(()));
            }
            if self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn next_outcome(&mut self) -> Option<Outcome> {
        let mut outcome = self.queue.next_outcome()?;
        if let Outcome::Answered { id, result } = &mut outcome
            && self.probes.remove(id)
        {
            let known = self.links.last_error.clone();
            match result {
                Ok(Found::Health(health)) => health.last_error = known,
                Ok(_) => {}
                Err(why) => {
                    let current = known.filter(|_| !self.links.is_up());
                    let error = current.unwrap_or_else(|| LastError::now(why));
                    *result = Ok(Found::Health(Health::unreachable(error)));
                }
            }
        }
        Some(outcome)
    }

    /// Answers what was diagnosed.
    fn poll_diagnoses(&mut self, cx: &mut Context<'_>) {
        let queue = &mut self.queue;
        self.diagnoses.retain_mut(|(id, diagnosis)| {
            let Poll::Ready(findings) = diagnosis.as_mut().poll(cx) else {
                return true;
            };
            queue.answer(*id, Found::Diagnose(findings));
            false
        });
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
        if let Request::Query(id, Query::Health) = &request {
            self.probes.insert(*id);
        }
        if let Request::Query(id, Query::Diagnose) = request {
            let keys = Keys::new(&self.prefix);
            let diagnosis = diagnose(self.links.dialers(), keys, self.clock.clone());
            self.diagnoses.push((id, Box::pin(diagnosis)));
            return;
        }
        self.queue.submit(now, request);
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            if let Some(outcome) = self.next_outcome() {
                return Poll::Ready(outcome);
            }
            let now = self.clock.now();
            self.poll_diagnoses(cx);
            self.links.poll(cx, now, &mut self.queue);
            self.queue.tick(now);
            let sent = self.links.send(now, &mut self.queue);
            if let Some(outcome) = self.next_outcome() {
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

/// Why a manager cannot connect: because of a setting, or of the members.
fn connect_failed(trouble: &Trouble, address: &Address) -> LockError {
    let why = trouble.cause();
    #[cfg(feature = "tls")]
    if why.is::<Distrust>() {
        return LockError::invalid("tls", why);
    }
    LockError::unavailable_at(&address.to_string().into(), why)
}
