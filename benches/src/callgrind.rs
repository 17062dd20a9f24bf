//! Counts instructions, thread by thread, with valgrind's callgrind.

use clap::ValueEnum;

use crate::command::{self, own_program};
use crate::stages::{self, Stages};

/// How long one count may take.
const SECONDS: u64 = 120;

/// What a cycle is made of.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum How {
    /// A function with the attribute.
    Attribute,
    /// The same calls by hand.
    Calls,
    /// Take and confirmed release.
    Confirmed,
    /// The same by the ceiling.
    Ceiling,
    /// A function with the attribute, while metrics are counted.
    #[cfg(feature = "watching")]
    Metrics,
    /// The same while spans are written.
    #[cfg(feature = "watching")]
    Spans,
}

impl How {
    fn word(self) -> String {
        let value = self.to_possible_value().expect("none is hidden");
        value.get_name().to_owned()
    }
}

/// The instructions of one cycle, for each thread in the order in which they were started: by the difference between
/// so many cycles and twice as many.
pub(crate) async fn a_cycle(how: How, url: &str, count: u64) -> Result<Vec<f64>, String> {
    let threads = a_cycle_by_stage(how, url, count).await?;
    Ok(threads.iter().map(|it| it.values().sum()).collect())
}

/// The same, by stage.
pub(crate) async fn a_cycle_by_stage(
    how: How,
    url: &str,
    count: u64,
) -> Result<Vec<Stages>, String> {
    let once = count_all(how, url, count).await?;
    let twice = count_all(how, url, 2 * count).await?;
    let difference = |(once, mut twice): (Stages, Stages)| {
        for (stage, instructions) in &mut twice {
            *instructions -= once.get(stage).unwrap_or(&0.0);
            *instructions /= count as f64;
        }
        twice
    };
    Ok(once.into_iter().zip(twice).map(difference).collect())
}

async fn count_all(how: How, url: &str, count: u64) -> Result<Vec<Stages>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (program, count) = (own_program(), count.to_string());
    let tool = [
        "--tool=callgrind",
        "--separate-threads=yes",
        "--callgrind-out-file=out",
    ];
    let cycles = [program.as_str(), "cycles", &how.word(), url, &count];
    command::run(
        SECONDS,
        folder.path(),
        "valgrind",
        [&tool[..], &cycles].concat(),
    )
    .await?;
    let threads = (1..).map(|thread| folder.path().join(format!("out-{thread:02}")));
    threads
        .take_while(|path| path.exists())
        .map(|path| std::fs::read_to_string(path).map(|profile| stages::count(&profile)))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}
