//! Servers with small buffers and few streams, and ways that carry few bytes at once or break at large messages.

use std::time::Duration;

use tokio::time::sleep;

use super::{crew::Crew, fault::about, messages::Message};
use crate::Verdict;

/// What servers of Redis allow their clients at the least.
pub(super) const OPTIONS: &[(&str, &str)] = &[
    (
        "client-output-buffer-limit",
        "normal 256kb 64kb 1\nclient-output-buffer-limit pubsub 32kb 8kb 1",
    ),
    ("client-query-buffer-limit", "1mb"),
    ("proto-max-bulk-len", "1mb"),
];

/// How many tasks more each process has, so that there are more calls than streams.
pub(super) const TASKS: usize = 100;

/// Does something to the ways of some processes for a while.
pub(super) async fn strike(crew: &mut Crew) -> &'static str {
    let way = crew.ways[fastrand::usize(..crew.ways.len())].proxies();
    let time = about(crew.servers.ttl());
    match fastrand::u8(..4) {
        0 => {
            let from_server = fastrand::bool();
            let most = fastrand::usize(256..4096);
            let trap = way.trap(from_server);
            trap.arm(Message::longer(from_server, most), Verdict::BreakBefore);
            sleep(time).await;
            trap.disarm();
            "large messages refused"
        }
        1 => {
            // Everybody comes back at once, with all watches and nodes.
            way.cut().await;
            sleep(Duration::from_millis(100)).await;
            "connections cut"
        }
        _ => {
            way.piecemeal(Some(fastrand::usize(32..512)));
            if fastrand::bool() {
                way.cut().await;
            }
            sleep(time).await;
            way.piecemeal(None);
            "ways with small packets"
        }
    }
}
