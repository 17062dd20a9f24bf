//! Gathers what the locks depend on: asks each server by words of four letters, and the
//! ensemble by way of the session.

use std::time::Duration;

use super::call::cause;
use super::findings::{Facts, Server, findings};
use super::inspect::{Inspector, answer};
use super::protocol::op::{ANY, Op};
use super::protocol::reply::{Reply, Trouble};
use super::transport::Dialer;
use crate::types::error::Cause;
use crate::types::finding::Finding;

/// How many writes are measured.
const PROBES: usize = 5;
/// The node in which the ensemble lists its servers.
const CONFIGURATION: &str = "/zookeeper/config";

/// The session of this manager.
pub(super) struct Ours {
    /// The path of its node, which tells the server's time when it is written.
    pub(super) node: String,
    pub(super) timeout: Duration,
}

impl Inspector {
    /// Asks the servers that are named.
    pub(super) async fn diagnose(
        self,
        dialer: Dialer,
        ours: Option<Ours>,
    ) -> Result<Vec<Finding>, Cause> {
        let Some(ours) = ours else {
            return Err(cause(Trouble::SessionOver));
        };
        let mut facts = Facts::new(dialer.session_timeout(), ours.timeout);
        for _ in 0..PROBES {
            let (path, data) = (ours.node.clone(), Vec::new());
            let sent = self.clock.now();
            answer(self.ask(Op::Write {
                path,
                data,
                version: ANY,
            }))
            .await?
            .map_err(cause)?;
            facts.times.push(self.clock.now().since(sent));
        }
        let (path, watch) = (CONFIGURATION.to_owned(), false);
        if let Ok(Reply::Data { data, .. }) = answer(self.ask(Op::Read { path, watch })).await? {
            facts.configuration = String::from_utf8_lossy(&data).into_owned();
        }
        let states = dialer.say("srvr").await;
        let settings = dialer.say("conf").await;
        for ((host, state), (_, settings)) in states.into_iter().zip(settings) {
            facts.servers.push(Server {
                host,
                state: state.map_err(|it| it.to_string()),
                settings: settings.unwrap_or_default(),
            });
        }
        Ok(findings(facts))
    }
}
