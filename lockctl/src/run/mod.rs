//! `lockctl run`: a command under a lock.
//!
//! The command has a process group of its own. Nothing of it runs without the lock: if the
//! lock is lost its group is ended; if this process dies the [guardian] ends the group, and
//! the system ends the command itself where it can.

pub(crate) mod child;
pub(crate) mod guardian;
pub(crate) mod signals;
mod supervisor;
mod terminal;

use std::ffi::OsStr;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use lock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use nix::sys::signal::Signal;

use crate::cli::{Mode, RunArgs, StoreArgs};
use crate::duration::{Wait, short};
use crate::exit::{Done, Exit, Failure};
use crate::key::key;
use crate::output::Output;
use crate::record::{self, Occurrence};
use crate::store::{connect, is_within_process};

use child::Ended;
use signals::Signals;
use supervisor::Supervisor;

/// After this time a wait is worth a word.
const NOTICED: Duration = Duration::from_millis(300);

/// What is said on stderr about one lock.
#[derive(Clone, Copy, Debug)]
struct Reporter<'a> {
    key: &'a str,
    quiet: bool,
    output: &'a Output,
}

impl<'a> Reporter<'a> {
    fn say(&self, event: Occurrence<'a>, text: &str) {
        if !self.quiet {
            let key = self.key;
            let text = format!("`{key}`: {text}");
            self.output.note(&Occurrence { key, ..event }, &text);
        }
    }
}

pub(crate) async fn run(store: &StoreArgs, args: &RunArgs, output: &Output) -> Done {
    if is_within_process(store) {
        let message = "`memory:` locks nothing for others, so that the command would run beside them: name a store \
                       that all machines reach";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut signals = Signals::new().map_err(|it| Failure::system("signals", it))?;
    let key = key(&args.key)?;
    let reporter = Reporter {
        key: key.as_str(),
        quiet: args.quiet,
        output,
    };
    let locks = match unless_signalled(&mut signals, connect(store)).await {
        Ok(locks) => locks?,
        Err(signal) => return Ok(by_signal(signal)),
    };
    let acquired = unless_signalled(&mut signals, acquire(&locks, args, reporter)).await;
    let guard = match acquired {
        Ok(Ok(guard)) => guard,
        Ok(Err(LockError::Contended { holder, .. })) if args.skip => {
            let who = holder
                .as_ref()
                .map_or_else(|| "somebody".to_owned(), ToString::to_string);
            let event = Occurrence {
                event: "skipped",
                holder: holder.as_deref().map(Into::into),
                ..Occurrence::default()
            };
            let cools_down = holder.as_deref().is_some_and(|it| it.cooling_down);
            let line = if cools_down {
                "cooling down: skipped".to_owned()
            } else {
                format!("held by {who}: skipped")
            };
            reporter.say(event, &line);
            return Ok(Exit::Skipped);
        }
        Ok(Err(error)) => return Err(error.into()),
        Err(signal) => {
            // Leaves the queue before the process ends.
            locks.shutdown().await;
            return Ok(by_signal(signal));
        }
    };
    let (ended, guard) = Supervisor::start(args, guard, signals, reporter)?
        .run()
        .await?;
    finish(ended, guard, args, reporter).await
}

/// The answer, unless a signal comes before it.
async fn unless_signalled<T>(
    signals: &mut Signals,
    answer: impl Future<Output = T>,
) -> Result<T, Signal> {
    tokio::select! {
        biased;
        answer = answer => Ok(answer),
        signal = signals.next() => Err(signal),
    }
}

fn by_signal(signal: Signal) -> Exit {
    Exit::Command(128 + u8::try_from(signal as i32).unwrap_or(0))
}

fn request(locks: &LockManager, args: &RunArgs) -> LockRequest {
    let mut request = locks
        .lock(key(&args.key))
        .function(function(&args.command[0]));
    if let Some(ttl) = args.ttl {
        request = request.ttl(ttl);
    }
    request = match args.wait {
        _ if args.skip => request.try_once(),
        Some(Wait::Forever) => request.wait_forever(),
        Some(Wait::AtMost(wait)) => request.wait(wait),
        None => request,
    };
    request = match (args.permits, args.mode) {
        (Some(permits), _) => request.permits(permits),
        (None, Mode::Read) => request.read(),
        (None, Mode::Exclusive | Mode::Write) => request.write(),
    };
    if let Some(waiters) = args.max_waiters {
        request = request.max_waiters(waiters);
    }
    if let Some(time) = args.min_hold {
        request = request.min_hold(time);
    }
    if let Some(time) = args.max_hold {
        request = request.max_hold(time);
    }
    request
}

/// How holders are shown to others: `lockctl:backup.sh`.
fn function(command: &OsStr) -> &'static str {
    let name = Path::new(command).file_name().unwrap_or(command);
    let name = name.to_string_lossy();
    let one_word = name.replace(|c: char| c.is_whitespace() || c.is_control(), "_");
    let short: String = one_word.chars().take(50).collect();
    // Once in the life of this process.
    Box::leak(format!("lockctl:{short}").into_boxed_str())
}

/// Takes the lock, and says whom it waits for if that takes a while.
async fn acquire(
    locks: &LockManager,
    args: &RunArgs,
    reporter: Reporter<'_>,
) -> Result<LockGuard, LockError> {
    let begun = Instant::now();
    let mut acquire = pin!(request(locks, args).acquire());
    // Polled beside the question: else a lock that is granted meanwhile lies idle, and may end unreceived.
    let guard = tokio::select! {
        biased;
        guard = &mut acquire => guard?,
        () = say_who_holds(locks, args, reporter) => acquire.await?,
    };
    let waited = begun.elapsed();
    let fence = guard.fencing_token();
    let event = Occurrence {
        event: "granted",
        fence: Some(fence),
        waited_ms: Some(record::millis(waited)),
        ..Occurrence::default()
    };
    if waited >= NOTICED || reporter.output.is_json() {
        reporter.say(
            event,
            &format!("ours after {}, fencing token {fence}", short(waited)),
        );
    }
    Ok(guard)
}

/// Says after a while whom the caller waits for.
async fn say_who_holds(locks: &LockManager, args: &RunArgs, reporter: Reporter<'_>) {
    tokio::time::sleep(NOTICED).await;
    if let Ok(status) = locks.status(key(&args.key)).await
        && let Some(holder) = status.holders.first()
    {
        let event = Occurrence {
            event: "waiting",
            holder: Some(holder.into()),
            ..Occurrence::default()
        };
        reporter.say(event, &format!("waiting for {holder}"));
    }
}

/// Releases the lock, and says how it all ended.
async fn finish(ended: Ended, guard: LockGuard, args: &RunArgs, reporter: Reporter<'_>) -> Done {
    let event = |event| Occurrence {
        event,
        ..Occurrence::default()
    };
    match guard.release_confirmed().await {
        Ok(true) => {}
        Ok(false) if ended.lost => {}
        Ok(false) => {
            reporter.say(
                event("lost"),
                "the lock was gone when the command ended: it may have run beside another one",
            );
            return Ok(Exit::Lost);
        }
        Err(error) => reporter.say(
            event("release failure"),
            &format!("the lock stays taken until its ttl: {error}"),
        ),
    }
    if ended.lost && args.on_lost == crate::cli::OnLost::Stop {
        return Ok(Exit::Lost);
    }
    if ended.interrupted {
        signals::die_of_interrupt()?;
    }
    Ok(Exit::Command(ended.code))
}
