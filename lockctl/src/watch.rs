//! `lockctl watch`: what happens to locks, as it happens.
//!
//! Any client may take a lock in any way, so the store is looked at again and again, and
//! the changes are reported. Acquisitions that are too short to be seen are counted.

use std::io;
use std::time::SystemTime;

use jiff::Zoned;
use lock_runtime::inspect::{Change, ChangeKind, Overview};
use lock_runtime::{LockError, LockManager};

use crate::cli::{StoreArgs, WatchArgs};
use crate::exit::Done;
use crate::output::{self, BOLD, DIM, GREEN, Output, RED, YELLOW};
use crate::record::{self, Happening};
use crate::status::whereabouts;
use crate::store::connect;
use crate::words::{count, tame};

pub(crate) async fn watch(store: &StoreArgs, args: &WatchArgs, output: &Output) -> Done {
    let locks = connect(store).await?;
    let mut last = locks.overview(&args.pattern).await?;
    let watching = Happening {
        count: Some(last.locks.len()),
        ..Happening::of("watching")
    };
    let text = format!(
        "watching; {} held or waited for",
        count(last.locks.len(), "lock")
    );
    tell(output, watching, &text)?;
    let mut reachable = true;
    loop {
        tokio::time::sleep(args.every).await;
        match look(&locks, args, &last).await {
            Ok((now, changes, unseen)) => {
                if !std::mem::replace(&mut reachable, true) {
                    tell(
                        output,
                        Happening::of("available"),
                        "the store answers again",
                    )?;
                }
                for change in &changes {
                    happened(output, change)?;
                }
                if unseen > 0 {
                    let text = format!("{} too short to be seen", count(unseen, "acquisition"));
                    let happening = Happening {
                        count: Some(unseen),
                        ..Happening::of("unseen")
                    };
                    tell(output, happening, &text)?;
                }
                last = now;
            }
            Err(LockError::Unavailable { server, cause, .. }) => {
                if std::mem::replace(&mut reachable, false) {
                    let text = format!("{server} is unavailable: {cause}");
                    tell(output, Happening::of("unavailable"), &text)?;
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// What has happened since the last look, and how many acquisitions no look has seen.
async fn look(
    locks: &LockManager,
    args: &WatchArgs,
    last: &Overview,
) -> Result<(Overview, Vec<Change>, usize), LockError> {
    let now = locks.overview(&args.pattern).await?;
    let changes = now.changes_since(last);
    let grants = changes.iter().filter(|it| is_grant(it.kind)).count();
    // The store counts all of a prefix together.
    let all = now.grants_since(last).filter(|_| args.pattern == "*");
    let all = all.and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
    Ok((now, changes, all.saturating_sub(grants)))
}

pub(crate) fn is_grant(kind: ChangeKind) -> bool {
    matches!(kind, ChangeKind::Granted | ChangeKind::HandedOver)
}

fn happened(output: &Output, change: &Change) -> io::Result<()> {
    let name = change.kind.to_string();
    let style = match change.kind {
        ChangeKind::Granted => GREEN,
        ChangeKind::HandedOver => YELLOW,
        ChangeKind::Lost => RED,
        _ => DIM,
    };
    let holder = &change.holder;
    let process = whereabouts(holder.process, holder.host.as_deref(), &holder.id);
    let function = tame(holder.function.as_deref().unwrap_or_default());
    let key = tame(change.key.as_str());
    let text = format!("{style}{name:<12}{style:#}{BOLD}{key}{BOLD:#}  {process}  {function}");
    let happening = Happening {
        key: Some(&change.key),
        holder: Some(holder.into()),
        ..Happening::of(&name)
    };
    tell(output, happening, text.trim_end())
}

fn tell(output: &Output, happening: Happening<'_>, text: &str) -> io::Result<()> {
    if output.is_json() {
        let at = Some(record::timestamp(SystemTime::now()));
        return output::object(&Happening { at, ..happening });
    }
    let now = Zoned::now().strftime("%H:%M:%S%.3f");
    output::line(format!("{DIM}{now}{DIM:#}  {text}"))
}
