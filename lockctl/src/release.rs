//! `lockctl release --force`: revokes a lock.

use std::io::{self, BufRead as _, Write as _};
use std::time::SystemTime;

use lock_runtime::LockKey;
use lock_runtime::inspect::Status;

use crate::cli::{ReleaseArgs, StoreArgs};
use crate::duration::clock;
use crate::exit::{Done, Exit, Failure};
use crate::key::key;
use crate::log;
use crate::output;
use crate::output::{Output, YELLOW, is_interactive};
use crate::record;
use crate::revoking::{self, Revocation, WAY_OUT, prospects};
use crate::store::connect;
use crate::words::{count, tame};

pub(crate) async fn release(store: &StoreArgs, args: &ReleaseArgs, output: &Output) -> Done {
    let locks = connect(store).await?;
    let key = key(&args.key)?;
    let mut status = locks.status(&key).await?;
    log::complete(&locks, &mut status).await;
    let released = if args.yes {
        locks.force_release(&key).await?
    } else {
        if !status.holders.is_empty() {
            confirm(&status)?;
        }
        match revoking::revoke(&locks, &key, &revoking::seen(&status)).await? {
            Revocation::Free => 0,
            Revocation::Changed => return Err(Failure::Refused(changed(&key))),
            Revocation::Done(then, released) => {
                status = then;
                released
            }
        }
    };
    let told = if output.is_json() {
        output::object(&record::Release {
            key: &key,
            released,
            holders: status.holders.iter().map(Into::into).collect(),
            waiters: status.waiting,
        })
    } else {
        tell(&status, released)
    };
    output::unless_closed(told)?;
    Ok(match released {
        0 => Exit::Free,
        _ => Exit::Success,
    })
}

/// Asks on a terminal; a script has to say `--yes`.
fn confirm(status: &Status) -> Result<(), Failure> {
    let key = tame(status.key.as_str());
    let mut stderr = anstream::stderr().lock();
    let mut lines = prospects(status).into_iter();
    let shown = lines.try_for_each(|line| writeln!(stderr, "{line}"));
    if shown.is_err() || !is_interactive() {
        let message = format!("`{key}` is held and nobody can be asked: say --yes to revoke it");
        return Err(Failure::Refused(message));
    }
    let mut answer = String::new();
    let asked = write!(stderr, "{YELLOW}Revoke `{key}`?{YELLOW:#} [y/N] ")
        .and_then(|()| stderr.flush())
        .and_then(|()| io::stdin().lock().read_line(&mut answer));
    match answer.trim() {
        "y" | "Y" | "yes" if asked.is_ok() => Ok(()),
        _ => Err(Failure::Refused("nothing was changed".to_owned())),
    }
}

fn changed(key: &LockKey) -> String {
    let key = tame(key.as_str());
    format!("`{key}` has got another holder in the meantime: nothing was changed; {WAY_OUT}")
}

fn tell(status: &Status, released: usize) -> io::Result<()> {
    let key = tame(status.key.as_str());
    if released == 0 {
        return output::line(format!("`{key}` was free: nothing was changed"));
    }
    output::line(format!(
        "{} `{key}` was revoked from {}",
        clock(SystemTime::now()),
        count(released, "holder")
    ))?;
    for holder in status.holders.iter().filter(|it| !it.cooling_down) {
        let who = tame(&holder.to_string()).into_owned();
        output::line(format!("  {}", revoking::holder(holder)))?;
        if holder.ticket {
            output::line("  the ticket cannot be adopted any more")?;
            continue;
        }
        output::line(match holder.process {
            Some(_) => format!(
                "  {who} was notified; until it stops, or until its next renewal if it cannot be reached, it may overlap \
                 with the next holder"
            ),
            None => format!(
                "  {who} ({}) cannot be notified and may overlap with the next holder",
                tame(&holder.id)
            ),
        })?;
    }
    match status.waiting {
        0 => output::line("nobody waited for it"),
        waiters => output::line(format!(
            "it went to the first of {}",
            count(waiters, "waiter")
        )),
    }
}
