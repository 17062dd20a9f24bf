//! `failovers [COUNT]`: replaces masters and moves slots that often while locks are taken, and prints what came of it.

use std::process::ExitCode;

use tests::{
    failovers::{move_slots, replace_masters},
    torture::{Protection, Servers},
};

#[tokio::main]
async fn main() -> ExitCode {
    let count = std::env::args().nth(1);
    let count = count.map_or(60, |count| count.parse().expect("a number"));
    let mut failed = false;
    for (store, servers) in [
        ("sentinel", Servers::Sentinel),
        ("cluster", Servers::Cluster),
    ] {
        for (protected, protection, failovers) in [
            ("by nothing", Protection::None, count),
            ("by replicas", Protection::Replicas, count),
            ("by quarantine", Protection::Quarantine, count * 2 / 3),
        ] {
            let seen = replace_masters(servers, protection, failovers).await;
            println!(
                "{store:<9} {failovers} failovers, protected {protected}: {} grants, {} granted again, {} of them too \
                 early, in {} failovers",
                seen.granted, seen.again, seen.doubles, seen.harmful
            );
            failed |= protection != Protection::None && seen.doubles > 0;
        }
    }
    let moved = move_slots(count * 2 / 3).await;
    println!(
        "{} slots moved with {} keys, under {} grants",
        moved.moves, moved.keys, moved.grants
    );
    for violation in &moved.violations {
        println!("  {violation}");
        failed = true;
    }
    ExitCode::from(u8::from(failed))
}
