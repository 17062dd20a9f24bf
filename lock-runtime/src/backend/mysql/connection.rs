//! One connection of the pool: its queue, and what goes over its link.

use std::future::Future;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use super::diagnosis::diagnose;
use super::procedures::{Procedure, Procedures};
use super::protocol::answer::Answer;
use super::protocol::call::Call as SqlCall;
use super::protocol::error::ServerError;
use super::transport::link::{Link, LinkEvent};
use super::transport::server::Server;
use crate::backend::queue::Rules;
use crate::backend::queue::protocol::message::Message;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::sql::batch::{Batch, batches, takes_row};
use crate::backend::sql::inspect::Inspector;
use crate::backend::sql::pool::Member;
use crate::backend::sql::replies::{Replies, standings};
use crate::backend::sql::steps::{Call, Queue, Sent};
use crate::backend::sql::trouble::Trouble as ConnectTrouble;
use crate::backend::sql::upkeep::Upkeep;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::finding::Finding;
use crate::types::health::LastError;
use crate::types::key::LockKey;

/// How often the locks that are held for longer are looked at.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// How long calls go one by one after a batch without an answer: together they may take a slow server too long, again and
/// again.
const APART: Duration = Duration::from_secs(2);
/// How long the server may take for a call that is about no claim.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How many locks one call looks at, as many as one call renews.
const CHECKED: usize = 100;
/// How many names one call of the upkeep looks at. The renewals of the connection wait for this call.
const SWEPT: i64 = 200;
/// The pause between two calls of the upkeep.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Connection {
    queue: Queue,
    link: Link<Task>,
    procedures: Arc<Procedures>,
    server: Option<Server>,
    /// Why the last attempt has failed.
    failed: Option<ConnectTrouble>,
    /// Whether the next calls go one by one.
    apart: bool,
    /// Until when all calls do.
    apart_until: Option<Moment>,
    /// When to look next whether locks were taken by force.
    check_at: Moment,
    /// Only one connection of the pool has it.
    upkeep: Option<Upkeep>,
}

/// The purpose of a call on the link.
#[derive(Debug)]
pub(super) enum Task {
    Claims(Batch),
    Quarantine,
    Sweep,
    /// Whether locks are still held.
    Check(Vec<Token>),
}

impl Task {
    fn into_calls(self) -> Vec<Sent> {
        match self {
            Self::Claims(batch) => batch.into_calls(),
            _ => Vec::new(),
        }
    }
}

impl Connection {
    pub(super) fn new(
        link: Link<Task>,
        procedures: Arc<Procedures>,
        upkeep: Option<Upkeep>,
        now: Moment,
    ) -> Self {
        let mut queue = Queue::new(Rules::default());
        // A server has no way to notify anybody.
        queue.poll_waiters(true);
        Self {
            queue,
            link,
            procedures,
            server: None,
            failed: None,
            apart: false,
            apart_until: None,
            check_at: now.after(CHECK_EVERY),
            upkeep,
        }
    }

    fn take(&mut self, now: Moment, event: LinkEvent<Task>) {
        match event {
            LinkEvent::Opened(server) => self.opened(now, server),
            LinkEvent::Failed(trouble) => {
                self.queue.disconnected(match &trouble {
                    ConnectTrouble::NotNow(cause) => Trouble::NotNow(Arc::clone(cause)),
                    lasting => Trouble::Never(lasting.cause()),
                });
                self.failed = Some(trouble);
            }
            LinkEvent::Broken(cause, unanswered) => self.broken(now, &cause, unanswered),
            LinkEvent::Answer(task, answer) => self.answered(now, task, answer),
        }
    }

    fn opened(&mut self, now: Moment, server: Server) {
        let last = self.server.replace(server);
        if last.is_some_and(|last| last.session != server.session) {
            self.queue.session_changed();
        }
        self.apart_until = self.apart_until.map(|_| now.after(APART));
        if self.procedures.have_quarantine() {
            let quarantined = call(self.procedures.quarantined());
            self.link.send(quarantined, Task::Quarantine);
        } else {
            self.queue.connected(now);
        }
    }

    fn broken(&mut self, now: Moment, cause: &Cause, unanswered: Vec<Task>) {
        let is_batch =
            |task: &Task| matches!(task, Task::Claims(Batch::Many(_) | Batch::Renewals(_)));
        if unanswered.iter().any(is_batch) {
            self.apart_until = Some(now.after(APART));
        }
        let first = match unanswered.first() {
            Some(Task::Claims(batch)) => batch.renewed(),
            _ => Vec::new(),
        };
        let claims = unanswered.into_iter().map(Task::into_calls);
        let unknown = || Trouble::Unknown(Arc::clone(cause));
        // The queue decides again about calls that were not sent yet.
        let unsent = self.queue.calls();
        for sent in claims.flatten().chain(unsent) {
            self.queue.replied(now, sent, Err(unknown()));
        }
        self.queue.were_in_the_way(first);
        self.queue.disconnected(unknown());
    }

    fn answered(&mut self, now: Moment, task: Task, answer: Answer) {
        match task {
            Task::Claims(batch) => {
                let has_waited = answer.as_ref().is_err_and(ServerError::has_waited);
                let rows = answer.map_err(Trouble::from);
                if let (true, Some(key), Err(trouble)) = (has_waited, batch.lock(), &rows) {
                    self.waits_in_vain(now, key, trouble);
                }
                self.replied(now, Replies::read(batch, rows, None));
            }
            Task::Quarantine => {
                // The procedures know it, and say so, if this call has failed.
                if let Ok(rows) = answer {
                    let left = rows.first().and_then(|row| row.number(0));
                    let left = left.filter(|ms| *ms > 0).map(Duration::from_millis);
                    self.queue.quarantined(now, left);
                }
                self.queue.connected(now);
            }
            Task::Sweep => {
                if let (Some(upkeep), Ok(rows)) = (&mut self.upkeep, answer) {
                    let next = rows.first().and_then(|row| row.text(0));
                    upkeep.go_on(now.after(SWEEP_PAUSE), next);
                }
            }
            Task::Check(tokens) => {
                let standings = answer.map(|rows| standings(&rows));
                for (token, standing) in tokens.into_iter().zip(standings.unwrap_or_default()) {
                    match standing {
                        0 => self.queue.heard(now, Message::Revoked(token)),
                        1 => {}
                        _ => self.queue.wanted(token),
                    }
                }
            }
        }
    }

    /// Calls that would wait for the same row are not sent before it is asked for again.
    fn waits_in_vain(&mut self, now: Moment, key: &LockKey, trouble: &Trouble) {
        let such = |call: &Call| takes_row(call) == Some(key);
        let unsent = self.link.take_unsent(|task| {
            matches!(task, Task::Claims(batch) if batch.calls().iter().all(|it| such(&it.call)))
        });
        let unsent = unsent.into_iter().flat_map(Task::into_calls);
        for sent in unsent.chain(self.queue.take_calls(such)) {
            self.queue.replied(now, sent, Err(trouble.clone()));
        }
    }

    fn replied(&mut self, now: Moment, replies: Replies) {
        if replies.quarantine.is_some() {
            self.queue.quarantined(now, replies.quarantine);
        }
        self.apart |= replies.apart;
        for (sent, reply) in replies.all {
            self.queue.replied(now, sent, reply);
        }
    }

    /// Asks now and then whether the locks that are held for longer were taken by force, or are asked for.
    fn check(&mut self, now: Moment) {
        if now < self.check_at || self.queue.is_empty() {
            return;
        }
        let last = self.check_at;
        self.check_at = now.after(CHECK_EVERY);
        for page in self.queue.held_since(last).chunks(CHECKED) {
            let tokens = page.iter().map(|it| it.token).collect();
            // It waits for no row.
            let standing = call(self.procedures.standing(page));
            self.link.send_first(standing, Task::Check(tokens));
        }
    }

    /// Deletes what nobody has used for long.
    fn sweep(&mut self, now: Moment) {
        if let Some(after) = self.upkeep.as_mut().and_then(|it| it.begin(now)) {
            let sweep = call(Procedures::sweep(after, SWEPT));
            self.link.send(sweep, Task::Sweep);
        }
    }

    /// Gives calls to the next query. Each may wait for a row: renewals go before all others, and one that has waited in vain
    /// goes with the others the next time.
    fn put_calls(&mut self, now: Moment, server: &Server) {
        // The answer that is due brings us here again, and what comes until then goes together.
        if self.link.is_in_flight() {
            return;
        }
        let is_rest_left = self.link.has_unsent();
        self.apart_until = self.apart_until.filter(|until| now < *until);
        let apart = self.apart_until.is_some() || self.procedures.keep_history();
        for batch in batches(self.queue.renewals(), self.apart || apart) {
            if let Some(call) = self.procedures.call(&batch, server) {
                self.link.send_first(call, Task::Claims(batch));
            }
        }
        self.check(now);
        if is_rest_left {
            return;
        }
        self.sweep(now);
        let apart = std::mem::take(&mut self.apart) || apart;
        for batch in batches(self.queue.calls(), apart) {
            if let Some(call) = self.procedures.call(&batch, server) {
                self.link.send(call, Task::Claims(batch));
            }
        }
    }
}

/// A call that is about no claim.
fn call((name, args): Procedure) -> SqlCall {
    SqlCall::procedure(name, &args, TIMEOUT)
}

impl Member for Connection {
    fn queue(&mut self) -> &mut Queue {
        &mut self.queue
    }

    fn is_up(&self) -> bool {
        !self.queue.is_down()
    }

    fn is_quiet(&self) -> bool {
        self.link.is_quiet()
    }

    fn failed(&mut self) -> &mut Option<ConnectTrouble> {
        &mut self.failed
    }

    fn last_error(&self) -> Option<LastError> {
        self.link.last_error()
    }

    fn next_wakeup(&self) -> Option<Moment> {
        // An answer that is due brings us to the rest.
        let is_idle = self.is_up() && !self.link.awaits_answer();
        let upkeep = self.upkeep.as_ref().filter(|_| is_idle);
        let all = [
            self.link.next_wakeup(),
            self.queue.next_wakeup(),
            upkeep.map(|it| it.due),
            Some(self.check_at).filter(|_| is_idle && !self.queue.is_empty()),
        ];
        all.into_iter().flatten().min()
    }

    fn receive(&mut self, cx: &mut Context<'_>, now: impl Fn() -> Moment) -> bool {
        let mut any = false;
        while let Some(event) = self.link.poll(cx, now()) {
            self.take(now(), event);
            any = true;
        }
        any
    }

    fn flush(&mut self, now: Moment) -> bool {
        self.queue.tick(now);
        if let Some(server) = self.server.filter(|_| self.is_up()) {
            self.put_calls(now, &server);
        }
        self.link.begin(now)
    }

    fn diagnose(
        &self,
        inspector: Inspector,
    ) -> impl Future<Output = Result<Vec<Finding>, Cause>> + Send + 'static {
        diagnose(inspector, self.procedures.have_quarantine())
    }
}
