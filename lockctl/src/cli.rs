//! The arguments of every command.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::AnsiColor;
use clap::builder::{PossibleValuesParser, Styles, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::duration::{Wait, parse, parse_interval, parse_wait};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  failed for another reason
    2  invalid arguments
   10  status, release: nobody holds the lock; log, last: no grant is known
   20  doctor: the worst finding is a warning; graph: some holders or servers do not answer
   21  doctor: there is an error; graph: there is a deadlock
   69  the store cannot be reached, or refuses to serve
   73  run: the lock was lost, or --max-hold was over, before the command had ended
   74  run: the lock stayed held or cooling down until the wait was over, or the queue was full
   75  run --skip: the lock is held or cooling down
   76  release: not confirmed
  run ends with the command's own code, or 128 and the number of the signal that ended it; 126 and 127 mean that it \
cannot be run, or cannot be found.

The store is named by --url, or by LOCK_URL with LOCK_PREFIX and the other variables of lock-runtime.";

const RUN_EXAMPLES: &str = "\
Examples:
  # In the crontabs of several machines: one of them runs it, the others say so and end with 75.
  lockctl run --skip nightly-report -- /usr/local/bin/report

  # Wait for up to ten minutes, and stop the command after an hour.
  lockctl run --wait 10m --max-hold 1h deploy -- ./deploy.sh production

  # At most four at once, over all machines.
  lockctl run --permits 4 --wait forever encode -- ffmpeg -i in.mov out.mp4

The command finds LOCK_KEY and LOCK_FENCE, the fencing token, in its environment.";

/// Looks at distributed locks, and runs commands under them.
#[derive(Debug, Parser)]
#[command(name = "lockctl", version, styles = STYLES, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which store, and how to answer.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store, such as `redis://127.0.0.1:6379`; without it, `LOCK_URL` names it, where `ps` does not show a
    /// password to other users
    #[arg(long, global = true)]
    pub(crate) url: Option<String>,
    /// What every key in the store begins with; else what `LOCK_PREFIX` or the URL says, or `lock`
    #[arg(long, global = true)]
    pub(crate) prefix: Option<String>,
    /// Answers with one JSON object a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows who holds a lock and who waits for it
    #[command(
        after_help = "Examples:\n  lockctl status nightly-report\n  lockctl status --json stock:lamp | jq .queue"
    )]
    Status(StatusArgs),
    /// Lists the locks that are held or waited for
    #[command(
        visible_alias = "list",
        after_help = "Examples:\n  lockctl ls\n  lockctl ls 'stock:*' --sort waiters --limit 20"
    )]
    Ls(LsArgs),
    /// Shows the last grants of a lock: who held it, from when to when, and how that ended
    #[command(
        after_help = "The programs that take the lock have to keep a history, with LOCK_HISTORY=20 or ?history=20 in their URL.\n\nExamples:\n  lockctl log nightly-report\n  lockctl log stock:lamp --json | jq 'select(.end == \"expired\")'"
    )]
    Log(LogArgs),
    /// Shows the last grant of a lock: when a job ran, for how long, and where
    #[command(
        after_help = "Examples:\n  lockctl last nightly-report\n  lockctl last nightly-report --json | jq -r .since"
    )]
    Last(LastArgs),
    /// Runs a command under a lock
    #[cfg(unix)]
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Revokes a lock and stops its holders, or asks them to yield
    #[command(
        after_help = "Examples:\n  lockctl release --force nightly-report\n  lockctl release --force --yes nightly-report   # in a script\n  lockctl release --ask indexer   # before a process is replaced"
    )]
    Release(ReleaseArgs),
    /// Checks what the guarantees depend on in this store
    #[command(
        after_help = "Examples:\n  lockctl doctor\n  lockctl doctor --json | jq 'select(.severity == \"error\")'"
    )]
    Doctor,
    /// Shows which holders wait for other locks, and which of them wait for each other
    #[command(
        after_help = "Examples:\n  lockctl graph\n  lockctl graph --json | jq 'select(.cycle != null)'"
    )]
    Graph,
    /// Shows all locks, live
    #[command(
        after_help = "Keys:\n  ↑ ↓ choose, enter: details and the queue, / filter, s sort, f revoke (asks), q quit"
    )]
    Top(TopArgs),
    /// Writes a line for each grant, hand-over, release and loss, as it happens
    #[command(
        after_help = "Examples:\n  lockctl watch\n  lockctl watch 'stock:*' --json | jq 'select(.event == \"lost\")'"
    )]
    Watch(WatchArgs),
    /// Shows the locks as a web page
    #[command(
        after_help = "Examples:\n  lockctl serve\n  LOCKCTL_TOKEN=$(openssl rand -hex 16) lockctl serve --listen 127.0.0.1:8088"
    )]
    Serve(ServeArgs),
    /// Measures what locks cost on this server
    #[command(after_help = "Examples:\n  lockctl bench\n  lockctl bench --seconds 30 --rate 2000")]
    Bench(BenchArgs),
    /// Prints the SQL that installs or upgrades the schema of `postgres://`, or the procedures of `mysql://`
    #[command(
        after_help = "Examples:\n  lockctl sql | psql -v ON_ERROR_STOP=1 shop\n  lockctl sql --schema locks > migrations/20261123_locks.sql\n  lockctl sql --mysql | mysql shop"
    )]
    Sql {
        /// The schema for tables and functions
        #[arg(long, default_value = "lock_runtime")]
        schema: String,
        /// For `mysql://`, in the database that is in use
        #[arg(long, conflicts_with = "schema")]
        mysql: bool,
    },
    /// Writes a completion script for a shell to stdout
    #[command(
        after_help = "Examples:\n  lockctl completions bash > /etc/bash_completion.d/lockctl\n  lockctl completions zsh > ~/.zfunc/_lockctl"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Writes the manual pages
    #[command(
        after_help = "Examples:\n  lockctl man | man -l -\n  lockctl man /usr/local/share/man/man1"
    )]
    Man {
        /// Where to write a page for each command; without it, the main page goes to stdout
        directory: Option<PathBuf>,
    },
    /// The child that becomes the command of `run`
    #[cfg(unix)]
    #[command(name = "__exec", hide = true)]
    Exec(ExecArgs),
    /// The process that ends the command of `run` when `lockctl` cannot
    #[cfg(unix)]
    #[command(name = "__guard", hide = true)]
    Guard,
    /// Ends by a signal
    #[cfg(unix)]
    #[command(name = "__raise", hide = true)]
    Raise { signal: i32 },
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The lock's name, as `ls` shows it
    pub(crate) key: String,
    /// Shows at most this many waiters
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) queue: usize,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The lock's name, as `ls` shows it
    pub(crate) key: String,
    /// Shows at most this many
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct LastArgs {
    /// The lock's name, as `ls` shows it
    pub(crate) key: String,
}

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Which locks: `*` stands for any text, `?` for any character
    #[arg(default_value = "*")]
    pub(crate) pattern: String,
    /// What to sort by
    #[arg(long, value_parser = sorts_once(), default_value = "key")]
    pub(crate) sort: Sort,
    /// Shows at most this many
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// What a table of locks is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// By name
    Key,
    /// The most waiters first
    Waiters,
    /// The longest wait first
    Wait,
    /// The lease that ends next first
    Left,
    /// In `top`: those that were granted most often in the last minute first
    Hot,
}

impl Sort {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Waiters => "waiters",
            Self::Wait => "wait",
            Self::Left => "left",
            Self::Hot => "hot",
        }
    }

    /// The one after it, in a circle.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Key => Self::Waiters,
            Self::Waiters => Self::Wait,
            Self::Wait => Self::Left,
            Self::Left => Self::Hot,
            Self::Hot => Self::Key,
        }
    }
}

/// What a single look at the locks can be sorted by: not by how often they were granted.
fn sorts_once() -> impl TypedValueParser<Value = Sort> {
    let sorts = Sort::value_variants().iter();
    let sorts = sorts.filter(|it| **it != Sort::Hot);
    let names = PossibleValuesParser::new(sorts.filter_map(ValueEnum::to_possible_value));
    names.try_map(|name| Sort::from_str(&name, true))
}

#[cfg(unix)]
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The lock's name
    pub(crate) key: String,
    /// How long the lock survives a crash of this machine [default: 10s]
    #[arg(long, value_parser = parse, value_name = "TIME")]
    pub(crate) ttl: Option<Duration>,
    /// How long to wait for the lock, or `forever` [default: 5s]
    #[arg(long, value_parser = parse_wait, value_name = "TIME", conflicts_with = "skip")]
    pub(crate) wait: Option<Wait>,
    /// Does not wait: if the lock is held or cooling down, says so and ends with 75
    #[arg(long)]
    pub(crate) skip: bool,
    /// Holds it alone, or shares it with other readers
    #[arg(long, value_enum, default_value_t = Mode::Exclusive)]
    pub(crate) mode: Mode,
    /// Shares it among up to this many holders
    #[arg(long, value_name = "N", conflicts_with = "mode")]
    pub(crate) permits: Option<u32>,
    /// Does not wait if so many others wait: says so and ends with 74
    #[arg(long, value_name = "N", conflicts_with = "skip")]
    pub(crate) max_waiters: Option<u32>,
    /// Keeps the lock closed for at least this long, even if the command ends sooner
    #[arg(long, value_parser = parse, value_name = "TIME")]
    pub(crate) min_hold: Option<Duration>,
    /// Stops the command after this time
    #[arg(long, value_parser = parse, value_name = "TIME")]
    pub(crate) max_hold: Option<Duration>,
    /// What happens to the command if the lock is lost
    #[arg(long, value_enum, default_value_t = OnLost::Stop)]
    pub(crate) on_lost: OnLost,
    /// How long the command has between SIGTERM and SIGKILL
    #[arg(long, value_parser = parse, default_value = "5s", value_name = "TIME")]
    pub(crate) grace: Duration,
    /// Writes only failures to stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// One holder
    Exclusive,
    /// Shared with other readers
    Read,
    /// The same as exclusive
    Write,
}

#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// SIGTERM for its process group, and SIGKILL after the grace
    Stop,
    /// A warning on stderr; it runs on without the lock
    Notify,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Which locks: `*` stands for any text, `?` for any character
    #[arg(default_value = "*")]
    pub(crate) pattern: String,
    /// How often to look
    #[arg(long, value_parser = parse_interval, default_value = "1s", value_name = "TIME")]
    pub(crate) every: Duration,
    /// What to sort by at first
    #[arg(long, value_enum, default_value_t = Sort::Waiters)]
    pub(crate) sort: Sort,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Which locks: `*` stands for any text, `?` for any character
    #[arg(default_value = "*")]
    pub(crate) pattern: String,
    /// How often to look
    #[arg(long, value_parser = parse_interval, default_value = "250ms", value_name = "TIME")]
    pub(crate) every: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; anything but loopback shows the locks to the network, without encryption
    #[arg(long, default_value = "127.0.0.1:8088", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// A name under which users reach the page through a proxy; may be given several times. All but these and those of
    /// this machine are refused then, as they are on loopback
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// What a user has to know to revoke locks, 16 characters or more; without it nobody can. `ps` shows it to other
    /// users, unless it is in the variable
    #[arg(long, env = "LOCKCTL_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// How often to look
    #[arg(long, value_parser = parse_interval, default_value = "1s", value_name = "TIME")]
    pub(crate) every: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// How long it takes in all
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..=3600), value_name = "N")]
    pub(crate) seconds: u64,
    /// How many acquisitions a second it makes at most, on a connection at a time
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000), value_name = "N")]
    pub(crate) rate: u32,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The lock's name, as `ls` shows it
    pub(crate) key: String,
    /// Takes it from holders who are still working
    #[arg(long, required_unless_present = "ask")]
    pub(crate) force: bool,
    /// Asks the holders to yield; they decide when to release it
    #[arg(long, conflicts_with_all = ["force", "yes"])]
    pub(crate) ask: bool,
    /// With `--force`: does not wait for a confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[cfg(unix)]
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The process that has to live
    #[arg(long)]
    pub(crate) parent: i32,
    /// Takes the terminal
    #[arg(long)]
    pub(crate) foreground: bool,
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }
}
