//! Judges the facts about a server by the promises of the locks.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backend::latency::latency;
use crate::types::finding::{Finding, Severity};

use Severity::{Error, Notice, Warning};

/// Longer than a round trip to a server takes that is near and has little to do.
const SLOW: Duration = Duration::from_millis(50);
/// Before this version, a notification wakes every connection that listens to anything.
const WAKES_ONE: u64 = 190_000;
const MANY_CLIENTS: u64 = 100;
const LONG_TRANSACTION: u64 = 300;
const MANY_DEAD_ROWS: u64 = 100_000;

/// The facts about a server.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) values: BTreeMap<String, String>,
    /// The questions that the server did not answer, and why.
    pub(super) unknown: Vec<(&'static str, String)>,
    pub(super) is_pooled: bool,
    /// Whether grants wait for the disk.
    pub(super) is_durable: bool,
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
    let checks: [(&str, Check); 11] = [
        ("settings", version),
        ("schema", schema),
        ("rights", rights),
        ("", pooler),
        ("settings", persistence),
        ("replicas", replicas),
        ("connections", connections),
        ("transactions", transactions),
        ("notifications", notifications),
        ("publications", publications),
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
        "run the diagnosis as a user with the role `pg_monitor`",
    )
}

fn version(facts: &Facts) -> Finding {
    Finding::fine(
        "version",
        format!("PostgreSQL {}", facts.text("server_version")),
    )
}

fn schema(facts: &Facts) -> Finding {
    Finding::fine("schema", format!("version {}", facts.text("schema")))
}

fn rights(facts: &Facts) -> Finding {
    let refused = facts.text("refused");
    if refused.is_empty() {
        return Finding::fine("rights", "every function of the schema may be called");
    }
    Finding::fine("rights", format!("the user may not call {refused}")).but(
        Error,
        "locks cannot be taken, waited for, renewed or released",
        "GRANT USAGE ON SCHEMA … and EXECUTE ON these functions to the user",
    )
}

fn pooler(facts: &Facts) -> Finding {
    if !facts.is_pooled {
        return Finding::fine("pooler", "none");
    }
    Finding::fine("pooler", "a pooler stands in front of the server").but(
        Notice,
        "waiters ask again and again, so a hand-over takes up to 250 ms, and one to a waiter that has died 3 s",
        "name the server itself in the URL: a manager needs one connection",
    )
}

fn persistence(facts: &Facts) -> Finding {
    let (fsync, pages) = (facts.text("fsync"), facts.text("full_page_writes"));
    if fsync != "on" || pages != "on" {
        return Finding::fine("persistence", format!("fsync {fsync}, full_page_writes {pages}")).but(
            Error,
            "a crash of the machine may forget grants, which then have two holders, or damage the database",
            "fsync = on and full_page_writes = on in postgresql.conf",
        );
    }
    Finding::fine("persistence", format!("fsync {fsync}, commit {}", commit(facts))).unless(
        facts.is_durable,
        Notice,
        "a crash of the server forgets the last grants: the quarantine alone keeps locks from a second holder",
        "leave out `commit=async` where a restart must not stop all grants for that time",
    )
}

fn commit(facts: &Facts) -> &'static str {
    if facts.is_durable { "sync" } else { "async" }
}

fn replicas(facts: &Facts) -> Finding {
    let all = facts.number("standbys");
    if all == 0 {
        return Finding::fine("replicas", "none");
    }
    if facts.number("hidden") > 0 {
        return Finding::fine("replicas", format!("{all} standbys")).but(
            Notice,
            "whether grants wait for them is not shown to this user",
            "run the diagnosis as a user with the role `pg_monitor`",
        );
    }
    let synchronous = facts.number("synchronous");
    let is_local = facts.text("synchronous_commit") == "local";
    let found = if is_local {
        format!("{all} standbys, and the user's synchronous_commit waits for none")
    } else {
        format!("{all} standbys, {synchronous} of them synchronous")
    };
    Finding::fine("replicas", found).unless(
        synchronous > 0 && !is_local,
        Notice,
        "a standby that is promoted may not know the last grants: locks that it does not know have two holders",
        "let transactions call `assert_fence`; or set synchronous_standby_names and `replicas`, or `quarantine`",
    )
}

fn connections(facts: &Facts) -> Finding {
    let used = facts.number("connections");
    let most = facts.number("max_connections");
    let most = most.saturating_sub(facts.number("superuser_reserved_connections"));
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
    let advice = "raise max_connections, or put what needs many connections behind a pooler";
    Finding::fine("connections", found).unless(is_fine, severity, meaning, advice)
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
        "the tables of the locks grow while it is open: no old row can be removed",
        "look for it in pg_stat_activity, and set idle_in_transaction_session_timeout",
    )
}

fn notifications(facts: &Facts) -> Finding {
    let (full, clients) = (facts.number("notifications"), facts.number("clients"));
    if full >= 50 {
        return Finding::fine("notifications", format!("the server's queue of them is {full} % full")).but(
            Warning,
            "when it is full, locks cannot be handed over to waiters",
            "look in pg_stat_activity for a connection that listens and whose transaction stays open",
        );
    }
    let is_old = facts.number("server_version_num") < WAKES_ONE;
    let found = format!("{clients} connections of managers, the queue is {full} % full");
    Finding::fine("notifications", found).unless(
        !is_old || clients < MANY_CLIENTS,
        Notice,
        "before PostgreSQL 19, each hand-over wakes all of them that have waiters, which slows all hand-overs",
        "share managers between tasks; or let managers of rare waiters ask instead, with `wake=poll`",
    )
}

fn publications(facts: &Facts) -> Finding {
    let published = facts.text("published");
    if published.is_empty() {
        return Finding::fine("publications", "none is for all tables");
    }
    Finding::fine("publications", format!("{published} is for all tables")).but(
        Notice,
        "every change of a lock is sent to its subscribers as well",
        "publish the tables that are needed, and leave the schema of the locks out",
    )
}

fn tables(facts: &Facts) -> Finding {
    let (dead, live) = (facts.number("dead"), facts.number("live"));
    Finding::fine("tables", format!("{live} rows, {dead} dead ones")).unless(
        dead < MANY_DEAD_ROWS,
        Notice,
        "the tables of the locks grow: rows that are out of date are not removed fast enough",
        "look for old transactions and replication slots, and whether autovacuum runs",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let values = [
            ("server_version", "15.3"),
            ("server_version_num", "150003"),
            ("fsync", "on"),
            ("full_page_writes", "on"),
            ("synchronous_commit", "on"),
            ("max_connections", "100"),
            ("superuser_reserved_connections", "3"),
            ("connections", "10"),
            ("schema", "1"),
        ];
        Facts {
            values: values
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
            is_durable: true,
            round_trips: vec![Duration::from_millis(1)],
            ..Facts::default()
        }
    }

    #[test]
    fn a_server_that_is_as_it_should_be_is_fine() {
        for finding in findings(&facts()) {
            assert_eq!(finding.severity, Severity::Fine, "{finding:?}");
        }
    }

    #[test]
    fn each_fact_that_weakens_a_promise_is_found() {
        let cases: [(&str, &str, &str, Severity); 12] = [
            ("refused", "acquire()", "rights", Error),
            ("fsync", "off", "persistence", Error),
            ("full_page_writes", "off", "persistence", Error),
            ("standbys", "1", "replicas", Notice),
            ("connections", "90", "connections", Warning),
            ("connections", "97", "connections", Error),
            ("oldest", "300", "transactions", Notice),
            ("notifications", "50", "notifications", Warning),
            ("clients", "100", "notifications", Notice),
            ("published", "all", "publications", Notice),
            ("dead", "100000", "tables", Notice),
            ("connections", "1000", "connections", Error),
        ];
        for (name, value, check, severity) in cases {
            let mut facts = facts();
            facts.values.insert(name.into(), value.into());
            let found = findings(&facts);
            let bad: Vec<_> = found
                .iter()
                .filter(|it| it.severity != Severity::Fine)
                .collect();
            let [finding] = &bad[..] else {
                panic!("{name} {value}: {bad:?}");
            };
            assert_eq!((finding.check, finding.severity), (check, severity));
        }
    }

    #[test]
    fn synchronous_standbys_count_unless_the_user_does_not_wait_for_them() {
        for (commit, hidden, severity) in [
            ("on", "0", Severity::Fine),
            ("local", "0", Notice),
            ("on", "1", Notice),
        ] {
            let mut facts = facts();
            let values = [
                ("standbys", "2"),
                ("synchronous", "1"),
                ("synchronous_commit", commit),
                ("hidden", hidden),
            ];
            facts
                .values
                .extend(values.map(|(name, value)| (name.into(), value.into())));
            assert_eq!(replicas(&facts).severity, severity, "{commit} {hidden}");
        }
    }

    #[test]
    fn what_is_not_answered_is_not_called_fine() {
        let mut facts = facts();
        facts.unknown.push(("tables", "no right".into()));
        let found = findings(&facts);
        let [tables] = &found
            .iter()
            .filter(|it| it.check == "tables")
            .collect::<Vec<_>>()[..]
        else {
            panic!("{found:?}");
        };
        assert!(tables.severity == Notice && tables.found.contains("no right"));
    }
}
