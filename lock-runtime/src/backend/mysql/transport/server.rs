//! The facts about the server of a connection.

use crate::backend::sql::session::Session;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// The session by which the server knows this connection. It is a new one if the server still keeps
    /// the former connection.
    pub(crate) session: Session,
    /// Whether a crash of the server forgets no commit that was answered.
    pub(crate) is_durable: bool,
}

/// Whether a crash forgets no commit, with these settings of a server: `innodb_flush_log_at_trx_commit`, `log_bin` and
/// `sync_binlog`. After a crash, a server with a binary log rolls back what that log lacks.
pub(crate) fn keeps_commits(flush: &str, binary_log: &str, sync: &str) -> bool {
    matches!(flush, "1" | "3") && (matches!(binary_log, "OFF" | "0") || sync == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_keeps_its_commits_if_it_flushes_both_of_its_logs() {
        for (flush, binary_log, sync, keeps) in [
            ("1", "OFF", "0", true),
            ("3", "OFF", "0", true),
            ("1", "ON", "1", true),
            ("1", "ON", "0", false),
            ("1", "ON", "100", false),
            ("2", "OFF", "1", false),
            ("0", "ON", "1", false),
        ] {
            let found = keeps_commits(flush, binary_log, sync);
            assert_eq!(found, keeps, "{flush} {binary_log} {sync}");
        }
    }
}
