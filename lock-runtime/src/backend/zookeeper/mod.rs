//! The store on an ensemble of ZooKeeper servers: one session for all locks of a
//! manager.

mod address;
mod call;
mod diagnosis;
mod findings;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod inspect;
mod protocol;
mod queries;
mod queue;
mod session;
mod transport;

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::backend::capabilities::Capabilities;
use crate::backend::queries::Queries;
use crate::backend::scheme::Scheme;
use crate::backend::setup::Setup;
use crate::backend::transport::distrust::Distrust;
use crate::backend::transport::ready::{connect_failed, in_time, late};
use crate::backend::{Backend, Connecting, Outcome, Request, Target};
use crate::base::clock::{Clock, Moment, Sleep};
use crate::types::authority::names_if;
use crate::types::error::{Cause, LockError};
use crate::types::url::Url;

use address::Address;
use call::{Call, Recipient, cause};
use protocol::paths::Paths;
use protocol::reply::Trouble;
use queue::Queue;
use session::Session;
use transport::{Dialer, Link, LinkEvent, Opened};

pub(crate) const SCHEMES: &[Scheme] = &[
    Scheme::plain("zookeeper://", target),
    Scheme::encrypted("zookeepers://", target),
];

fn target(url: &mut Url, encrypted: bool) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Address::parse(url, encrypted)?))
}

impl Target for Address {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            // Nothing here makes entries.
            history: false,
            answers: false,
            ..Capabilities::all("ZooKeeper")
        }
    }

    fn encrypted_hosts(&self) -> Vec<&str> {
        names_if(self.encrypted, &self.hosts)
    }

    fn connect<'a>(&'a self, setup: &'a Setup) -> Connecting<'a> {
        Box::pin(async {
            let zookeeper = ZooKeeper::connect(setup, self).await?;
            Ok(Box::new(zookeeper) as Box<dyn Backend>)
        })
    }
}

/// The backend for `zookeeper:`.
struct ZooKeeper {
    link: Link,
    queue: Queue,
    paths: Paths,
    queries: Queries<Call>,
    /// Whether the node of the session is there, or why not.
    ready: Option<Result<(), Cause>>,
    /// Whether nothing was above it when it was to be made.
    was_gone: bool,
    clock: Clock,
    sleep: Sleep,
}

impl ZooKeeper {
    /// Opens a session, or says why it cannot; a lazy manager leaves that to the polls
    /// that follow.
    async fn connect(setup: &Setup, address: &Address) -> Result<Self, LockError> {
        let paths = Paths::new(&address.chroot, &setup.prefix);
        let clock = setup.clock.clone();
        let dialer = Dialer::new(address, setup);
        let mut this = Self {
            link: Link::new(dialer, clock.now()),
            queue: Queue::new(paths.clone()),
            queries: Queries::new(),
            paths,
            ready: None,
            was_gone: false,
            clock,
            sleep: Sleep::default(),
        };
        let ready = poll_fn(|cx| this.poll_ready(cx));
        if let Err(failed) = in_time(setup, ready).await {
            let said = || this.link.last_error().map(|it| it.message.to_string());
            let late = || Cause::from(Box::from(said().unwrap_or_else(|| late(setup))));
            let server = Arc::from(address.to_string());
            return Err(connect_failed(&server, failed.unwrap_or_else(late)));
        }
        Ok(this)
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        loop {
            let now = self.clock.now();
            let busy = self.turn(cx, now);
            if let Some(ready) = self.ready.take() {
                return Poll::Ready(ready);
            }
            if !busy && self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Takes in everything that has arrived, and sends what there is to send; whether
    /// there may be more of either.
    fn turn(&mut self, cx: &mut Context<'_>, now: Moment) -> bool {
        if self.queue.is_session_over(now) {
            let cause = cause(Trouble::SessionOver);
            self.session_over(now, cause);
        }
        let mut busy = false;
        while let Some(event) = self.poll_link(cx) {
            self.take(event);
            busy = true;
        }
        self.queue.tick(now);
        self.go_on_with_queries(cx);
        if self.link.is_up() {
            let calls = self.queue.calls(now);
            busy |= self.link.send(now, calls);
            while let Some(call) = self.queries.next_asked() {
                busy |= self.link.send(now, vec![call]);
            }
        }
        busy
    }

    fn poll_link(&mut self, cx: &mut Context<'_>) -> Option<LinkEvent> {
        let session = self.queue.session().map(|it| &it.identity);
        self.link.poll(cx, self.clock.now(), session)
    }

    fn take(&mut self, event: LinkEvent) {
        let now = self.clock.now();
        match event {
            LinkEvent::Opened(opened) => self.opened(now, opened),
            LinkEvent::Failed(cause) => {
                if cause.is::<Distrust>() {
                    self.ready = Some(Err(Arc::clone(&cause)));
                }
                self.queue.disconnected(&cause, false);
                self.fail_queries(&cause);
            }
            LinkEvent::Broken(cause, unanswered) => self.broken(&cause, unanswered),
            LinkEvent::Reply(to, Err(Trouble::SessionOver)) => {
                let cause = cause(Trouble::SessionOver);
                self.unanswered(to, &cause);
                self.session_over(now, cause);
            }
            LinkEvent::Reply(Recipient::Query(answer), reply) => drop(answer.send(Ok(reply))),
            LinkEvent::Reply(Recipient::Session, reply) => self.marked(reply.err()),
            LinkEvent::Reply(to, reply) => {
                // The answer to the creation of the node that it was written to may be lost.
                if let (Recipient::Heartbeat, Ok(_)) = (&to, &reply) {
                    self.marked(None);
                }
                self.queue.replied(now, to, reply);
            }
            LinkEvent::Message(message) => self.queue.heard(&message),
        }
    }

    /// The server may have another session for us than the one that we had.
    fn opened(&mut self, now: Moment, opened: Opened) {
        let Some(identity) = opened.welcome.identity.clone() else {
            return self.session_over(now, cause(Trouble::SessionOver));
        };
        let session = Session::new(identity, opened.welcome.timeout, opened.sent);
        self.link.established(now, opened, session.call_timeout());
        self.queue.connected(now, session, self.link.seen());
    }

    fn broken(&mut self, cause: &Cause, unanswered: Vec<Recipient>) {
        for to in unanswered {
            self.unanswered(to, cause);
        }
        self.queue.disconnected(cause, true);
        self.fail_queries(cause);
    }

    fn unanswered(&mut self, to: Recipient, cause: &Cause) {
        match to {
            Recipient::Query(answer) => drop(answer.send(Err(Arc::clone(cause)))),
            to => self.queue.unanswered(to),
        }
    }

    /// The session has ended, or may have: it is not used any more.
    fn session_over(&mut self, now: Moment, cause: Cause) {
        if self.link.is_up() {
            // If it has not, others need not wait for its end, but only until no body runs under its locks any more.
            let ends = self.queue.session().map_or(now, Session::ends);
            if let LinkEvent::Broken(cause, unanswered) = self.link.leave(now, ends, cause) {
                self.broken(&cause, unanswered);
            }
        } else {
            self.link.refused(now, &cause);
        }
        self.link.forget_session();
        self.queue.session_over(now);
    }

    /// The server has answered to the creation of the session's node.
    fn marked(&mut self, trouble: Option<Trouble>) {
        // A server may remove the empty node above it once, between two requests.
        let is_gone = trouble == Some(Trouble::NoNode);
        let is_for_good = is_gone && self.was_gone || trouble == Some(Trouble::NoRight);
        self.was_gone = is_gone;
        let ready = match trouble {
            None | Some(Trouble::NodeExists) => Ok(()),
            // The nodes above it could not be created.
            Some(Trouble::NoNode) => Err(cause(Trouble::NoRight)),
            Some(trouble) => Err(cause(trouble)),
        };
        match &ready {
            Ok(()) => self.queue.accepted(),
            Err(cause) if is_for_good => self.queue.refused(cause),
            Err(_) if is_gone => self.queue.mark_again(),
            // It is made with the next heartbeat.
            Err(_) => {}
        }
        self.ready = Some(ready);
    }

    /// Ready when something is due that no event announces.
    fn poll_sleep(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let all = [self.link.next_wakeup(), self.queue.next_wakeup()];
        let wakeup = all.into_iter().flatten().min();
        self.sleep.poll_until(cx, &self.clock, wakeup)
    }
}

impl Backend for ZooKeeper {
    fn submit(&mut self, now: Moment, request: Request) {
        match request {
            Request::Acquire(terms) => self.queue.acquire(now, terms),
            Request::Abandon(id) => self.queue.abandon(id),
            Request::Renew(id) => self.queue.renew(id),
            Request::Release(id) => self.queue.release(now, id),
            Request::Query(query) => self.begin(query),
            Request::Downgrade(id) => self.queue.downgrade(id),
            Request::Issue { id, ticket, time } => self.queue.issue(id, ticket, time),
        }
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            if let Some(outcome) = self.queue.next_outcome() {
                return Poll::Ready(outcome);
            }
            let now = self.clock.now();
            let busy = self.turn(cx, now);
            if let Some(outcome) = self.queue.next_outcome() {
                return Poll::Ready(outcome);
            }
            if !busy && self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.link.is_quiet()
    }
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        self.link.close();
    }
}

impl fmt::Debug for ZooKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZooKeeper")
            .field("link", &self.link)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
