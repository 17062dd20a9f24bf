//! `lockctl release --ask`: asks the holders of a lock to yield, who decide.

use lock_runtime::inspect::Status;

use crate::cli::StoreArgs;
use crate::exit::{Done, Exit};
use crate::key::key;
use crate::output;
use crate::output::Output;
use crate::record;
use crate::revoking;
use crate::store::connect;
use crate::words::{count, tame};

pub(crate) async fn ask(store: &StoreArgs, name: &str, output: &Output) -> Done {
    let locks = connect(store).await?;
    let key = key(name)?;
    let asked = locks.ask(&key).await?;
    let status = locks.status(&key).await?;
    if output.is_json() {
        output::object(&record::Asking {
            key: &key,
            asked,
            holders: status.holders.iter().map(Into::into).collect(),
            waiters: status.waiting,
        })?;
    } else {
        tell(&status, asked)?;
    }
    Ok(match asked {
        0 if status.is_held() => Exit::Failed,
        0 => Exit::Free,
        _ => Exit::Success,
    })
}

fn tell(status: &Status, asked: usize) -> std::io::Result<()> {
    let key = tame(status.key.as_str());
    match asked {
        0 if status.is_held() => output::line(format!("no holder of `{key}` could be asked"))?,
        0 => return output::line(format!("nobody holds `{key}`: nobody was asked")),
        _ => output::line(format!(
            "`{key}`: {} asked to yield; each decides when it releases the lock",
            match count(asked, "holder") {
                holders if asked == 1 => format!("{holders} was"),
                holders => format!("{holders} were"),
            }
        ))?,
    }
    for holder in &status.holders {
        output::line(format!("  {}", revoking::holder(holder)))?;
    }
    Ok(())
}
