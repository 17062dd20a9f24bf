//! What a link hears from others than its server: from the server's replicas, and from
//! sentinels.

use std::sync::Arc;

use super::{Link, State};
use crate::backend::redis::protocol::reply::{ServerSaid, Trouble};
use crate::backend::redis::sentinel::Master;
use crate::backend::redis::transport::desk::Desk;
use crate::base::clock::Moment;

impl<D: Desk> Link<D> {
    /// Takes in what the replicas have answered.
    pub(crate) fn settle_replicas(&mut self, now: Moment) {
        let State::Up { replicas, .. } = &mut self.state else {
            return;
        };
        match replicas.as_mut().and_then(|it| it.answer()) {
            Some(Err(Trouble::Unknown(cause))) => self.broken(now, cause),
            Some(answer) => {
                self.grace = None;
                self.queue.replicas_answered(now, &answer);
            }
            None => {}
        }
    }

    /// Has the replicas confirm what has been said so far; `false` if nothing has.
    pub(crate) fn ask_replicas(&mut self, now: Moment) -> bool {
        if let State::Up { replicas, .. } = &mut self.state
            && let Some(replicas) = replicas
            && let Some((time, about)) = self.queue.ask_replicas()
        {
            replicas.ask(now, &self.names.mark(&about), time);
            return true;
        }
        false
    }

    /// Sentinels name a master. A connection to another server is dropped at once: that
    /// one may go on granting.
    pub(crate) fn named(&mut self, now: Moment, master: &Master) {
        if !self.is_up() {
            // What is being tried was found before.
            self.state = State::Down { until: now };
        } else if let Some(ours) = &self.master
            && ours.host != master.host
            && ours.epoch <= master.epoch
        {
            let cause = ServerSaid(format!("the master is {} now", master.host));
            self.broken(now, Arc::new(cause));
        }
    }
}
