//! `torture [--seconds N | --quick] [--network namespaces|proxies] [--store STORE|all] [PROFILE…]`: breaks things for a
//! while, checks what happened, and prints a table. `--quick` is 10 s of each of the profiles that have always been there.

use std::{path::Path, process::ExitCode, time::Duration};

use tests::torture::{Medium, Outcome, Profile, Servers, Setting, load, reach, torture};
use tokio::io::{AsyncReadExt, stdin};

// Bodies stay in a poll for a while, and others go on.
#[tokio::main(worker_threads = 16)]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["load", store, locks, register, directory, profile] => {
            let servers = Servers::named(store).expect("a store");
            let profile = Profile::named(profile).expect("a profile");
            // Its parent's end is the end of its standard input.
            let mut rest = Vec::new();
            let mut input = stdin();
            tokio::select! {
                () = load(servers, locks, register, Path::new(directory), profile) => {}
                _ = input.read_to_end(&mut rest) => {}
            }
            ExitCode::SUCCESS
        }
        ["reach", address] => ExitCode::from(u8::from(!reach(address))),
        words => run(&Wish::read(words)).await,
    }
}

/// What the command line asks for.
struct Wish<'a> {
    time: Duration,
    medium: Option<Medium>,
    servers: Vec<Servers>,
    standard: bool,
    profiles: Vec<&'a str>,
}

impl<'a> Wish<'a> {
    fn read(words: &[&'a str]) -> Self {
        let mut wish = Self {
            time: Duration::from_secs(60),
            medium: None,
            servers: vec![Servers::Redis],
            standard: false,
            profiles: Vec::new(),
        };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "--seconds" => {
                    let seconds = words.next().and_then(|it| it.parse().ok());
                    wish.time = Duration::from_secs(seconds.expect("a number of seconds"));
                }
                "--quick" => {
                    wish.time = Duration::from_secs(10);
                    wish.standard = true;
                }
                "--network" => {
                    wish.medium = Some(match words.next() {
                        Some("namespaces") => Medium::Namespaces,
                        Some("proxies") => Medium::Proxies,
                        other => panic!("no such network: {other:?}"),
                    });
                }
                "--store" => {
                    let name = words.next().unwrap_or_default();
                    let known = Servers::ALL.iter().map(|(_, servers)| *servers);
                    wish.servers = match Servers::named(name) {
                        Some(servers) => vec![servers],
                        None if name == "all" => known.collect(),
                        None => panic!("no such store: {name}"),
                    };
                }
                name => {
                    assert!(Profile::named(name).is_some(), "no such profile: {name}");
                    wish.profiles.push(name);
                }
            }
        }
        wish
    }

    fn includes(&self, name: &str, profile: Profile, servers: Servers) -> bool {
        let wished = if self.profiles.is_empty() {
            profile.is_standard() || !self.standard
        } else {
            self.profiles.contains(&name)
        };
        wished && profile.suits(servers)
    }
}

/// Namespaces where they can be made, unless proxies are wished for; says which.
fn network(wish: Option<Medium>, program: &str) -> Medium {
    if wish == Some(Medium::Proxies) {
        println!("network: TCP proxies");
        return Medium::Proxies;
    }
    match Medium::probe(program) {
        Ok(medium) => {
            println!("network: namespaces, each with a cable that loses packets");
            medium
        }
        Err(error) if wish.is_none() => {
            println!("network: TCP proxies, since namespaces cannot be had ({error})");
            Medium::Proxies
        }
        Err(error) => panic!("namespaces cannot be had: {error}"),
    }
}

async fn run(wish: &Wish<'_>) -> ExitCode {
    let program = std::env::current_exe().expect("this program has a path");
    let program = program.to_string_lossy().into_owned();
    let medium = if wish.servers.contains(&Servers::Redis) {
        network(wish.medium, &program)
    } else {
        Medium::Proxies
    };
    println!(
        "{:<30} {:>7} {:>8} {:>7} {:>6} {:>8} {:>8} {:>7} {:>6} {:>10}  faults",
        "store, profile",
        "grants",
        "a second",
        "losses",
        "stale",
        "overlaps",
        "overlong",
        "smaller",
        "behind",
        "recovery"
    );
    let mut failed = false;
    for servers in &wish.servers {
        let setting = Setting {
            servers: *servers,
            medium,
            program: program.clone(),
        };
        for (name, profile) in Profile::ALL {
            if !wish.includes(name, profile, *servers) {
                continue;
            }
            let outcome = torture(profile, &setting, wish.time).await;
            print(*servers, name, &outcome);
            for complaint in complaints(profile, *servers, &outcome, wish.time) {
                println!("  {complaint}");
                failed = true;
            }
        }
    }
    ExitCode::from(u8::from(failed))
}

fn print(servers: Servers, name: &str, outcome: &Outcome) {
    let Outcome {
        report,
        chains,
        faults,
        ..
    } = outcome;
    let faults: Vec<_> = faults
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    println!(
        "{:<30} {:>7} {:>8.0} {:>7} {:>6} {:>8} {:>8} {:>7} {:>6} {:>7} ms  {}",
        format!("{}, {name}", servers.name()),
        report.grants,
        f64::from(u32::try_from(report.grants).unwrap_or(u32::MAX)) / report.lasted.as_secs_f64(),
        report.losses,
        report.stale,
        report.overlaps,
        report.overlong,
        report.fences,
        report.left_behind,
        report.recovery.as_millis(),
        faults.join(", ")
    );
    if servers.chain() {
        println!("{:<30} {chains}", "");
    }
}

/// What is wrong with a run, also if it has shown too little.
fn complaints(
    profile: Profile,
    servers: Servers,
    outcome: &Outcome,
    time: Duration,
) -> Vec<String> {
    let Outcome { report, chains, .. } = outcome;
    let mut complaints: Vec<_> = report.violations.iter().take(10).cloned().collect();
    if report.violations.len() > complaints.len() {
        let more = report.violations.len() - complaints.len();
        complaints.push(format!("and {more} more like these"));
    }
    // A machine that is late itself makes everything late that needs several turns of several processes.
    if report.recovery > servers.recovery() + 20 * outcome.lateness {
        complaints.push(format!("a key stood still for {:?}", report.recovery));
    }
    // A short run has few, or none if it is very short.
    let share = (time.as_secs_f64().min(60.0) / 60.0).powi(2);
    for (what, count, least) in [
        ("grants", report.grants, profile.grants(servers)),
        ("losses", report.losses, profile.losses(servers)),
        (
            "hand-overs in chains",
            chains.entered,
            profile.hand_overs(servers),
        ),
    ] {
        #[allow(clippy::cast_precision_loss, reason = "counts are small")]
        if (count as f64) < (least * share).floor() {
            complaints.push(format!("only {count} {what}: the run shows nothing"));
        }
    }
    complaints
}
