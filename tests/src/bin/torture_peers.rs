//! `torture_peers [SECONDS [LIBRARY]]`: tortures this project's locks and those of other libraries under the same work, with
//! processes and servers that stop, and prints a table in Markdown.

use std::{path::Path, process::ExitCode, time::Duration};

use tests::torture::{Library, Medium, Profile, Setting, torture, work};
use tokio::io::{AsyncReadExt, stdin};

const PROFILES: [Profile; 2] = [Profile::Clients, Profile::Server];

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["work", url, directory, ttl, ..] => {
            let ttl = Duration::from_millis(ttl.parse().expect("milliseconds"));
            // Its parent's end is the end of its standard input.
            let mut rest = Vec::new();
            let mut input = stdin();
            tokio::select! {
                () = work(url, Path::new(directory), ttl) => {}
                _ = input.read_to_end(&mut rest) => {}
            }
            ExitCode::SUCCESS
        }
        [] => compare(60, "").await,
        [seconds, only @ ..] if only.len() < 2 => {
            let seconds = seconds.parse().expect("a number of seconds");
            compare(seconds, only.first().unwrap_or(&"")).await
        }
        _ => panic!("usage: torture_peers [SECONDS [LIBRARY]]"),
    }
}

/// Tortures the libraries whose names contain `only`.
async fn compare(seconds: u64, only: &str) -> ExitCode {
    let program = std::env::current_exe().expect("this program has a path");
    let mut failed = false;
    println!("| | failures | grants | overlaps | longest wait | left behind |");
    println!("|---|---|---|---|---|---|");
    let wanted = Library::ALL.iter().filter(|(name, ..)| name.contains(only));
    for (name, library, servers) in wanted.filter(|(_, it, _)| it.is_installed()) {
        for profile in PROFILES {
            let setting = Setting {
                servers: *servers,
                medium: Medium::Proxies,
                program: program.to_string_lossy().into_owned(),
                library: Some(*library),
            };
            let outcome = torture(profile, &setting, Duration::from_secs(seconds)).await;
            let report = &outcome.report;
            println!(
                "| {name} | {} | {} | {} | {} ms | {} |",
                profile.name(),
                report.grants,
                report.overlaps,
                report.wait.as_millis(),
                report.left_behind,
            );
            for violation in outcome.found(*servers) {
                eprintln!("  {violation}");
                failed |= *library == Library::Ours;
            }
        }
    }
    ExitCode::from(u8::from(failed))
}
