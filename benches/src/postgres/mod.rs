//! Locks on PostgreSQL beside bare lease statements and advisory locks on the same server: free keys, a hot key, and a
//! snapshot that stays open.

mod cycles;
mod hot;
mod processor;
mod rounds;
mod server;
mod snapshot;

use crate::report::Report;

use self::server::Server;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn measure(only: Option<&str>) {
    let load_before = crate::load();
    let mut report = Report::default();
    let mut version = String::new();
    for disk in [false, true] {
        let Some(server) = Server::start(disk).await else {
            return;
        };
        println!("{}", server.case);
        let wanted = |part| only.is_none_or(|only| only == part);
        if wanted("cycles") {
            cycles::measure(&mut report, &server).await;
        }
        if wanted("hot") {
            hot::measure(&mut report, &server).await;
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
