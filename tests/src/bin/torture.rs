//! `torture [--seconds N] [--network namespaces|proxies] [--store redis|sentinel|cluster|redlock] [PROFILE…]`: breaks things for
//! a while, checks what happened, and prints a table.

use std::{path::Path, process::ExitCode, time::Duration};

use tests::torture::{Medium, Outcome, Profile, RECOVERY, Servers, Setting, load, reach, torture};
use tokio::io::{AsyncReadExt, stdin};

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["load", locks, register, directory] => {
            // Its parent's end is the end of its standard input.
            let mut rest = Vec::new();
            let mut input = stdin();
            tokio::select! {
                () = load(locks, register, Path::new(directory)) => {}
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
    servers: Servers,
    profiles: Vec<&'a str>,
}

impl<'a> Wish<'a> {
    fn read(words: &[&'a str]) -> Self {
        let mut wish = Self {
            time: Duration::from_secs(60),
            medium: None,
            servers: Servers::Redis,
            profiles: Vec::new(),
        };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "--seconds" => {
                    let seconds = words.next().and_then(|it| it.parse().ok());
                    wish.time = Duration::from_secs(seconds.expect("a number of seconds"));
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
                    let known = Servers::ALL.iter().find(|(known, _)| *known == name);
                    wish.servers = known.unwrap_or_else(|| panic!("no such store: {name}")).1;
                }
                profile => wish.profiles.push(profile),
            }
        }
        wish
    }

    fn includes(&self, name: &str, profile: Profile) -> bool {
        let wished = self.profiles.is_empty() || self.profiles.contains(&name);
        wished && profile.suits(self.servers)
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
    let setting = Setting {
        servers: wish.servers,
        medium: match wish.servers {
            Servers::Redis => network(wish.medium, &program),
            _ => Medium::Proxies,
        },
        program,
    };
    println!(
        "{:<18} {:>7} {:>8} {:>7} {:>6} {:>7} {:>9}  faults",
        "profile", "grants", "a second", "losses", "stale", "doubles", "recovery"
    );
    let mut failed = false;
    for (name, profile) in Profile::ALL {
        if !wish.includes(name, profile) {
            continue;
        }
        let outcome = torture(profile, &setting, wish.time).await;
        print(name, &outcome);
        for complaint in complaints(profile, &outcome, wish) {
            println!("  {complaint}");
            failed = true;
        }
    }
    ExitCode::from(u8::from(failed))
}

fn print(name: &str, outcome: &Outcome) {
    let Outcome {
        report,
        chains,
        faults,
    } = outcome;
    let faults: Vec<_> = faults
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    println!(
        "{name:<18} {:>7} {:>8.0} {:>7} {:>6} {:>7} {:>6} ms  {}",
        report.grants,
        f64::from(u32::try_from(report.grants).unwrap_or(u32::MAX)) / report.lasted.as_secs_f64(),
        report.losses,
        report.stale,
        report.overlaps,
        report.recovery.as_millis(),
        faults.join(", ")
    );
    println!("{:<18} {chains}", "");
}

/// What is wrong with a run, also if it has shown too little.
fn complaints(profile: Profile, outcome: &Outcome, wish: &Wish<'_>) -> Vec<String> {
    let Outcome { report, chains, .. } = outcome;
    let mut complaints: Vec<_> = report.violations.iter().take(10).cloned().collect();
    if report.recovery > RECOVERY {
        complaints.push(format!("a key stood still for {:?}", report.recovery));
    }
    // A short run has few, or none if it is very short.
    let share = (wish.time.as_secs_f64().min(60.0) / 60.0).powi(2);
    let passed_on = if wish.servers.chain() { 500.0 } else { 0.0 };
    for (what, count, least) in [
        ("grants", report.grants, 10_000.0),
        ("losses", report.losses, profile.losses(wish.servers)),
        ("hand-overs in chains", chains.entered, passed_on),
    ] {
        #[allow(clippy::cast_precision_loss, reason = "counts are small")]
        if (count as f64) < (least * share).floor() {
            complaints.push(format!("only {count} {what}: the run shows nothing"));
        }
    }
    complaints
}
