//! Wall clocks of servers that step back, which ends no lease early; and forth, when every lease has ended.

use std::time::Duration;

use tokio::time::sleep;

use super::{crew::Crew, fault::about_a_lease};

/// The longest steps: servers with peers take each other for dead after a minute.
const FAR: Duration = Duration::from_secs(3 * 3600);
const NEAR: Duration = Duration::from_secs(20);

/// Lets some clocks step back, or all of them forth.
pub(super) async fn strike(crew: &mut Crew) -> &'static str {
    let site = crew.store.redis();
    if !site.nodes().iter().all(crate::RedisServer::has_clock) {
        sleep(about_a_lease()).await;
        return "clocks that cannot be moved";
    }
    let longest = if site.has_peers(0) { NEAR } else { FAR };
    crew.ahead.resize(site.nodes().len(), Duration::ZERO);
    if crew.ahead.contains(&Duration::ZERO) {
        // Leases that end early belong to nobody then: every process has stood still for longer than they are.
        for worker in &crew.workers {
            worker.pause();
        }
        sleep(2 * crew.servers.ttl()).await;
        let ahead = longest.mul_f64(1.0 + fastrand::f64());
        for node in crew.store.redis().nodes() {
            node.set_clock(ahead).await;
        }
        crew.ahead.fill(ahead);
        for worker in &crew.workers {
            worker.resume();
        }
        return "steps forth";
    }
    let all = fastrand::bool();
    // Short ones are as interesting as long ones.
    let step = longest.mul_f64(fastrand::f64().powi(6));
    for (node, ahead) in site.nodes().iter().zip(&mut crew.ahead) {
        if all || fastrand::bool() {
            *ahead = ahead.saturating_sub(step);
            node.set_clock(*ahead).await;
        }
    }
    sleep(about_a_lease()).await;
    "steps back"
}
