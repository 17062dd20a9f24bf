//! One connection of the pool: its queue, what goes over its link, and whether it listens.

use std::future::Future;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use super::asking::Asking;
use super::diagnosis::diagnose;
use super::functions::Functions;
use super::protocol::answer::Answer;
use super::protocol::arg::Arg;
use super::protocol::call::Call as SqlCall;
use super::protocol::channel::channel;
use super::protocol::error::ServerError;
use super::protocol::statement::Statement;
use super::transport::link::{Link, LinkEvent};
use super::transport::server::Server;
use crate::backend::queue::Rules;
use crate::backend::queue::protocol::call::Bearer;
use crate::backend::queue::protocol::message::Message;
use crate::backend::queue::protocol::trouble::{ServerSaid, Trouble};
use crate::backend::sql::batch::{Batch, takes_row};
use crate::backend::sql::inspect::Inspector;
use crate::backend::sql::pool::Member;
use crate::backend::sql::replies::{Replies, standings};
use crate::backend::sql::steps::Queue;
use crate::backend::sql::trouble::Trouble as ConnectTrouble;
use crate::backend::sql::upkeep::Upkeep;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::finding::Finding;
use crate::types::health::LastError;
use crate::types::key::LockKey;

/// A connection without waiters listens for so long: others need not be notified for it.
const LISTEN_FOR: Duration = Duration::from_secs(10);
/// How often the locks that are held for longer are looked at.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// How many locks are looked at in one call.
const CHECKED: usize = 100;
/// How many names a sweep looks at in one call, and its pause before the next ones. Renewals go over the same connection.
const SWEPT: i64 = 500;
const SWEEP_PAUSE: Duration = Duration::from_secs(1);
/// How long the server may take for a call that is about no claim.
const TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Connection {
    queue: Queue,
    link: Link<Task>,
    functions: Arc<Functions>,
    server: Option<Server>,
    /// Why the last attempt has failed.
    failed: Option<ConnectTrouble>,
    listening: Listening,
    asking: Asking,
    /// Whether the next calls go one by one.
    apart: bool,
    /// The answer to a call that waited for standbys, until it is known whether they were waited for to its end.
    unsettled: Option<(Batch, Answer)>,
    /// When to look next whether locks were taken by force.
    check_at: Moment,
    /// Only one connection of the pool has it.
    upkeep: Option<Upkeep>,
}

/// The purpose of a call on the link.
#[derive(Debug)]
pub(super) enum Task {
    Claims(Batch),
    /// Whether the standbys of the call before were waited for until its commit.
    Standbys,
    Quarantine,
    Listen,
    Unlisten,
    Sweep,
    /// Whether locks are still held by these.
    Check(Vec<Bearer>),
}

/// Whether notifications arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Listening {
    No,
    Yes {
        /// Since when nobody waits.
        idle: Option<Moment>,
    },
}

impl Connection {
    pub(super) fn new(
        link: Link<Task>,
        functions: Arc<Functions>,
        upkeep: Option<Upkeep>,
        now: Moment,
    ) -> Self {
        // A notification counts once a renewal has waited for the disk.
        let rules = Rules {
            pushes_are_hints: true,
            // `assert_fence` asks the server for the present token of a chain.
            passes: true,
            ..Rules::default()
        };
        Self {
            queue: Queue::new(rules),
            link,
            functions,
            server: None,
            failed: None,
            listening: Listening::No,
            asking: Asking::default(),
            apart: false,
            unsettled: None,
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
            LinkEvent::Notification(notification) => {
                if let Some(message) = Message::parse(notification.payload.as_bytes()) {
                    self.queue.heard(now, message);
                }
            }
        }
    }

    fn opened(&mut self, now: Moment, server: Server) {
        let last = self.server.replace(server);
        if last.is_some_and(|last| last.session != server.session) {
            self.queue.session_changed();
        }
        self.listening = Listening::No;
        self.queue.poll_waiters(!server.listens);
        if self.functions.have_quarantine() {
            self.send(now, self.functions.quarantined(), Task::Quarantine);
        } else {
            self.queue.connected(now);
        }
    }

    fn broken(&mut self, now: Moment, cause: &Cause, unanswered: Vec<Task>) {
        // Else its end would be due for as long as there is no connection.
        self.listening = Listening::No;
        let unsettled = self.unsettled.take().map(|(batch, _)| batch);
        let unanswered = unanswered.into_iter().filter_map(|task| match task {
            Task::Claims(batch) => Some(batch),
            _ => None,
        });
        let mut batches = unsettled.into_iter().chain(unanswered).peekable();
        let first = batches.peek().map(Batch::renewed);
        self.asking = Asking::after(batches.peek());
        let claims = batches.map(Batch::into_calls);
        let unknown = || Trouble::Unknown(Arc::clone(cause));
        // The queue decides again about calls that were not sent yet.
        let unsent = self.queue.calls();
        for sent in claims.flatten().chain(unsent) {
            self.queue.replied(now, sent, Err(unknown()));
        }
        self.queue.were_in_the_way(first.unwrap_or_default());
        self.queue.disconnected(unknown());
    }

    fn answered(&mut self, now: Moment, task: Task, answer: Answer) {
        match task {
            Task::Claims(batch)
                if answer.result.is_ok() && self.server.is_some_and(|it| it.waits_for_standbys) =>
            {
                self.unsettled = Some((batch, answer));
            }
            Task::Claims(batch) => self.settle(now, batch, answer, None),
            Task::Standbys => {
                let rows = answer.result.unwrap_or_default();
                let are_the_same = rows.first().and_then(|row| row.truth(0)) == Some(true);
                let doubt = (!are_the_same).then(standbys_changed);
                if let Some((batch, answer)) = self.unsettled.take() {
                    self.settle(now, batch, answer, doubt);
                }
            }
            Task::Quarantine => match answer.result {
                Ok(rows) => {
                    let left = rows.first().and_then(|row| row.number(0));
                    let left = left.filter(|ms| *ms > 0).map(Duration::from_millis);
                    self.queue.quarantined(now, left);
                    self.queue.connected(now);
                }
                // The functions know it, and say so.
                Err(_) => self.queue.connected(now),
            },
            Task::Listen if answer.result.is_err() => {
                // They ask more often instead.
                self.listening = Listening::No;
                let listens = false;
                self.server = self.server.map(|it| Server { listens, ..it });
                self.queue.poll_waiters(true);
            }
            Task::Sweep => {
                if let (Some(upkeep), Ok(rows)) = (&mut self.upkeep, answer.result) {
                    let next = rows.first().and_then(|row| row.text(0));
                    upkeep.go_on(now.after(SWEEP_PAUSE), next);
                }
            }
            Task::Check(held) => {
                let standings = answer.result.map(|rows| standings(&rows));
                for (bearer, standing) in held.iter().zip(standings.unwrap_or_default()) {
                    match standing {
                        0 => self.queue.heard(now, Message::Revoked(bearer.token)),
                        1 => {}
                        _ => self.queue.wanted_of(bearer),
                    }
                }
            }
            Task::Listen | Task::Unlisten => {}
        }
    }

    /// Takes in the answer to calls of claims. With a doubt, none of them is granted.
    fn settle(&mut self, now: Moment, batch: Batch, answer: Answer, doubt: Option<Cause>) {
        let has_waited = answer.result.as_ref().is_err_and(ServerError::has_waited);
        self.asking.ended(&batch, has_waited);
        let warning = answer.warnings.into_iter().next();
        let doubt = doubt.or_else(|| warning.map(|it| Arc::new(it) as Cause));
        let rows = answer.result.map_err(Trouble::from);
        if let (true, Some(key), Err(trouble)) = (has_waited, batch.lock(), &rows) {
            self.waits_in_vain(now, key, trouble);
        }
        self.replied(now, Replies::read(batch, rows, doubt));
    }

    /// Calls that would wait for the same row are not sent before it is asked for again.
    fn waits_in_vain(&mut self, now: Moment, key: &LockKey, trouble: &Trouble) {
        for sent in self.queue.take_calls(|it| takes_row(it) == Some(key)) {
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

    /// Listens while something waits: before PostgreSQL 19 each notification wakes every
    /// connection that listens.
    fn listen(&mut self, now: Moment, server: &Server) -> bool {
        if !server.listens {
            return false;
        }
        let channel = channel(server.session);
        match (&mut self.listening, self.queue.has_waiters()) {
            (Listening::No, false) => false,
            (Listening::No, true) => {
                self.listening = Listening::Yes { idle: None };
                self.once(now, format!("LISTEN {channel}"), Task::Listen);
                // A grant may have been pushed before.
                self.queue.ask_waiters(now);
                true
            }
            (Listening::Yes { idle }, true) => {
                *idle = None;
                false
            }
            (Listening::Yes { idle }, false) => {
                let is_over = now >= idle.get_or_insert(now).after(LISTEN_FOR);
                if is_over {
                    self.listening = Listening::No;
                    self.once(now, format!("UNLISTEN {channel}"), Task::Unlisten);
                }
                is_over
            }
        }
    }

    /// Asks now and then whether the locks that are held for longer were taken by force, or are asked
    /// for: a notification would find a listener only where every holder listens.
    fn check(&mut self, now: Moment) -> bool {
        if now < self.check_at || self.queue.is_empty() {
            return false;
        }
        let last = self.check_at;
        self.check_at = now.after(CHECK_EVERY);
        let held = self.queue.held_since(last);
        for page in held.chunks(CHECKED) {
            let task = Task::Check(page.to_vec());
            self.send(now, self.functions.standing(page), task);
        }
        !held.is_empty()
    }

    fn once(&mut self, now: Moment, text: String, task: Task) {
        let statement = Arc::new(Statement::once(text, &[]));
        self.send(now, (statement, Vec::new()), task);
    }

    fn send(&mut self, now: Moment, (statement, args): (Arc<Statement>, Vec<Arg>), task: Task) {
        let call = SqlCall::new(statement, args, TIMEOUT);
        self.link.send(now, [(call, task)]);
    }
}

fn standbys_changed() -> Cause {
    Arc::new(ServerSaid(
        "the server's synchronous_standby_names has changed".into(),
    ))
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
        let listening = match self.listening {
            Listening::Yes { idle: Some(since) } => Some(since.after(LISTEN_FOR)),
            _ => None,
        };
        let upkeep = self.upkeep.as_ref().filter(|_| self.is_up());
        let all = [
            self.link.next_wakeup(),
            self.queue.next_wakeup(),
            listening,
            upkeep.map(|it| it.due),
            Some(self.check_at).filter(|_| self.is_up() && !self.queue.is_empty()),
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
        let up = self.server.filter(|_| self.is_up());
        let mut any = up.is_some_and(|server| self.listen(now, &server));
        self.queue.tick(now);
        let Some(server) = up else {
            return false;
        };
        any |= self.check(now);
        if let Some(after) = self.upkeep.as_mut().and_then(|it| it.begin(now)) {
            let sweep = self.functions.sweep(after, SWEPT);
            self.send(now, sweep, Task::Sweep);
            any = true;
        }
        // The answer that is due brings us here again.
        if self.link.awaits_answer() && self.queue.can_wait() {
            return any;
        }
        let apart = std::mem::take(&mut self.apart) || self.functions.keep_history();
        let (batches, later) = self.asking.batches(self.queue.calls(), apart);
        self.queue.keep(later);
        for batch in batches {
            let Some(call) = self.functions.call(&batch, &server) else {
                self.asking.ended(&batch, false);
                continue;
            };
            // Behind the commit: the change of a setting also ends the wait for a standby, as if that had answered.
            let standbys = server.waits_for_standbys.then(|| {
                let check = self.functions.waits_as_before(call.timeout);
                (check, Task::Standbys)
            });
            let calls = [(call, Task::Claims(batch))].into_iter().chain(standbys);
            any |= self.link.send(now, calls);
        }
        any
    }

    fn diagnose(
        &self,
        inspector: Inspector,
    ) -> impl Future<Output = Result<Vec<Finding>, Cause>> + Send + 'static {
        let is_pooled = self.server.is_some_and(|it| it.is_pooled);
        let is_durable = self.functions.are_durable();
        diagnose(
            inspector,
            self.functions.schema().into(),
            is_pooled,
            is_durable,
        )
    }
}
