//! Gathers the facts on which locks depend: asks each member over a connection of its own.

use std::sync::Arc;
use std::time::Duration;

use super::findings::{Facts, Seen, findings};
use super::protocol::keys::Keys;
use super::protocol::messages::{DeleteRangeRequest, DeleteRangeResponse};
use super::protocol::trouble::Trouble;
use super::transport::dial::{DELETE_RANGE, Dialer, Opened};
use crate::backend::transport::backoff::first_attempt;
use crate::base::clock::Clock;
use crate::types::error::Cause;
use crate::types::finding::Finding;

/// How many writes are measured.
const PROBES: usize = 5;
const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// Asks the members that are named.
pub(super) async fn diagnose(
    dialers: Vec<Dialer>,
    keys: Arc<Keys>,
    clock: Clock,
) -> Result<Vec<Finding>, Cause> {
    let mut facts = Facts::default();
    let mut open = None;
    for dialer in dialers {
        let host = dialer.route.endpoint.to_string();
        let timeout = first_attempt(dialer.connect_timeout);
        let seen = match dialer.open(timeout).await {
            Ok(opened) => {
                facts.cluster = Some(opened.cluster());
                match &opened.members {
                    Ok(members) => facts.members.clone_from(members),
                    Err(why) => facts.members_denied = Some(why.to_string()),
                }
                let status = opened.status.clone();
                open.get_or_insert(opened);
                Ok(status.map_err(|why| why.to_string()))
            }
            Err(trouble) => Err(trouble.cause().to_string()),
        };
        facts.seen.push(Seen { host, status: seen });
    }
    if let Some(opened) = open {
        match probe(opened, &keys, &clock).await {
            Ok(times) => facts.times = times,
            Err(trouble) => facts.refused = Some(trouble.cause().to_string()),
        }
    }
    Ok(findings(facts))
}

/// How long writes take that change nothing, and need the rights that locks do.
async fn probe(mut opened: Opened, keys: &Keys, clock: &Clock) -> Result<Vec<Duration>, Trouble> {
    let nothing = DeleteRangeRequest {
        key: keys.nothing(),
    };
    let mut times = Vec::new();
    for _ in 0..PROBES {
        let sent = clock.now();
        let asked = opened
            .channel
            .ask::<DeleteRangeResponse>(DELETE_RANGE, &nothing);
        let answer = tokio::time::timeout(CALL_TIMEOUT, asked).await;
        answer.map_err(|_| Trouble::said("the member did not answer in time"))??;
        times.push(clock.now().since(sent));
    }
    Ok(times)
}
