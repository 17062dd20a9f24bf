//! Wall clocks of servers that step back, which ends no lease early; and forward, after all leases have ended, or before.

use std::time::Duration;

use tokio::time::sleep;

use super::{crew::Crew, fault::about_a_lease, store::Store};

/// The longest steps: servers with peers take each other for dead after a minute.
const FAR: Duration = Duration::from_secs(3 * 3600);
const NEAR: Duration = Duration::from_secs(20);
/// Databases keep the rows of unused locks, and so their fences, for an hour, and two steps go as far.
const KEPT: Duration = Duration::from_secs(25 * 60);
/// Longer than any lease.
const HOUR: Duration = Duration::from_secs(3600);

/// Lets some clocks step back, or all of them forth.
pub(super) async fn strike(crew: &mut Crew) -> &'static str {
    let clocks = crew.store.clocks();
    if clocks == 0 {
        sleep(about_a_lease()).await;
        return "clocks that cannot be moved";
    }
    let longest = longest(&crew.store);
    crew.ahead.resize(clocks, Duration::ZERO);
    if crew.ahead.contains(&Duration::ZERO) {
        // Leases that end early belong to nobody then: every process has stood still for longer than they are.
        for worker in &crew.workers {
            worker.pause();
        }
        sleep(2 * crew.servers.ttl()).await;
        let ahead = longest.mul_f64(1.0 + fastrand::f64());
        for number in 0..clocks {
            crew.store.set_clock(number, ahead).await;
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
    for (number, ahead) in crew.ahead.iter_mut().enumerate() {
        if all || fastrand::bool() {
            *ahead = ahead.saturating_sub(step);
            crew.store.set_clock(number, *ahead).await;
        }
    }
    sleep(about_a_lease()).await;
    "steps back"
}

/// The longest step of this store's clocks. None is ever further ahead than two of them.
fn longest(store: &Store) -> Duration {
    match store {
        Store::Redis(site) if site.has_peers(0) => NEAR,
        Store::Postgres(_) | Store::Mysql(_) => KEPT,
        _ => FAR,
    }
}

/// Brings clocks that were moved ahead of where they have ever been: leases that were given before a step back end late.
pub(super) async fn overtake(crew: &mut Crew) {
    let latest = 2 * longest(&crew.store) + 2 * crew.servers.ttl();
    for (number, ahead) in crew.ahead.iter_mut().enumerate() {
        *ahead = latest.max(*ahead + 2 * crew.servers.ttl());
        crew.store.set_clock(number, *ahead).await;
    }
}

/// Lets the clock jump forward while locks are held, whose leases end thereby.
pub(super) async fn jump(crew: &mut Crew) -> &'static str {
    let clocks = crew.store.clocks();
    sleep(about_a_lease()).await;
    if clocks == 0 {
        return "clocks that cannot be moved";
    }
    crew.ahead.resize(clocks, Duration::ZERO);
    for (number, ahead) in crew.ahead.iter_mut().enumerate() {
        *ahead += HOUR;
        crew.store.set_clock(number, *ahead).await;
    }
    "jumps forward"
}
