//! Judges the facts about the members of a cluster by the promises of the locks.

use std::collections::BTreeSet;
use std::time::Duration;

use super::protocol::messages::{Member, StatusResponse};
use super::transport::dial::{Cluster, Version};
use crate::backend::latency::latency;
use crate::types::finding::{Finding, Severity};

use Severity::{Error, Notice, Warning};

/// The quota of a member that does not report its own.
const DEFAULT_QUOTA: u64 = 2 << 30;
/// Longer than a write takes with a disk that etcd is made for.
const SLOW: Duration = Duration::from_millis(100);

/// The facts about a cluster.
#[derive(Default)]
pub(super) struct Facts {
    /// The last answer of a member; `None` if none has answered.
    pub(super) cluster: Option<Cluster>,
    pub(super) members: Vec<Member>,
    /// Why the user may not ask for them.
    pub(super) members_denied: Option<String>,
    /// Those that are named, in their order.
    pub(super) seen: Vec<Seen>,
    /// How long writes took.
    pub(super) times: Vec<Duration>,
    /// Why they could not be made.
    pub(super) refused: Option<String>,
}

/// A named member and its status; or the reason why the user may not ask for the status,
/// or why the member does not answer.
pub(super) struct Seen {
    pub(super) host: String,
    pub(super) status: Result<Result<StatusResponse, String>, String>,
}

impl Facts {
    /// The members that answer.
    fn up(&self) -> impl Iterator<Item = &Result<StatusResponse, String>> {
        self.seen.iter().filter_map(|it| it.status.as_ref().ok())
    }

    fn statuses(&self) -> impl Iterator<Item = &StatusResponse> {
        self.up().filter_map(|it| it.as_ref().ok())
    }

    /// Why the user may ask none of them about itself.
    fn status_denied(&self) -> Option<&str> {
        let denied = self.up().find_map(|it| it.as_ref().err());
        denied
            .filter(|_| self.statuses().next().is_none())
            .map(|it| &**it)
    }
}

/// Judges the facts, one check after the other.
pub(super) fn findings(facts: Facts) -> Vec<Finding> {
    let mut findings = vec![members(&facts)];
    if let Some(why) = facts.status_denied() {
        findings.push(unknown_version(why));
    } else if facts.cluster.is_some() {
        findings.extend([
            version(&facts),
            leader(&facts),
            alarms(&facts),
            quota(&facts),
        ]);
    }
    findings.extend(rights(&facts));
    findings.extend(latency(
        facts.times,
        SLOW,
        "every lock waits for such writes, and leases are lost where a renewal takes too long: \
         a ttl should be fifty times as long",
        "look at the disks of the members (etcd_disk_wal_fsync_duration_seconds) and the ways between them",
    ));
    findings
}

fn members(facts: &Facts) -> Finding {
    let named = facts.seen.len();
    let up = facts.up().count();
    let Some(cluster) = &facts.cluster else {
        let found = format!("none of {named} answers");
        return Finding::fine("members", found).but(
            Error,
            "nobody can lock, and held locks are lost at their deadlines",
            down(facts),
        );
    };
    let voters = cluster.size(named);
    let vote = if voters == 1 { "votes" } else { "vote" };
    let counted = match &facts.members_denied {
        None => format!("{voters} {vote}"),
        Some(why) => format!("how many vote may not be asked ({why})"),
    };
    let finding = Finding::fine(
        "members",
        format!("{counted}; {up} of the {named} that the URL names answer"),
    );
    if up < cluster.needed(named) {
        let meaning = "no lease can be confirmed: held locks are lost at their deadlines";
        return finding.but(Error, meaning, down(facts));
    }
    if up < named {
        let meaning = "fewer members may fail before no lease can be confirmed";
        return finding.but(Warning, meaning, down(facts));
    }
    if facts.members_denied.is_some() {
        return finding.but(
            Notice,
            "the members that the URL names count as all: others would confirm no lease",
            "make sure that the URL names all members, or update etcd",
        );
    }
    if voters == 1 {
        return finding.but(
            Notice,
            "while this member is down, nobody can lock, and held locks are lost",
            "run three members, which go on without one of them",
        );
    }
    if named < voters {
        let meaning = "members that are not named confirm no lease";
        return finding.but(Notice, meaning, "name all members in the URL");
    }
    finding.unless(
        voters % 2 == 1,
        Notice,
        "an even number goes on without no more members than one fewer would",
        "run three or five members",
    )
}

/// Advice about members that do not answer.
fn down(facts: &Facts) -> String {
    let all = facts.seen.iter();
    let down = all.filter_map(|it| Some(format!("{}: {}", it.host, it.status.as_ref().err()?)));
    format!("start them: {}", down.collect::<Vec<_>>().join("; "))
}

fn version(facts: &Facts) -> Finding {
    let versions: BTreeSet<_> = facts.statuses().map(|it| &*it.version).collect();
    let found: Vec<_> = versions.into_iter().collect();
    let finding = Finding::fine("version", format!("etcd {}", found.join(", ")));
    let is_old = |it: &&str| !Version::read(it).ends_leases_as_leader();
    let size = facts
        .cluster
        .as_ref()
        .map_or(0, |it| it.size(facts.seen.len()));
    if size > 1 && found.iter().any(is_old) {
        return finding.but(
            Warning,
            "a leader that hangs until another member leads, and then goes on, ends leases that were renewed \
             meanwhile: their locks are lost, and the next holders enter before the former ones have noticed",
            "update to etcd 3.4.31, 3.5.13 or newer",
        );
    }
    finding.unless(
        found.len() == 1,
        Notice,
        "members of several versions offer what the oldest one can do",
        "finish the update",
    )
}

/// Replaces what members say of themselves.
fn unknown_version(why: &str) -> Finding {
    let found = format!("version, leader, alarms and quota may not be asked for ({why})");
    Finding::fine("version", found).but(
        Notice,
        "a majority of the members confirms each lease, as with a version that needs it",
        "run the doctor as a user with the role `root`, or update etcd",
    )
}

fn leader(facts: &Facts) -> Finding {
    let leaders: BTreeSet<_> = facts.statuses().map(|it| it.leader).collect();
    let leaders: Vec<_> = leaders.into_iter().collect();
    let [leader] = leaders[..] else {
        return Finding::fine("leader", "the members do not agree who leads").but(
            Warning,
            "a member that is behind or cut off may answer with what was so before",
            "look again; if it stays so, look at the network between the members",
        );
    };
    let found = match facts.members.iter().find(|it| it.id == leader) {
        Some(member) => format!("`{}` leads", member.name),
        None if leader == 0 => "no member leads".to_owned(),
        None => format!("the member {leader:x} leads"),
    };
    Finding::fine("leader", found).unless(
        leader != 0,
        Error,
        "without a leader nobody can lock, and held locks are lost at their deadlines",
        "start the members that are down: a majority elects one",
    )
}

fn alarms(facts: &Facts) -> Finding {
    let errors = facts.statuses().flat_map(|it| &it.errors);
    // Such as `memberID:10276657743932975437 alarm:NOSPACE`.
    let raised = errors.filter_map(|it| it.split_once("alarm:"));
    let raised: BTreeSet<_> = raised.map(|(_, alarm)| alarm.trim()).collect();
    if raised.is_empty() {
        return Finding::fine("alarms", "none");
    }
    let names: Vec<_> = raised.iter().copied().collect();
    let finding = Finding::fine("alarms", names.join(", "));
    if raised.contains("CORRUPT") {
        return finding.but(
            Error,
            "the data of a member differs from that of the others: no promise holds",
            "replace that member by a new one (etcdctl member remove, member add)",
        );
    }
    finding.but(
        Error,
        "etcd accepts no writes: nobody can take a lock, and releases wait; held locks are renewed",
        "etcdctl compact and defrag, or raise --quota-backend-bytes; then etcdctl alarm disarm",
    )
}

/// How much of its quota the fullest member has used.
fn quota(facts: &Facts) -> Finding {
    let bytes = |number: i64| u64::try_from(number).unwrap_or(0);
    let reported = facts.statuses().map(|it| bytes(it.db_size_quota)).max();
    let reported = reported.filter(|quota| *quota > 0);
    let quota = reported.unwrap_or(DEFAULT_QUOTA);
    let size = facts.statuses().map(|it| bytes(it.db_size)).max();
    let in_use = facts.statuses().map(|it| bytes(it.db_size_in_use)).max();
    let (size, in_use) = (size.unwrap_or(0), in_use.unwrap_or(0));
    let percent = size.saturating_mul(100) / quota;
    let [size, in_use, of] = [size, in_use, quota].map(megabytes);
    let from = if reported.is_some() {
        ""
    } else {
        ", etcd's default, since this version does not report it"
    };
    let found = format!("{size} on disk, {in_use} in use; {percent} % of {of}{from}");
    let severity = if percent < 95 { Warning } else { Error };
    Finding::fine("quota", found).unless(
        percent < 80,
        severity,
        "when it is full, etcd accepts no writes: nobody can take a lock, and releases wait",
        "set --auto-compaction-retention and run etcdctl defrag, or raise --quota-backend-bytes",
    )
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1 << 20))
}

fn rights(facts: &Facts) -> Option<Finding> {
    facts.cluster.as_ref()?;
    let Some(why) = &facts.refused else {
        let found = "what locks write may be written";
        return Some(Finding::fine("rights", found));
    };
    Some(Finding::fine("rights", format!("a write is refused: {why}")).but(
        Error,
        "locks cannot be taken, renewed or released",
        "etcdctl role grant-permission ROLE --prefix=true readwrite PREFIX/, if a right is missing",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::etcd::transport::dial::Version;

    /// A cluster of so many members, of which all are named and answer.
    fn healthy(voters: usize) -> Facts {
        let status = StatusResponse {
            version: "3.6.5".to_owned(),
            leader: 1,
            db_size: 4 << 20,
            db_size_in_use: 1 << 20,
            db_size_quota: 1 << 30,
            ..StatusResponse::default()
        };
        let member = |id: usize| Member {
            id: id as u64,
            name: format!("m{id}"),
            is_learner: false,
        };
        let seen = |id: usize| Seen {
            host: format!("h{id}:2379"),
            status: Ok(Ok(status.clone())),
        };
        Facts {
            cluster: Some(Cluster {
                voters: Some((1..=voters as u64).collect()),
                version: Some(Version([3, 6, 5])),
            }),
            members: (1..=voters).map(member).collect(),
            seen: (1..=voters).map(seen).collect(),
            times: vec![Duration::from_millis(2)],
            refused: None,
            members_denied: None,
        }
    }

    /// The status that a member reports of itself.
    fn status(seen: &mut Seen) -> &mut StatusResponse {
        let answer = seen.status.as_mut().expect("it answers");
        answer.as_mut().expect("the user may ask")
    }

    /// The finding of a check.
    fn found(facts: Facts, check: &str) -> Finding {
        let all = findings(facts);
        let found = all.into_iter().find(|it| it.check == check);
        found.expect("a finding of this check")
    }

    #[test]
    fn a_healthy_cluster_is_fine() {
        for finding in findings(healthy(3)) {
            assert_eq!(finding.severity, Severity::Fine, "{finding:?}");
        }
    }

    #[test]
    fn members_that_are_down_are_named() {
        for (voters, down, severity) in [(3, 1, Warning), (3, 2, Error), (1, 0, Notice)] {
            let mut facts = healthy(voters);
            for seen in &mut facts.seen[..down] {
                seen.status = Err("refused".to_owned());
            }
            let finding = found(facts, "members");
            assert_eq!(finding.severity, severity, "{finding:?}");
            let advice = finding.advice.unwrap_or_default();
            assert_eq!(advice.contains("h1:2379: refused"), down > 0);
        }
    }

    #[test]
    fn a_cluster_without_a_leader_or_with_two_is_found() {
        for (leader, severity) in [(0, Error), (1, Severity::Fine)] {
            let mut facts = healthy(3);
            for seen in &mut facts.seen {
                status(seen).leader = leader;
            }
            assert_eq!(found(facts, "leader").severity, severity);
        }
        let mut facts = healthy(3);
        status(&mut facts.seen[0]).leader = 2;
        assert_eq!(found(facts, "leader").severity, Warning);
    }

    #[test]
    fn members_that_end_leases_of_others_are_found() {
        for (version, voters, severity) in [
            ("3.4.23", 3, Warning),
            ("3.4.23", 1, Severity::Fine),
            ("3.4.31", 3, Notice),
            ("3.5.12", 3, Warning),
            ("3.6.5", 3, Severity::Fine),
        ] {
            let mut facts = healthy(voters);
            version.clone_into(&mut status(&mut facts.seen[0]).version);
            let finding = found(facts, "version");
            assert_eq!(finding.severity, severity, "{finding:?}");
        }
    }

    #[test]
    fn a_quota_that_is_nearly_used_up_is_found() {
        for (size, quota, severity) in [
            (700, 1000, Severity::Fine),
            (800, 1000, Warning),
            (950, 1000, Error),
            (700, 0, Severity::Fine),
            (1700, 0, Warning),
        ] {
            let mut facts = healthy(3);
            status(&mut facts.seen[1]).db_size = size << 20;
            for seen in &mut facts.seen {
                status(seen).db_size_quota = quota << 20;
            }
            assert_eq!(
                found(facts, "quota").severity,
                severity,
                "{size} of {quota}"
            );
        }
    }
}
