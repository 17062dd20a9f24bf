//! How a link gets a connection, and what becomes of it when that is lost.

use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use super::doubts::Question;
use super::others::replaced_by;
use super::{Link, Up};
use crate::backend::queue::protocol::trouble::{ServerSaid, Trouble};
use crate::backend::redis::opening::closed;
use crate::backend::redis::transport::call_source::CallSource;
use crate::backend::redis::transport::connect::{Caller, Opened};
use crate::backend::redis::transport::login::Login;
use crate::backend::redis::transport::replicas::Replicas;
use crate::backend::redis::transport::wire::Wire;
use crate::base::clock::Moment;
use crate::telemetry::events;
use crate::types::error::Cause;

impl<D: CallSource> Link<D> {
    /// Connects if there is no connection, and drops one that has gone silent. Returns
    /// the error of an attempt that has failed.
    pub(crate) fn poll_connection(
        &mut self,
        cx: &mut Context<'_>,
        now: Moment,
    ) -> Result<(), Trouble> {
        let answer_by = self.answer_by();
        if self.connection.silence.is_over(now, answer_by) {
            let cause = ServerSaid("the server does not answer".into());
            self.broken(now, Arc::new(cause));
        }
        match self.poll_attempt(cx, now) {
            Some(Ok(opened)) => match self.refusal(&opened) {
                Some(trouble) => return Err(self.dial_failed(now, trouble)),
                None => self.opened(now, opened),
            },
            Some(Err(trouble)) => return Err(self.dial_failed(now, trouble)),
            None => {}
        }
        if let Some(up) = self.connection.up()
            && let Err(cause) = self.login.poll(cx, now, up.wires())
        {
            events::login_failed(self.connection.number, &cause);
            self.connection.note(&cause);
        }
        Ok(())
    }

    fn poll_attempt(
        &mut self,
        cx: &mut Context<'_>,
        now: Moment,
    ) -> Option<Result<Opened, Trouble>> {
        let number = self.connection.number;
        self.connection.poll_attempt(cx, now, |backoff| {
            self.generation += 1;
            self.ended = false;
            let dialer = self.dialer.clone();
            let caller = Caller {
                names: Arc::clone(&self.names),
                number,
                generation: self.generation,
                old: self.identity.clone(),
                proven: self.proven,
                timeout: backoff.attempt(dialer.connect_timeout),
            };
            async move { dialer.open(&caller).await }
        })
    }

    /// Why a connection is not used that has been opened: it has ended, or sentinels have named
    /// another server since this one was found.
    fn refusal(&self, opened: &Opened) -> Option<Trouble> {
        if self.ended {
            return Some(Trouble::from_connecting(closed(), &self.names));
        }
        let host = self.dialer.successor(opened.master.as_ref()?)?;
        Some(Trouble::NotNow(Arc::new(replaced_by(&host))))
    }

    fn opened(&mut self, now: Moment, opened: Opened) {
        self.identity.clone_from(&opened.identity);
        let clock = opened.identity.and_then(|it| it.clock);
        // As it would be now.
        let shows = |(micros, asked): (_, Instant)| Duration::from_micros(micros) + asked.elapsed();
        self.clock = clock.map(|it| (shows(it), now));
        if let Some(names) = &opened.names {
            self.names = Arc::new(names.clone());
        }
        self.master.clone_from(&opened.master);
        self.login = Login::new(self.dialer.logins.clone(), now, opened.expires_in);
        self.proven = true;
        let (needed, in_cluster) = (self.dialer.replicas, self.dialer.in_cluster);
        let up = Up {
            standing: opened.standing,
            wire: Wire::new(opened.connection, opened.io),
            replicas: opened.replicas.map(|(connection, io)| {
                Replicas::new(Wire::new(connection, io), needed, in_cluster)
            }),
        };
        self.connection.opened(now, up);
        self.role = Question::of_role(&self.dialer);
        self.queue.quarantined(now, opened.quarantine);
        self.queue.connected(now);
    }

    fn dial_failed(&mut self, now: Moment, trouble: Trouble) -> Trouble {
        if trouble.is_replica() {
            self.connection.refused(now, &trouble.cause());
        } else {
            self.connection.failed(now, &trouble.cause());
        }
        self.queue.disconnected(trouble.clone());
        trouble
    }

    /// The server has ended the connection, perhaps since there were too many answers for it to keep.
    pub(super) fn ended(&mut self, now: Moment, cause: Cause) {
        self.room.ended();
        self.broken(now, cause);
    }

    /// Drops the connection; a new one is dialled at once, unless this one was opened just
    /// now.
    pub(crate) fn broken(&mut self, now: Moment, cause: Cause) {
        if !self.is_up() {
            return;
        }
        self.connection.broken(now, &cause);
        for pipeline in std::mem::take(&mut self.in_flight) {
            self.unknown(now, pipeline.sent, &cause);
        }
        // The queue decides again about calls that were not sent yet.
        let mut unsent = self.room.broken();
        unsent.extend(self.queue.calls());
        self.unknown(now, unsent, &cause);
        self.queue.disconnected(Trouble::Unknown(cause));
    }
}
