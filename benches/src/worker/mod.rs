//! A process that does one piece of work on request. It speaks with the bench in lines of JSON.
//!
//! It reads its [`Spec`] from the first line of its standard input, connects and says `ready`. Then it takes orders,
//! one per line; [`Work`] lists those of each kind of work. Workers of other languages speak the same way. It ends when its
//! standard input does.

mod console;
mod job;
mod keeper;
mod load;
mod offered;

#[cfg(any(feature = "postgres", feature = "mysql"))]
use crate::systems::Each;
#[cfg(feature = "mysql")]
use crate::systems::mysql;
#[cfg(feature = "postgres")]
use crate::systems::postgres::{AdvisoryLocks, Apart, LeaseStatements};
use crate::systems::{
    Alone, AsyncRedisLock, Ceiling, Detached, DistributedLock, Locks, Ours, Readers, Rlock, Rslock,
    System,
};
#[cfg(feature = "stores")]
use crate::systems::{EtcdClient, ZooKeeperClient};
pub(crate) use job::{MOST_WAITERS, Outcome, Section, Spec, Work};
pub(crate) use keeper::Sample;

use console::Console;

/// Works until standard input ends.
pub(crate) fn main() {
    let mut console = Console::open();
    let spec: Spec = serde_json::from_str(&console.first_line()).expect("what to do, as JSON");
    let mut builder = match spec.threads {
        0 => tokio::runtime::Builder::new_current_thread(),
        threads => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    let runtime = builder.enable_all().build().expect("a runtime");
    runtime.block_on(async {
        match spec.system {
            System::Ours => work::<Ours>(spec, console).await,
            System::OursDetached => work::<Detached>(spec, console).await,
            System::OursAlone => work::<Alone>(spec, console).await,
            System::OursRead => work::<Readers>(spec, console).await,
            System::Ceiling => work::<Ceiling>(spec, console).await,
            System::Rslock => work::<Rslock>(spec, console).await,
            System::Rlock => work::<Rlock>(spec, console).await,
            System::AsyncRedisLock => work::<AsyncRedisLock>(spec, console).await,
            System::DistributedLock => work::<DistributedLock>(spec, console).await,
            #[cfg(feature = "stores")]
            System::EtcdClient => work::<EtcdClient>(spec, console).await,
            #[cfg(feature = "stores")]
            System::ZooKeeperClient => work::<ZooKeeperClient>(spec, console).await,
            #[cfg(feature = "postgres")]
            System::OursApart => work::<Apart>(spec, console).await,
            #[cfg(feature = "postgres")]
            System::LeaseStatements => work::<LeaseStatements>(spec, console).await,
            #[cfg(feature = "postgres")]
            System::LeaseStatementsEach => work::<Each<LeaseStatements>>(spec, console).await,
            #[cfg(feature = "postgres")]
            System::AdvisoryLocks => work::<AdvisoryLocks>(spec, console).await,
            #[cfg(feature = "postgres")]
            System::AdvisoryLocksEach => work::<Each<AdvisoryLocks>>(spec, console).await,
            #[cfg(feature = "mysql")]
            System::MysqlStatements => work::<mysql::Statements>(spec, console).await,
            #[cfg(feature = "mysql")]
            System::MysqlStatementsEach => work::<Each<mysql::Statements>>(spec, console).await,
            #[cfg(feature = "mysql")]
            System::MysqlGetLockEach => work::<Each<mysql::GetLock>>(spec, console).await,
            System::RedisPy | System::Redlock => panic!("{} is not written in Rust", spec.system),
        }
    });
}

async fn work<L: Locks>(spec: Spec, mut console: Console) {
    match spec.work {
        Work::Free | Work::Hot => load::locks::<L>(&spec, &mut console).await,
        Work::Offered => offered::requests(&spec, &mut console).await,
        Work::Ping => load::pings(&spec, &mut console).await,
        Work::Cold => load::cold::<L>(&spec, &mut console).await,
        Work::Held => keeper::hold(&spec, &mut console).await,
        Work::Keys => keeper::keys(&spec, &mut console).await,
    }
    console.until_closed().await;
}
