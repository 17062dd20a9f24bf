//! Judges the facts about a Redis server by the promises of the locks.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backend::latency::latency;
use crate::types::finding::{Finding, Severity};

use Severity::{Error, Notice, Warning};

/// Longer than a round trip to a server takes that is near and has little to do.
const SLOW: Duration = Duration::from_millis(50);

/// The first version whose scripts obey `min-replicas-to-write` (its release notes).
const HEEDS_REPLICAS: [u32; 3] = [6, 2, 7];

/// The facts about a server.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Whether calls name all keys of a lock, which a cluster needs.
    pub(super) declared: bool,
    /// The lines of `INFO`, and settings.
    pub(super) values: BTreeMap<String, String>,
    /// Why there is no `INFO`.
    pub(super) no_info: Option<String>,
    /// Why settings are unknown.
    pub(super) no_config: Option<String>,
    /// Commands of the scripts that were refused, and why.
    pub(super) refused: Vec<(String, String)>,
    /// Commands and subcommands that locks do without, and why they were refused.
    pub(super) useless: Vec<(&'static str, &'static str, String)>,
    /// How long each question after the clock took.
    pub(super) round_trips: Vec<Duration>,
    /// That time, the server's clock and ours.
    pub(super) clocks: Vec<(Duration, Duration, Duration)>,
    pub(super) lasting: Lasting,
}

/// Keys under the prefix that never expire and should.
#[derive(Debug, Default)]
pub(super) struct Lasting {
    pub(super) count: usize,
    pub(super) first: Option<Box<str>>,
    /// Whether all keys were looked at.
    pub(super) is_complete: bool,
}

/// Judges the facts, one check after the other.
pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &facts.no_info {
        Some(why) => findings.push(unknown("server", "INFO", why)),
        None => {
            findings.extend([
                version(facts),
                role(facts),
                cluster(facts),
                eviction(facts),
                memory(facts),
                persistence(facts),
                writes(facts),
                replicas(facts),
                scripts(facts),
            ]);
        }
    }
    findings.extend(
        facts
            .no_config
            .as_ref()
            .map(|why| unknown("settings", "CONFIG GET", why)),
    );
    findings.extend(rights(facts));
    findings.extend(useful(facts));
    findings.push(lasting(&facts.lasting));
    findings.extend(clock(facts));
    findings.extend(latency(
        facts.round_trips.clone(),
        SLOW,
        "short leases are lost where a renewal takes too long: a ttl should be fifty times as long",
        "look for slow commands (SLOWLOG GET), swapping and the way between the machines",
    ));
    findings
}

fn unknown(check: &'static str, command: &str, why: &str) -> Finding {
    Finding::fine(
        check,
        format!("not known: {command} was answered with `{why}`"),
    )
    .but(
        Notice,
        "what depends on it was not checked",
        format!("run the diagnosis as a user who may send {command}"),
    )
}

impl Facts {
    fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", |it| it.trim())
    }

    fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }
}

fn version(facts: &Facts) -> Finding {
    let valkey = facts.text("valkey_version");
    let redis = facts.text("redis_version");
    let name = if valkey.is_empty() {
        format!("Redis {redis}")
    } else {
        format!("Valkey {valkey}")
    };
    let mut numbers = redis.split('.').map(|it| it.parse::<u32>().unwrap_or(0));
    let version = [0; 3].map(|_| numbers.next().unwrap_or(0));
    if version >= [6, 2, 0] && version < HEEDS_REPLICAS {
        return Finding::fine("version", name).but(
            Warning,
            "scripts ignore `min-replicas-to-write`: a master that is cut off grants locks beside the next one",
            "run Redis 6.2.7 or newer where replicas take over",
        );
    }
    Finding::fine("version", name).unless(
        version >= [6, 2, 0],
        Error,
        "the scripts need commands that it does not have",
        "run Redis 6.2 or newer, or Valkey",
    )
}

fn role(facts: &Facts) -> Finding {
    let role = facts.text("role");
    Finding::fine("role", format!("the server is a {role}")).unless(
        role == "master",
        Error,
        "a replica takes no writes: nobody can lock",
        "name the master in the URL",
    )
}

fn cluster(facts: &Facts) -> Finding {
    if facts.number("cluster_enabled") == 0 {
        return Finding::fine("cluster", "not part of a cluster");
    }
    Finding::fine("cluster", "the server is part of a cluster").unless(
        facts.declared,
        Error,
        "the keys of a lock and the counter of fencing tokens are on different servers",
        "name the cluster with `redis+cluster://`",
    )
}

fn eviction(facts: &Facts) -> Finding {
    let policy = facts.text("maxmemory_policy");
    let evicted = facts.number("evicted_keys");
    let said = match evicted {
        0 => format!("maxmemory-policy {policy}"),
        _ => format!("maxmemory-policy {policy}, {evicted} keys evicted so far"),
    };
    let (severity, meaning) = match facts.number("maxmemory") {
        0 => (
            Warning,
            "once a limit is set, a full server drops held locks, which then have two holders",
        ),
        _ => (
            Error,
            "a full server drops held locks, which then have two holders: no mutual exclusion",
        ),
    };
    Finding::fine("eviction", said).unless(
        policy == "noeviction",
        severity,
        meaning,
        "CONFIG SET maxmemory-policy noeviction, and in redis.conf",
    )
}

fn memory(facts: &Facts) -> Finding {
    let (used, most) = (facts.number("used_memory"), facts.number("maxmemory"));
    let in_use = facts.text("used_memory_human");
    if most == 0 {
        return Finding::fine("memory", format!("{in_use} in use, no limit set"));
    }
    let percent = used.saturating_mul(100) / most;
    let limit = facts.text("maxmemory_human");
    let found = format!("{in_use} of {limit} in use ({percent} %)");
    let (severity, meaning) = match percent {
        0..95 => (
            Warning,
            "when it is full, nobody can take a lock; holders keep theirs",
        ),
        _ => (
            Error,
            "it is full or nearly so: nobody can take a lock; holders keep theirs",
        ),
    };
    Finding::fine("memory", found).unless(
        percent < 80,
        severity,
        meaning,
        "raise maxmemory, or find what fills it",
    )
}

fn persistence(facts: &Facts) -> Finding {
    let fsync = facts.text("appendfsync");
    let (aof, save) = (facts.number("aof_enabled") == 1, facts.text("save"));
    let advice =
        "appendonly yes and appendfsync always, where locks must survive a crash of the server";
    if aof && (fsync == "always") {
        return synced(facts);
    }
    if aof {
        let found = format!(
            "appendonly yes, appendfsync {}",
            if fsync.is_empty() { "unknown" } else { fsync }
        );
        return Finding::fine("persistence", found).but(
            Notice,
            "a crash forgets the grants of the last second or so: locks that the server forgets have two holders until the next renewal",
            advice,
        );
    }
    let found = match save {
        "" => "none".to_owned(),
        save => format!("snapshots alone (save {save})"),
    };
    Finding::fine("persistence", found).but(
        Warning,
        "a restart forgets held locks, which then have two holders until the next renewal; fencing tokens go on growing",
        advice,
    )
}

/// A server that syncs each write; one setting makes an exception while it saves.
fn synced(facts: &Facts) -> Finding {
    let found = "appendonly yes, appendfsync always";
    if facts.text("no-appendfsync-on-rewrite") != "yes" {
        return Finding::fine("persistence", found);
    }
    Finding::fine("persistence", format!("{found}, no-appendfsync-on-rewrite yes")).but(
        Notice,
        "a crash during a snapshot or a rewrite may forget the grants since its start: locks that the server forgets have \
         two holders until the next renewal",
        "CONFIG SET no-appendfsync-on-rewrite no, and in redis.conf, where locks must survive a crash of the server",
    )
}

/// Whether the server refuses writes because it could not save.
fn writes(facts: &Facts) -> Finding {
    let failed = |name: &str| !matches!(facts.text(name), "ok" | "");
    let snapshot = failed("rdb_last_bgsave_status");
    if failed("aof_last_write_status") {
        return writes_refused(facts, "aof_last_write_status");
    }
    if snapshot && stops_at_failed_snapshot(facts) {
        return writes_refused(facts, "rdb_last_bgsave_status");
    }
    if facts.number("loading") == 1 {
        let found = "the server is loading its data";
        return Finding::fine("writes", found).but(
            Warning,
            "until it is done, nobody can lock",
            "wait",
        );
    }
    Finding::fine("writes", "accepted").unless(
        !snapshot,
        Notice,
        "the last snapshot failed, but the settings of the server let it accept writes",
        "look into the server's log; the disk may be full",
    )
}

fn writes_refused(facts: &Facts, name: &str) -> Finding {
    Finding::fine("writes", format!("{name} is {}", facts.text(name))).but(
        Error,
        "a server that cannot save refuses writes: nobody can lock or renew",
        "look into the server's log; the disk may be full",
    )
}

/// Whether a failed snapshot stops writes. Settings that are unknown count as the defaults.
fn stops_at_failed_snapshot(facts: &Facts) -> bool {
    let stops = facts.text("stop-writes-on-bgsave-error") != "no";
    let save = facts.values.get("save");
    stops && save.is_none_or(|it| !it.trim().is_empty())
}

/// How many replicas are looked at.
const MOST_REPLICAS: u64 = 1_000;

fn replicas(facts: &Facts) -> Finding {
    let replicas = facts.number("connected_slaves");
    if replicas == 0 {
        return Finding::fine("replicas", "none");
    }
    let lags: Vec<u64> = (0..replicas.min(MOST_REPLICAS))
        .filter_map(|number| {
            let line = facts.text(&format!("slave{number}"));
            line.rsplit_once("lag=")?.1.parse().ok()
        })
        .collect();
    let worst = lags
        .iter()
        .max()
        .map_or("unknown".to_owned(), |lag| format!("{lag} s"));
    let found = format!(
        "{replicas}, the slowest heard of {worst} ago; min-replicas-to-write {}, min-replicas-max-lag {}",
        facts.number("min-replicas-to-write"),
        facts.number("min-replicas-max-lag"),
    );
    if replicas == 1 {
        return Finding::fine("replicas", found).but(
            Notice,
            "a replica that is promoted may not know the last grants; and once it is promoted, it has no replica: \
             with `replicas = 1` nobody can lock until another one joins",
            "two replicas a master, and `replicas = 1`, to survive one failure; let the resource check fencing tokens",
        );
    }
    Finding::fine("replicas", found).but(
        Notice,
        "a replica that is promoted may not know the last grants: locks that it does not know have two holders",
        "let the resource check fencing tokens; min-replicas-to-write bounds how much a cut-off master may grant",
    )
}

fn scripts(facts: &Facts) -> Finding {
    let count = facts.number("number_of_cached_scripts");
    Finding::fine("scripts", format!("{count} cached")).unless(
        count < 1_000,
        Notice,
        "some client makes a script for each call, which fills the memory; ours are ten",
        "find that client, and SCRIPT FLUSH",
    )
}

fn rights(facts: &Facts) -> Vec<Finding> {
    if facts.refused.is_empty() {
        return vec![Finding::fine(
            "rights",
            "every command of the scripts is allowed",
        )];
    }
    let refused = facts.refused.iter().map(|(command, why)| {
        let lower = command.to_lowercase();
        Finding::fine("rights", format!("{command} is refused: {why}")).but(
            Error,
            "locks cannot be taken, waited for, renewed or released",
            format!("ACL SETUSER … +{lower} ~PREFIX:* &PREFIX:*"),
        )
    });
    refused.collect()
}

fn useful(facts: &Facts) -> impl Iterator<Item = Finding> {
    facts.useless.iter().map(|(command, sub, why)| {
        let meaning = match *sub {
            "LOAD" => "scripts are sent with their first call instead, which is slower once",
            _ => "commands of a broken connection may still be carried out late; the scripts bear that",
        };
        let right = format!("{}|{}", command.to_lowercase(), sub.to_lowercase());
        let found = format!("{command} {sub} is refused: {why}");
        Finding::fine("rights", found).but(Notice, meaning, format!("ACL SETUSER … +{right}"))
    })
}

fn lasting(found: &Lasting) -> Finding {
    let seen = if found.is_complete {
        ""
    } else {
        " of the first that were looked at"
    };
    let Some(first) = &found.first else {
        return Finding::fine("keys", format!("all{seen} expire"));
    };
    let count = found.count;
    Finding::fine("keys", format!("{count}{seen} never expire, `{first}` is one")).but(
        Notice,
        "locks make no such keys: what belongs to a lock stays with it for ever, and the rest fills the memory",
        "find who writes them, and let them set a ttl; delete what is left over",
    )
}

fn clock(facts: &Facts) -> Option<Finding> {
    let (took, theirs, ours) = facts.clocks.iter().min()?;
    let (ahead, behind) = (theirs.saturating_sub(*ours), ours.saturating_sub(*theirs));
    let apart = ahead.max(behind);
    let direction = if ahead > behind { "ahead of" } else { "behind" };
    let (apart_ms, give) = (apart.as_millis(), took.as_micros().div_ceil(2000).max(1));
    let found =
        format!("the server's clock is {apart_ms} ms {direction} ours, give or take {give} ms");
    Some(Finding::fine("clock", found).unless(
        apart.as_secs() == 0,
        Warning,
        "leases do not compare the two clocks, but a clock that is set forward while the server runs ends leases early",
        "let both machines follow the same time, slewed and not stepped",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<const N: usize>(lines: [(&str, &str); N]) -> Facts {
        let lines = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Facts {
            values: lines.into(),
            ..Facts::default()
        }
    }

    #[test]
    fn versions_are_warned_of_whose_scripts_ignore_missing_replicas() {
        for (version, severity) in [
            ("6.0.16", Error),
            ("6.2.0", Warning),
            ("6.2.6", Warning),
            ("6.2.7", Severity::Fine),
            ("7.0.15", Severity::Fine),
        ] {
            let facts = facts([("redis_version", version)]);
            assert_eq!(super::version(&facts).severity, severity, "{version}");
        }
    }

    #[test]
    fn replicas_that_no_server_can_have_take_no_time() {
        let most = u64::MAX.to_string();
        let facts = facts([
            ("connected_slaves", &*most),
            ("slave0", "ip=127.0.0.1,state=online,lag=3"),
        ]);
        let found = replicas(&facts).found;
        assert!(found.contains("heard of 3 s ago"), "{found}");
    }

    #[test]
    fn a_failed_snapshot_stops_writes_by_the_settings_alone() {
        const POINTS: &str = "3600 1";
        for (stops, save, severity) in [
            (Some("yes"), Some(POINTS), Error),
            (Some("no"), Some(POINTS), Notice),
            (Some("yes"), Some(""), Notice),
            // Unknown.
            (None, Some(POINTS), Error),
            (Some("yes"), None, Error),
            (None, None, Error),
        ] {
            let mut facts = facts([("rdb_last_bgsave_status", "err")]);
            let settings = [("stop-writes-on-bgsave-error", stops), ("save", save)];
            for (name, value) in settings {
                let value = value.map(|it| (name.to_owned(), it.to_owned()));
                facts.values.extend(value);
            }
            assert_eq!(writes(&facts).severity, severity, "{stops:?} {save:?}");
        }
    }

    #[test]
    fn a_failed_write_to_the_log_stops_writes_whatever_the_settings() {
        let facts = facts([
            ("aof_last_write_status", "err"),
            ("stop-writes-on-bgsave-error", "no"),
            ("save", ""),
        ]);
        assert_eq!(writes(&facts).severity, Error);
    }
}
