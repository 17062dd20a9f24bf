//! Measures the locks against a bare client and against other libraries, on a server of its own.

#[cfg(feature = "stores")]
mod aged;
mod alloc;
mod awake;
mod bars;
mod bench;
mod callgrind;
mod cases;
mod command;
mod cpu;
mod cycle;
mod fleet;
mod foreign;
mod hot;
#[cfg(feature = "mysql")]
mod mysql;
mod plot;
#[cfg(feature = "postgres")]
mod postgres;
mod report;
mod server;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod sql;
mod stages;
mod stats;
#[cfg(feature = "stores")]
mod stores;
mod systems;
mod watching;
mod worker;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Parser, Subcommand};

use crate::bench::Bench;
use crate::callgrind::How;

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

/// Measures the locks against a bare client and against other libraries.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the cases and prints the table.
    Run {
        /// A run of less than two minutes, for a first look.
        #[arg(long)]
        quick: bool,
        /// Only the cases whose names contain this.
        #[arg(long)]
        only: Option<String>,
    },
    /// Prints what one uncontended cycle costs each thread.
    Cycle,
    /// Prints what metrics and spans add to a cycle; with the feature `watching`, while somebody listens.
    Watching,
    /// Measures locks on ZooKeeper and etcd beside other libraries on the same servers, and prints the table.
    #[cfg(feature = "stores")]
    Stores {
        /// After how many cycles one lock on etcd is measured again.
        #[arg(long, default_value_t = 100_000)]
        aged: u32,
        /// Only this: zookeeper, etcd or aged.
        #[arg(long)]
        only: Option<String>,
    },
    /// Measures locks on PostgreSQL beside bare statements on the same server, and prints the table.
    #[cfg(feature = "postgres")]
    Postgres {
        /// Only this: cycles, hot or snapshot.
        #[arg(long)]
        only: Option<String>,
    },
    /// Measures locks on MySQL or MariaDB beside bare statements on the same server, and prints the table.
    #[cfg(feature = "mysql")]
    Mysql {
        /// Only this: cycles or hot.
        #[arg(long)]
        only: Option<String>,
    },
    /// Runs cycles and nothing else.
    #[command(hide = true)]
    Cycles { how: How, url: String, count: u64 },
    /// Does one piece of work as its standard input says.
    #[command(hide = true)]
    Worker,
}

fn main() {
    match Args::parse().command {
        Command::Run { quick, only } => run(quick, only.as_deref()),
        Command::Cycle => cycle::main(),
        Command::Watching => watching::main(),
        #[cfg(feature = "stores")]
        Command::Stores { aged, only } => stores::run(aged, only.as_deref()),
        #[cfg(feature = "postgres")]
        Command::Postgres { only } => postgres::measure(only.as_deref()),
        #[cfg(feature = "mysql")]
        Command::Mysql { only } => mysql::measure(only.as_deref()),
        Command::Cycles { how, url, count } => cycle::cycles(how, &url, count),
        Command::Worker => worker::main(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run(quick: bool, only: Option<&str>) {
    let started = Instant::now();
    let load_before = load();
    println!("load average {load_before}");
    let results = results();
    let mut bench = Bench::new(quick, results.clone()).await;
    cases::run(&mut bench, only).await;
    let seconds = started.elapsed().as_secs();
    let server = bench.server().await;
    let version = server::version(&server).await;
    bench
        .report
        .run
        .insert("server".into(), version.clone().into());
    let load_after = load();
    bench.report.run.insert(
        "load".into(),
        vec![load_before.clone(), load_after.clone()].into(),
    );
    bench.report.run.insert("cores".into(), cores().into());
    bench.report.run.insert("quick".into(), quick.into());
    bench.report.run.insert("seconds".into(), seconds.into());
    bench.report.print();
    let title = format!(
        "{} processors, {}, Redis {version}; {seconds} s; load average {load_before} before, {load_after} after.",
        cores(),
        std::env::consts::OS,
    );
    println!("{title}");
    let table = bench.report.markdown(&title);
    std::fs::write(results.join("table.md"), table).expect("a folder for the results");
    bench.report.write(&results.join("latest.json"));
    bars::draw(&bench.report, &results);
    println!(
        "{seconds} s; figures and plots are in {}",
        results.display()
    );
}

/// The load average over the last 1, 5 and 15 minutes, a measure of noise.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<_> = text.split_whitespace().take(3).collect();
    if averages.is_empty() {
        return "unknown".into();
    }
    averages.join(" ")
}

/// The number of CPUs.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The folder for results.
fn results() -> PathBuf {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    std::fs::create_dir_all(&results).expect("a folder for the results");
    results
}
