//! Promise: both programs show a late writer whose transaction PostgreSQL refuses.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::process::{Command, Stdio};

use tests::PostgresServer;

/// Runs the program, which cargo builds beside the tests, on a server of its own.
async fn refuses_the_late_writer(name: &str) {
    let Some(server) = PostgresServer::start("the recipes").await else {
        return;
    };
    let own = std::env::current_exe().unwrap();
    let folder = own.ancestors().nth(2).unwrap();
    let mut program = Command::new(folder.join("examples").join(name));
    let program = program.env("LOCK_URL", server.url());
    let output = program.stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}: {text}", output.status);
    assert_eq!(text.matches("10 are refused: ").count(), 1, "{text}");
    assert!(text.ends_with("current account 70, savings 30\n"), "{text}");
}

#[tokio::test]
async fn with_sqlx() {
    refuses_the_late_writer("transfer_sqlx").await;
}

#[tokio::test]
async fn with_diesel() {
    refuses_the_late_writer("transfer_diesel").await;
}
