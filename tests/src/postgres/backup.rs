//! Copies of a server's data, which may take the place of newer data.

use std::{ffi::OsString, fs, path::Path};

use tempfile::TempDir;

use super::{
    PostgresServer,
    launch::{base_backup, directory},
    programs,
};

/// The data of a server at some moment.
#[derive(Debug)]
pub struct Backup(TempDir);

impl PostgresServer {
    /// Copies the data of the running server, as `pg_basebackup` does.
    pub async fn back_up(&self) -> Backup {
        let directory = directory();
        base_backup(self, &directory.path().join("data"), "").await;
        Backup(directory)
    }

    /// Shuts the server down, copies its files, and starts it again.
    pub async fn copy_files(&mut self) -> Backup {
        self.shut_down().await;
        let directory = directory();
        copy(&self.data(), directory.path()).await;
        self.start_again().await;
        Backup(directory)
    }

    /// Ends the server at once, and starts it with the data of then.
    pub async fn restore(&mut self, backup: &Backup) {
        self.kill().await;
        fs::remove_dir_all(self.data()).expect("data of ours");
        copy(&backup.0.path().join("data"), self.directory.path()).await;
        self.start_again().await;
    }
}

async fn copy(data: &Path, into: &Path) {
    let words = ["cp", "-a"].map(OsString::from).into_iter();
    programs::run(words.chain([data.into(), into.into()]).collect()).await;
}
