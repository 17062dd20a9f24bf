//! `failovers [COUNT] [sentinel|cluster|slots…] [none|replicas|quarantine…]`: replaces masters and moves slots that often
//! while locks are taken, and prints what came of it.

use std::process::ExitCode;

use tests::{
    failovers::{move_slots, replace_masters},
    torture::{Protection, Servers},
};

/// Its name, what it is, and how many of sixty failovers there are.
type Series = (&'static str, Protection, usize);

/// What is done, by the names that the command line knows.
const STORES: [(&str, Servers, &[Series]); 2] = [
    (
        "sentinel",
        Servers::Sentinel,
        &[
            ("none", Protection::None, 60),
            ("replicas", Protection::Replicas, 60),
            ("quarantine", Protection::Quarantine, 40),
        ],
    ),
    (
        "cluster",
        Servers::Cluster,
        &[
            ("none", Protection::None, 60),
            ("replicas", Protection::Replicas, 60),
            ("quarantine", Protection::Quarantine, 40),
        ],
    ),
];

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (numbers, wished): (Vec<_>, Vec<_>) =
        words.iter().partition(|it| it.parse::<usize>().is_ok());
    let count: usize = numbers
        .first()
        .map_or(60, |it| it.parse().expect("a number"));
    // Of the stores, and of the protections: those that are named, or all.
    let stores = ["sentinel", "cluster", "slots"];
    let (stores, protections): (Vec<_>, Vec<_>) =
        wished.iter().partition(|it| stores.contains(&it.as_str()));
    let includes = |wished: &[&&String], name: &str| {
        wished.is_empty() || wished.iter().any(|it| it.as_str() == name)
    };
    let mut failed = false;
    for (store, servers, series) in STORES.iter().filter(|(name, ..)| includes(&stores, name)) {
        for (name, protection, sixtieths) in *series {
            if !includes(&protections, name) {
                continue;
            }
            let seen = replace_masters(*servers, *protection, count * sixtieths / 60).await;
            println!(
                "{store}, protection {name}: {} failovers, {} locks granted, {} granted again, {} of them too early \
                 (in {} failovers)",
                seen.failovers, seen.granted, seen.again, seen.doubles, seen.harmful
            );
            failed |= *protection != Protection::None && seen.doubles > 0;
        }
    }
    if includes(&stores, "slots") {
        let seen = move_slots(count * 40 / 60).await;
        println!(
            "{} slots moved with {} keys, under {} grants",
            seen.moves, seen.keys, seen.grants
        );
        for violation in &seen.violations {
            println!("  {violation}");
            failed = true;
        }
    }
    ExitCode::from(u8::from(failed))
}
