//! A clean build of each library: time and number of packages. Only in a full run.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use crate::bench::Bench;
use crate::command;
use crate::report::{Row, Unit};
use crate::systems::System;

/// The most seconds for one build, if that many are left.
const SECONDS: u64 = 100;

/// A library as a dependency.
struct Library {
    system: System,
    line: &'static str,
}

const LIBRARIES: [Library; 5] = [
    Library {
        system: System::Ours,
        line: "lock-runtime = { path = \"@/lock-runtime\" }",
    },
    Library {
        system: System::Rslock,
        line: "rslock = { version = \"0.10\", features = [\"tokio-comp\"] }",
    },
    Library {
        system: System::Rlock,
        line: "rlock = \"0.2\"",
    },
    Library {
        system: System::AsyncRedisLock,
        line: "async-redis-lock = \"0.4\"",
    },
    Library {
        system: System::DistributedLock,
        line: "distributed-lock-redis = \"0.2\"",
    },
];

pub(super) async fn run(bench: &mut Bench) {
    if bench.quick {
        return;
    }
    let mut figures = Vec::new();
    for library in LIBRARIES {
        let seconds = bench.seconds_left().clamp(1, SECONDS);
        match library.build(seconds).await {
            Ok(figure) => figures.push((library.system, figure)),
            Err(reason) => bench
                .report
                .notice(format!("{} was not built: {reason}", library.system)),
        }
    }
    let Some((System::Ours, ours)) = figures.first().copied() else {
        return;
    };
    let mut time = Row::new(
        "cold start",
        "debug build from nothing",
        Unit::Nanoseconds,
        ours.0,
    );
    let mut packages = Row::new(
        "cold start",
        "packages that it depends on",
        Unit::Plain,
        ours.1,
    );
    for (system, figure) in &figures[1..] {
        time = time.beside(system, figure.0);
        packages = packages.beside(system, figure.1);
    }
    bench.report.add(time);
    bench.report.add(packages);
}

impl Library {
    /// How long it takes, in ns, and how many packages that is.
    async fn build(&self, seconds: u64) -> Result<(f64, f64), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let package = folder.path();
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let manifest = format!(
            "[package]\nname = \"build\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{}\n",
            self.line.replace('@', root)
        );
        write(&package.join("Cargo.toml"), &manifest)?;
        write(&package.join("src/lib.rs"), "")?;
        let cargo = async |args: &[&str]| command::run(seconds, package, "cargo", args).await;
        cargo(&["fetch", "--quiet"]).await?;
        let started = Instant::now();
        cargo(&["build", "--quiet", "--offline"]).await?;
        let took = started.elapsed().as_nanos() as f64;
        let shown = ["--edges", "normal,build", "--prefix", "none"];
        let tree = cargo(&[&["tree", "--offline"], &shown[..]].concat()).await?;
        let name = |line: &str| line.split(" (").next().map(str::to_owned);
        let packages: BTreeSet<_> = tree.lines().filter_map(name).collect();
        Ok((took, packages.len() as f64 - 1.0))
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}
