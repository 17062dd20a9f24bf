//! `torture [--seconds N | --quick] [--network namespaces|proxies] [--store STORE|all] [--grants N] [PROFILE…]`: breaks
//! things for a while, checks what happened, and prints a table. `--quick` is 10 s of each of the profiles that have
//! always been there. `--grants N` goes on until so many grants of each store were checked (adoptions, of the
//! profile `tickets`), and fills in `docs/tested.md`.

use std::{fs, io, path::Path, process::ExitCode, time::Duration};

use tests::{
    HistoryVerdict,
    documents::repository::{read, root},
    torture::{
        Medium, Outcome, PAGE, Profile, Row, Servers, Setting, Soak, load, reach, revision, today,
        torture, with_rows,
    },
};
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
    grants: Option<usize>,
    standard: bool,
    profiles: Vec<&'a str>,
}

impl<'a> Wish<'a> {
    fn read(words: &[&'a str]) -> Self {
        let mut wish = Self {
            time: Duration::from_secs(60),
            medium: None,
            servers: vec![Servers::Redis],
            grants: None,
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
                "--grants" => {
                    let grants = words.next().and_then(|it| it.parse().ok());
                    wish.grants = Some(grants.expect("a number of grants"));
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

    /// The profiles that are wished for and suit such servers.
    fn profiles(&self, servers: Servers) -> Vec<Profile> {
        let wished = |name: &str, profile: Profile| match self.profiles.as_slice() {
            [] => profile.is_standard() || !self.standard,
            wished => wished.contains(&name),
        };
        let all = Profile::ALL.into_iter();
        let suitable = all.filter(|(name, it)| wished(name, *it) && it.suits(servers));
        suitable.map(|(_, profile)| profile).collect()
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
        "{:<30} {:>7} {:>8} {:>7} {:>7} {:>6} {:>8} {:>8} {:>7} {:>6} {:>10}  faults",
        "store, profile",
        "grants",
        "a second",
        "adopted",
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
            library: None,
        };
        if let Some(grants) = wish.grants {
            let soaked = soak(wish, &setting, grants).await;
            failed |= soaked.expect("rounds can be noted") > 0;
            continue;
        }
        for profile in wish.profiles(*servers) {
            let outcome = torture(profile, &setting, wish.time).await;
            failed |= !print(profile, *servers, &outcome, wish.time);
        }
    }
    ExitCode::from(u8::from(failed))
}

/// How many rounds of a soak may have had too few grants or losses. They do not count.
const MOST_IN_VAIN: usize = 10;

/// Tortures until so many grants were checked, fills in the page, and counts what must not be.
async fn soak(wish: &Wish<'_>, setting: &Setting, grants: usize) -> io::Result<usize> {
    let servers = setting.servers;
    let commit = revision(servers)?;
    let folder = root().join("target/soak");
    let profiles = wish.profiles(servers);
    let mut soak = Soak::open(&folder, servers, &commit, profiles, grants)?;
    fill_in(&soak, servers, &commit)?;
    let mut in_vain = 0;
    while let Some(profile) = soak.due() {
        let outcome = torture(profile, setting, wish.time).await;
        print(profile, servers, &outcome, wish.time);
        let shows_nothing = !outcome.lacks(profile, servers, wish.time).is_empty();
        if shows_nothing && outcome.findings(servers) == 0 {
            in_vain += 1;
            assert!(in_vain < MOST_IN_VAIN, "rounds show too little");
            continue;
        }
        soak.note(profile, &outcome, &today()?)?;
        fill_in(&soak, servers, &commit)?;
    }
    Ok(soak.tallies().map(|(_, tally)| tally.findings).sum())
}

/// Writes what a soak has shown into the page.
fn fill_in(soak: &Soak, servers: Servers, commit: &str) -> io::Result<()> {
    let row = |(profile, tally)| Row {
        servers,
        profile,
        commit,
        tally,
    };
    let rows: Vec<_> = soak.tallies().map(row).collect();
    fs::write(root().join(PAGE), with_rows(&read(PAGE), &rows))
}

/// Prints what a run has shown, and whether all is well.
fn print(profile: Profile, servers: Servers, outcome: &Outcome, time: Duration) -> bool {
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
        "{:<30} {:>7} {:>8.0} {:>7} {:>7} {:>6} {:>8} {:>8} {:>7} {:>6} {:>7} ms  {}",
        format!("{}, {}", servers.name(), profile.name()),
        report.grants,
        f64::from(u32::try_from(report.grants).unwrap_or(u32::MAX)) / report.lasted.as_secs_f64(),
        report.adoptions,
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
    if let Some(model) = &outcome.model {
        let HistoryVerdict {
            accepted, outside, ..
        } = model;
        println!(
            "{:<30} the model accepts {accepted} steps, and {outside} were left out",
            ""
        );
    }
    let lacks = outcome.lacks(profile, servers, time);
    let complaints = [outcome.found(servers), lacks].concat();
    for complaint in &complaints {
        println!("  {complaint}");
    }
    complaints.is_empty()
}
