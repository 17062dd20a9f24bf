//! Full load while one snapshot stays open, so that the server can remove no old version of a row.

use std::time::Duration;

use super::server::Server;
use crate::report::{Bound, Report, Row, Unit};
use crate::sql::cycles::Cycles;
use crate::stats::median;
use crate::systems::System;

const TASKS: usize = 64;
/// The time of a part; so many of them go by with the snapshot.
const TIME: Duration = Duration::from_secs(10);
const PARTS: usize = 6;

pub(super) async fn measure(report: &mut Report, server: &Server) {
    let load = async || {
        Cycles::of(&server.database, System::Ours, TASKS, TIME)
            .await
            .server
    };
    let vacuum = async || server.peer().await.rows("VACUUM ANALYZE").await;
    let before = load().await;
    let mut snapshot = server.peer().await;
    snapshot.rows("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    snapshot.rows("SELECT count(*) FROM pg_class").await;
    let mut parts = Vec::new();
    for part in 0..PARTS {
        if part == PARTS / 2 {
            vacuum().await;
        }
        parts.push(load().await);
    }
    snapshot.rows("COMMIT").await;
    vacuum().await;
    let without = f64::midpoint(before, load().await);
    for (figure, with) in [
        ("server's processor a cycle", median(&parts)),
        ("the same in its last 10 s", parts[PARTS - 1]),
    ] {
        let figure = format!("64 tasks, snapshot open for 60 s: {figure}");
        let bound = Bound::at_most(1.3, with / without, " x without");
        let row = Row::new(server.database.case, &figure, Unit::Nanoseconds, with);
        report.add(row.beside("without", without).bound(bound));
    }
}
