//! A leader that is cut off together with some of its clients: those reach nobody else, and others do not reach it.

use tokio::time::sleep;

use super::{Profile, Protection, crew::Crew, fault::about};

/// Cuts, has another one lead, and joins again.
pub(super) async fn strike(crew: &mut Crew) -> &'static str {
    let ttl = crew.servers.ttl();
    let inside = fastrand::usize(..crew.ways.len());
    let fleet = crew.store.fleet();
    let leader = fleet.leader().await;
    let few = fleet.minority(leader);
    let all = fleet.addresses().len();
    let many: Vec<_> = (0..all).filter(|it| !few.contains(it)).collect();
    // At any time of a renewal's period.
    sleep(ttl.mul_f64(fastrand::f64())).await;
    for (number, way) in crew.ways.iter().enumerate() {
        let side = if number == inside { &few } else { &many };
        way.proxies().lead_to(side);
        if fastrand::bool() {
            // Clients look for a server at once, and not when they find that theirs is silent.
            way.proxies().cut().await;
        }
    }
    let fleet = crew.store.fleet();
    fleet.cut_off(&few).await;
    fleet.replace(leader).await;
    // With the leader, a replica is missing that has to confirm each grant.
    let serves = crew.profile != Profile::CutOff(Protection::Replicas);
    if serves && fastrand::u8(..3) == 0 {
        let outside = (0..crew.ways.len()).filter(|it| *it != inside);
        let processes = outside.flat_map(|it| crew.processes(it)).collect();
        let fault = "others than their servers were cut off";
        crew.serve(processes, fault).await;
    } else {
        sleep(about(2 * ttl)).await;
    }
    for way in &crew.ways {
        if fastrand::bool() {
            // What was sent meanwhile is lost, else it comes late.
            way.proxies().cut().await;
        }
        way.proxies().pass();
    }
    crew.store.fleet().rejoin(&few).await;
    crew.settle().await;
    "leaders cut off with their clients"
}
