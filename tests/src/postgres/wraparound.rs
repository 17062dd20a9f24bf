//! Transaction IDs, which run out unless the server freezes old rows.

use std::fs;

use super::{PostgresServer, programs::give};

/// How far the oldest and the newest ID may be apart.
const DISTANCE: u64 = (1 << 31) - 1;

/// The server warns once fewer than 40 million are left, and stops at 3 million.
const LEFT: u64 = 20_000_000;

/// How many transactions one file has two bits for.
const FILE: u64 = 1 << 20;

impl PostgresServer {
    /// Restarts the server when it has given out nearly all transaction IDs. It freezes no rows, and so warns with each
    /// further one, if its [option](super::PostgresServerBuilder::option) `autovacuum_naptime` is long.
    pub async fn use_up_transaction_ids(&mut self) {
        let oldest = "SELECT min(datfrozenxid::text::int8) FROM pg_database";
        let oldest: u64 = self.cmd(oldest).await[0].parse().expect("a number");
        self.shut_down().await;
        let next = oldest + DISTANCE - LEFT;
        let args = format!(
            "--next-transaction-id={next} --pgdata={}",
            self.data().display()
        );
        self.programs
            .run("pg_resetwal", args.split_whitespace())
            .await;
        let file = self.data().join(format!("pg_xact/{:04X}", next / FILE));
        let nothing = usize::try_from(FILE / 4).expect("a small file");
        fs::write(&file, vec![0; nothing]).expect("a file for the server");
        give(&file);
        self.start_again().await;
    }
}
