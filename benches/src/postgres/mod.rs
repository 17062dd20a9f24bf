//! Locks on PostgreSQL beside bare lease statements and advisory locks on the same server: free keys, a hot key, and a
//! snapshot that stays open.

mod server;
mod snapshot;

use crate::report::Report;
use crate::sql::{cycles, hot};
use crate::systems::System;

use self::server::Server;

const CYCLES: cycles::Contest = cycles::Contest {
    systems: &[
        System::Ours,
        System::OursApart,
        System::LeaseStatements,
        System::LeaseStatementsEach,
        System::AdvisoryLocks,
        System::AdvisoryLocksEach,
    ],
    statements: System::LeaseStatements,
    several: 1.8,
    apart: Some(System::OursApart),
};
const HOT: hot::Contest = hot::Contest {
    systems: &[System::Ours, System::OursAlone, System::AdvisoryLocksEach],
    limit: 1,
};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn measure(only: Option<&str>) {
    let load_before = crate::load();
    let mut report = Report::default();
    let mut version = String::new();
    for disk in [false, true] {
        let Some(server) = Server::start(disk).await else {
            return;
        };
        let database = &server.database;
        println!("{}", database.case);
        let wanted = |part| only.is_none_or(|only| only == part);
        if wanted("cycles") {
            cycles::measure(&mut report, database, &CYCLES).await;
        }
        if wanted("hot") {
            hot::measure(&mut report, database, &HOT).await;
        }
        if wanted("snapshot") && !disk {
            snapshot::measure(&mut report, &server).await;
        }
        version = server.version().await;
    }
    let title = format!(
        "{} processors, {}, PostgreSQL {version}; load average {load_before} before, {} after.",
        crate::cores(),
        std::env::consts::OS,
        crate::load(),
    );
    println!("\n{}", report.markdown(&title));
    crate::bars::draw(&report, &crate::results());
}
