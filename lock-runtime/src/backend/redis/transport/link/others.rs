//! News that a link gets from others than its server: from the server's replicas, and from
//! sentinels.

use std::sync::Arc;

use super::Link;
use crate::backend::queue::protocol::trouble::{ServerSaid, Trouble};
use crate::backend::redis::sentinel::Master;
use crate::backend::redis::transport::call_source::CallSource;
use crate::backend::redis::transport::replicas::Replicas;
use crate::base::clock::Moment;
use crate::types::authority::Host;

impl<D: CallSource> Link<D> {
    /// Takes in what the replicas have answered.
    pub(crate) fn settle_replicas(&mut self, now: Moment) {
        let replicas = self.connection.up_mut();
        let replicas = replicas.and_then(|up| up.replicas.as_mut());
        match replicas.and_then(Replicas::answer) {
            Some(Err(Trouble::Unknown(cause))) => self.broken(now, cause),
            Some(answer) => {
                self.connection.silence.heard(now);
                self.queue.replicas_answered(now, &answer);
            }
            None => {}
        }
    }

    /// Lets the replicas confirm all answers so far; `false` if there are none.
    pub(crate) fn ask_replicas(&mut self, now: Moment) -> bool {
        if let Some(up) = self.connection.up_mut()
            && let Some(replicas) = &mut up.replicas
            && let Some((time, about)) = self.queue.ask_replicas()
        {
            replicas.ask(now, &self.names.mark(&about), time);
            return true;
        }
        false
    }

    /// Sentinels name a master, perhaps the same as before. A connection to another server
    /// is dropped at once: that one may go on granting.
    pub(crate) fn named(&mut self, now: Moment, master: &Master) {
        let has_changed = self.named.as_ref() != Some(&master.host);
        if has_changed {
            self.named = Some(master.host.clone());
        }
        if self.is_up() {
            if let Some(ours) = &self.master
                && ours.host != master.host
            {
                self.broken(now, Arc::new(replaced_by(&master.host)));
            }
        } else if has_changed {
            // The attempt under way goes to the address found before.
            self.connection.dial_at(now);
        }
    }
}

/// Why a server is left that may still call itself the master.
pub(super) fn replaced_by(master: &Host) -> ServerSaid {
    ServerSaid(format!("the master is {master} now"))
}
