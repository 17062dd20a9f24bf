//! Whether a refused attempt to connect concerns callers: not while another host of the URL may serve.

use std::collections::BTreeSet;

use super::trouble::Trouble;
use crate::backend::transport::connection::Connection;
use crate::base::clock::Moment;

/// The hosts that have refused for good since the last connection.
#[derive(Debug)]
pub(crate) struct Refusals {
    hosts: usize,
    refused: BTreeSet<usize>,
    has_connected: bool,
}

impl Refusals {
    pub(crate) fn new(hosts: usize) -> Self {
        Self {
            hosts,
            refused: BTreeSet::new(),
            has_connected: false,
        }
    }

    pub(crate) fn connected(&mut self) {
        self.refused.clear();
        self.has_connected = true;
    }

    /// The attempt of a connection has failed. Returns what that means for callers.
    pub(crate) fn failed<O, U>(
        &mut self,
        now: Moment,
        connection: &mut Connection<O, U>,
        trouble: Trouble,
    ) -> Trouble {
        let host = connection.backoff.server;
        let cause = trouble.cause();
        if trouble.is_refusal() {
            connection.refused(now, &cause);
        } else {
            connection.failed(now, &cause);
        }
        self.judge(host, trouble)
    }

    /// What the failure of an attempt at the host of this number means for callers.
    fn judge(&mut self, host: usize, trouble: Trouble) -> Trouble {
        match trouble {
            Trouble::NotNow(_) => {
                self.refused.remove(&host);
                return trouble;
            }
            // The setting was right for the servers as they were: a failover may have changed them for a moment.
            Trouble::Invalid(_, cause) if self.has_connected => return Trouble::NotNow(cause),
            Trouble::Never(_) | Trouble::Invalid(..) => {}
        }
        self.refused.insert(host);
        if self.refused.len() < self.hosts {
            return Trouble::NotNow(trouble.cause());
        }
        trouble
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_final(trouble: &Trouble) -> bool {
        !matches!(trouble, Trouble::NotNow(_))
    }

    #[test]
    fn a_refusal_is_final_once_each_host_has_refused() {
        let never = || Trouble::never("wrong password");
        let mut one = Refusals::new(1);
        assert!(is_final(&one.judge(0, never())));
        let mut two = Refusals::new(2);
        assert!(!is_final(&two.judge(0, never())));
        assert!(!is_final(&two.judge(0, never())), "the same again");
        assert!(!is_final(&two.judge(1, Trouble::not_now("it is down"))));
        assert!(is_final(&two.judge(1, never())));
        assert!(!is_final(&two.judge(0, Trouble::not_now("it is down"))));
        assert!(!is_final(&two.judge(1, never())), "the other may serve");
        two.judge(0, never());
        two.connected();
        assert!(!is_final(&two.judge(0, never())));
    }

    #[test]
    fn a_setting_that_was_right_is_not_refused_later() {
        let invalid = || Trouble::invalid("replicas", "too few standbys");
        let mut refusals = Refusals::new(1);
        assert!(is_final(&refusals.judge(0, invalid())));
        refusals.connected();
        assert!(!is_final(&refusals.judge(0, invalid())));
        assert!(is_final(
            &refusals.judge(0, Trouble::never("wrong password"))
        ));
    }
}
