//! Gathers what the locks depend on, one fact after the other, so that the server is measured
//! idle.

use super::findings::{Facts, findings};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::sql::inspect::Inspector;
use crate::types::error::Cause;
use crate::types::finding::Finding;

/// Subjects and queries of the diagnosis; each query returns rows of a name and a value.
const QUESTIONS: &[(&str, &str)] = &[
    (
        "settings",
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'innodb_flush_log_at_trx_commit', \
         'innodb_doublewrite', 'max_connections', 'sync_binlog', 'log_bin')",
    ),
    (
        "connections",
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected')",
    ),
    (
        "transactions",
        "SELECT 'oldest', COALESCE(MAX(TIMESTAMPDIFF(SECOND, trx_started, SYSDATE())), 0) FROM information_schema.INNODB_TRX",
    ),
    (
        "tables",
        "SELECT 'size', COALESCE(SUM(DATA_LENGTH + INDEX_LENGTH) DIV 1048576, 0) FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE 'lock\\_runtime\\_%'",
    ),
];

/// Looks at a server, and judges it.
pub(super) async fn diagnose(
    inspector: Inspector,
    is_quarantined: bool,
) -> Result<Vec<Finding>, Cause> {
    let mut facts = Facts {
        is_quarantined,
        ..Facts::default()
    };
    for (about, question) in QUESTIONS {
        match inspector.look(*question).await {
            Ok(rows) => facts.values.extend(rows.iter().filter_map(|row| {
                let name = row.text(0)?.to_owned();
                Some((name, row.text(1).unwrap_or_default().to_owned()))
            })),
            Err(Trouble::Unknown(cause)) => return Err(cause),
            Err(why) => facts.unknown.push((about, why.cause().to_string())),
        }
    }
    facts.round_trips = inspector.round_trips().await?;
    Ok(findings(&facts))
}
