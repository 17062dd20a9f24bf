//! Judges the facts about a server by the promises of the locks.

use std::collections::BTreeMap;
use std::time::Duration;

use super::transport::server::keeps_commits;
use crate::backend::latency::latency;
use crate::types::finding::{Finding, Severity};

use Severity::{Error, Notice, Warning};

/// Longer than a round trip to a server takes that is near and has little to do.
const SLOW: Duration = Duration::from_millis(50);
const LONG_TRANSACTION: u64 = 300;
/// Megabytes of tables that hold a few locks each.
const LARGE: u64 = 1024;

/// The facts about a server.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) values: BTreeMap<String, String>,
    /// The questions that the server did not answer, and why.
    pub(super) unknown: Vec<(&'static str, String)>,
    pub(super) is_quarantined: bool,
    pub(super) round_trips: Vec<Duration>,
}

impl Facts {
    fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", |it| it.as_str())
    }

    fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }
}

type Check = fn(&Facts) -> Finding;

/// Judges the facts, one check after the other.
pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let checks: [(&str, Check); 5] = [
        ("settings", version),
        ("settings", persistence),
        ("connections", connections),
        ("transactions", transactions),
        ("tables", tables),
    ];
    let is_known = |about: &str| facts.unknown.iter().all(|(it, _)| *it != about);
    let known = checks.iter().filter(|(about, _)| is_known(about));
    let mut findings: Vec<_> = known.map(|(_, check)| check(facts)).collect();
    findings.extend(facts.unknown.iter().map(|(about, why)| unknown(about, why)));
    findings.extend(latency(
        facts.round_trips.clone(),
        SLOW,
        "short leases are lost where a renewal takes too long: a ttl should be fifty times as long",
        "look for a server that is overloaded, and at the way between the machines",
    ));
    findings
}

fn unknown(about: &'static str, why: &str) -> Finding {
    Finding::fine(about, format!("not known: {why}")).but(
        Notice,
        "what depends on it was not checked",
        "run the diagnosis as a user with the right `PROCESS`",
    )
}

fn version(facts: &Facts) -> Finding {
    Finding::fine("version", facts.text("version"))
}

fn persistence(facts: &Facts) -> Finding {
    let (flush, pages) = (
        facts.text("innodb_flush_log_at_trx_commit"),
        facts.text("innodb_doublewrite"),
    );
    let (binary_log, sync) = (facts.text("log_bin"), facts.text("sync_binlog"));
    let found = format!(
        "innodb_flush_log_at_trx_commit {flush}, innodb_doublewrite {pages}, log_bin {binary_log}, sync_binlog {sync}"
    );
    let finding = Finding::fine("persistence", found);
    if keeps_commits(flush, binary_log, sync) {
        return finding;
    }
    let severity = if facts.is_quarantined { Notice } else { Error };
    finding.but(
        severity,
        "a crash of the server forgets the last grants: the quarantine alone keeps locks from a second holder",
        "innodb_flush_log_at_trx_commit = 1, and sync_binlog = 1 beside a binary log, where a restart must not stop all grants \
         for that time",
    )
}

fn connections(facts: &Facts) -> Finding {
    let (used, most) = (
        facts.number("Threads_connected"),
        facts.number("max_connections"),
    );
    let found = format!("{used} of {most} in use");
    let (severity, meaning) = if used >= most {
        (
            Error,
            "a connection that breaks cannot be opened again: its leases end",
        )
    } else {
        (
            Warning,
            "soon a connection that breaks cannot be opened again: its leases would end",
        )
    };
    let is_fine = used.saturating_mul(10) < most.saturating_mul(9);
    Finding::fine("connections", found).unless(is_fine, severity, meaning, "raise max_connections")
}

fn transactions(facts: &Facts) -> Finding {
    let oldest = facts.number("oldest");
    let found = match oldest {
        0 => "none is old".to_owned(),
        _ => format!("the oldest has been open for {oldest} s"),
    };
    Finding::fine("transactions", found).unless(
        oldest < LONG_TRANSACTION,
        Notice,
        "calls get slower while it is open: no former version of a row can be removed",
        "look for it in information_schema.INNODB_TRX",
    )
}

fn tables(facts: &Facts) -> Finding {
    let size = facts.number("size");
    Finding::fine("tables", format!("{size} MB")).unless(
        size < LARGE,
        Notice,
        "the tables of the locks grow: rows that are out of date are not removed fast enough",
        "look for old transactions, and for a user that takes a new lock for each call",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let values = [
            ("version", "10.11.19-MariaDB"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_doublewrite", "ON"),
            ("log_bin", "ON"),
            ("sync_binlog", "1"),
            ("max_connections", "151"),
            ("Threads_connected", "12"),
            ("oldest", "0"),
            ("size", "3"),
        ];
        Facts {
            values: values.map(|(name, it)| (name.into(), it.into())).into(),
            round_trips: vec![Duration::from_millis(1); 10],
            ..Facts::default()
        }
    }

    /// The checks with findings that are not fine.
    fn amiss(facts: &Facts) -> Vec<(&'static str, Severity)> {
        let findings = findings(facts).into_iter();
        let amiss = findings.filter(|it| it.severity != Severity::Fine);
        amiss.map(|it| (it.check, it.severity)).collect()
    }

    #[test]
    fn a_server_as_it_should_be_is_fine() {
        assert_eq!(amiss(&facts()), []);
    }

    #[test]
    fn each_fact_that_locks_suffer_from_is_found() {
        for (name, value, check, severity) in [
            ("innodb_flush_log_at_trx_commit", "2", "persistence", Error),
            ("sync_binlog", "0", "persistence", Error),
            ("Threads_connected", "140", "connections", Warning),
            ("Threads_connected", "151", "connections", Error),
            ("oldest", "301", "transactions", Notice),
            ("size", "2000", "tables", Notice),
        ] {
            let mut facts = facts();
            facts.values.insert(name.into(), value.into());
            assert_eq!(amiss(&facts), [(check, severity)]);
        }
    }

    #[test]
    fn what_a_user_may_not_see_is_said() {
        let mut facts = facts();
        facts.unknown.push(("transactions", "denied".into()));
        assert_eq!(amiss(&facts), [("transactions", Notice)]);
    }
}
