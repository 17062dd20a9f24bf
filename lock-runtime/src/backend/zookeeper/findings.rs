//! Judges the facts about the servers of an ensemble by the promises of the locks.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::backend::latency::latency;
use crate::types::finding::{Finding, Severity};

use Severity::{Error, Notice, Warning};

/// Longer than a write takes with a disk that is made for it.
const SLOW: Duration = Duration::from_millis(100);

/// The facts about an ensemble.
pub(super) struct Facts {
    /// How long a session was asked for and granted.
    asked: Duration,
    granted: Duration,
    /// Among others, a line for each server of the ensemble; empty for a single server.
    pub(super) configuration: String,
    /// Those that are named.
    pub(super) servers: Vec<Server>,
    /// How long writes took.
    pub(super) times: Vec<Duration>,
}

/// A server that is named.
pub(super) struct Server {
    pub(super) host: String,
    /// Its answer to `srvr`, or why there is none.
    pub(super) state: Result<String, String>,
    /// Its answer to `conf`.
    pub(super) settings: String,
}

impl Facts {
    pub(super) fn new(asked: Duration, granted: Duration) -> Self {
        Self {
            asked,
            granted,
            configuration: String::new(),
            servers: Vec::new(),
            times: Vec::new(),
        }
    }

    /// How many servers vote.
    fn voters(&self) -> usize {
        let servers = self.configuration.lines();
        let servers = servers.filter(|it| it.starts_with("server."));
        servers.filter(|it| !it.contains(":observer")).count()
    }

    /// The values of a setting, as the servers report them.
    fn said(&self, name: &str) -> BTreeSet<&str> {
        let states = self.servers.iter().filter_map(|it| it.state.as_ref().ok());
        states
            .flat_map(|it| it.lines())
            .filter_map(|it| it.strip_prefix(name))
            .collect()
    }

    /// The largest value that a setting has on any of the servers.
    fn setting(&self, name: &str) -> Option<Duration> {
        let lines = self.servers.iter().flat_map(|it| it.settings.lines());
        let values = lines.filter_map(|it| it.split_once('='));
        let values = values.filter(|(it, _)| *it == name);
        let millis = values.filter_map(|(_, value)| value.trim().parse().ok());
        millis.max().map(Duration::from_millis)
    }
}

impl Server {
    fn is_up(&self) -> bool {
        let serves = |said: &String| !said.contains("not currently serving");
        self.state.as_ref().is_ok_and(serves)
    }

    /// Whether it does not answer a word since nobody has allowed it to.
    fn refuses(&self, said: &str) -> bool {
        self.is_up() && said.contains("not in the whitelist")
    }
}

/// Judges the facts, one check after the other.
pub(super) fn findings(facts: Facts) -> Vec<Finding> {
    let mut findings = vec![servers(&facts)];
    findings.extend(version(&facts));
    findings.push(session(&facts));
    findings.extend(ticks(&facts));
    findings.extend(words(&facts));
    findings.extend(latency(
        facts.times,
        SLOW,
        "every lock waits for such writes, and sessions end where a heartbeat takes too long: \
         a session should last fifty times as long",
        "keep the transaction log on a disk of its own (dataLogDir), and look at the ways between the servers",
    ));
    findings
}

fn servers(facts: &Facts) -> Finding {
    let named = facts.servers.len();
    let down = facts.servers.iter().filter(|it| !it.is_up());
    let down: Vec<_> = down.map(|it| it.host.as_str()).collect();
    let up = named - down.len();
    let voters = facts.voters();
    if voters == 0 {
        return Finding::fine("servers", "one server, which stands alone").but(
            Notice,
            "while it is down nobody can lock, and sessions end",
            "run three servers, which go on without one of them",
        );
    }
    let found = format!("{voters} vote; {up} of the {named} that the URL names answer");
    let finding = Finding::fine("servers", found);
    if !down.is_empty() {
        let meaning = "fewer servers may fail before nobody can lock";
        return finding.but(Warning, meaning, format!("start {}", down.join(", ")));
    }
    if named < voters {
        let meaning = "when those that are named are down, this manager loses its locks";
        return finding.but(Notice, meaning, "name all servers in the URL");
    }
    finding.unless(
        voters % 2 == 1,
        Notice,
        "an even number goes on without no more servers than one fewer would",
        "run three or five servers",
    )
}

fn version(facts: &Facts) -> Option<Finding> {
    let said = facts.said("Zookeeper version: ");
    // Such as `3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on …`.
    let versions = said.iter().filter_map(|it| it.split(['-', ',']).next());
    let versions: BTreeSet<_> = versions.collect();
    let number = |version: &str| {
        let mut numbers = version.split('.').map(|it| it.parse().unwrap_or(0_u32));
        (numbers.next(), numbers.next())
    };
    let oldest = versions.iter().map(|it| number(it)).min()?;
    let several = versions.len() > 1;
    let found: Vec<_> = versions.into_iter().collect();
    let finding = Finding::fine("version", format!("ZooKeeper {}", found.join(", ")));
    if oldest < (Some(3), Some(5)) {
        let meaning = "it has no containers, in which locks stand";
        return Some(finding.but(Error, meaning, "run ZooKeeper 3.5.3 or newer"));
    }
    let meaning = "servers of several versions offer what the oldest one can do";
    Some(finding.unless(!several, Notice, meaning, "finish the update"))
}

fn session(facts: &Facts) -> Finding {
    let (asked, granted) = (facts.asked, facts.granted);
    let found = format!("asked for {asked:?}, granted {granted:?}");
    Finding::fine("session", found).unless(
        asked == granted,
        Notice,
        "a crash blocks its locks for as long as was granted, and so long may a holder be out of reach",
        "ask for a ttl that the servers grant, or change minSessionTimeout and maxSessionTimeout",
    )
}

/// The deadline of a session counts on two ticks at least.
fn ticks(facts: &Facts) -> Option<Finding> {
    let tick = facts.setting("tickTime")?;
    let least = facts.setting("minSessionTimeout").unwrap_or(2 * tick);
    let most = facts.setting("maxSessionTimeout").unwrap_or(20 * tick);
    let found = format!("tickTime {tick:?}, sessions of {least:?} to {most:?}");
    let finding = Finding::fine("ticks", found);
    if facts.granted < 2 * tick {
        return Some(finding.but(
            Error,
            "the session is shorter than two ticks: a server may end it before its deadline, \
             and locks then have two holders",
            "ask for a ttl of two ticks or more, or make tickTime shorter",
        ));
    }
    Some(finding.unless(
        least >= 2 * tick,
        Warning,
        "sessions shorter than two ticks are granted: a server may end them before their deadline, \
         and locks then have two holders",
        "leave minSessionTimeout at two ticks, or make tickTime shorter",
    ))
}

/// The questions that were not permitted.
fn words(facts: &Facts) -> Option<Finding> {
    let mut words = BTreeSet::new();
    for server in &facts.servers {
        let state = server.state.as_deref().unwrap_or_default();
        for (word, said) in [("srvr", state), ("conf", &*server.settings)] {
            if server.refuses(said) {
                words.insert(word);
            }
        }
    }
    if words.is_empty() {
        return None;
    }
    let words: Vec<_> = words.into_iter().collect();
    Some(Finding::fine("words", format!("not allowed: {}", words.join(", "))).but(
        Notice,
        "`srvr` tells the version, `conf` ticks and sessions: what was not reported was not checked",
        "4lw.commands.whitelist=srvr, conf",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &str =
        "Zookeeper version: 3.8.0-5a02a05e, built on 2022-02-25 08:49 UTC\nMode: follower\n";
    const SETTINGS: &str = "tickTime=2000\nminSessionTimeout=4000\nmaxSessionTimeout=40000\n";
    const REFUSAL: &str = "conf is not executed because it is not in the whitelist.\n";

    /// An ensemble of so many servers, of which all are named and answer.
    fn healthy(voters: usize) -> Facts {
        let mut facts = Facts::new(Duration::from_secs(10), Duration::from_secs(10));
        for number in 0..voters {
            let server = format!("server.{number}=h{number}:2888:3888:participant\n");
            facts.configuration.push_str(&server);
            facts.servers.push(Server {
                host: format!("h{number}:2181"),
                state: Ok(STATE.to_owned()),
                settings: SETTINGS.to_owned(),
            });
        }
        facts.configuration += "server.9=h9:2888:3888:observer\nversion=0";
        facts
    }

    /// How bad a check is, and what was found; `None` if nothing was.
    fn found(facts: Facts, check: &str) -> Option<(Severity, Box<str>)> {
        let all = findings(facts);
        let found = all.into_iter().find(|it| it.check == check);
        found.map(|it| (it.severity, it.found))
    }

    fn severity(facts: Facts, check: &str) -> Severity {
        found(facts, check).expect("a finding of this check").0
    }

    #[test]
    fn a_healthy_ensemble_is_fine() {
        for finding in findings(healthy(3)) {
            assert_eq!(finding.severity, Severity::Fine, "{finding:?}");
        }
    }

    #[test]
    fn servers_that_are_down_or_too_few_are_found() {
        let mut facts = healthy(3);
        facts.servers[1].state = Err("refused".to_owned());
        assert_eq!(severity(facts, "servers"), Warning);
        let mut facts = healthy(3);
        facts.servers[1].state = Ok("This ZooKeeper instance is not currently serving".to_owned());
        assert_eq!(severity(facts, "servers"), Warning);
        let mut facts = healthy(3);
        facts.servers.pop();
        assert_eq!(severity(facts, "servers"), Notice);
        assert_eq!(severity(healthy(4), "servers"), Notice);
        let mut alone = healthy(1);
        alone.configuration.clear();
        assert_eq!(severity(alone, "servers"), Notice);
    }

    #[test]
    fn a_session_that_does_not_last_two_ticks_is_an_error() {
        for (granted, least, expected) in [
            (10, 4_000, Severity::Fine),
            (10, 1_000, Warning),
            (3, 1_000, Error),
        ] {
            let mut facts = healthy(3);
            facts.granted = Duration::from_secs(granted);
            let settings = format!("tickTime=2000\nminSessionTimeout={least}\n");
            facts.servers[2].settings = settings.clone();
            facts.servers[0].settings.clear();
            facts.servers[1].settings.clear();
            assert_eq!(severity(facts, "ticks"), expected);
        }
        let mut facts = healthy(3);
        facts.granted = Duration::from_secs(4);
        assert_eq!(severity(facts, "session"), Notice);
    }

    #[test]
    fn words_that_are_not_allowed_leave_checks_out_and_are_named() {
        let refused = |check| {
            let mut facts = healthy(3);
            for server in &mut facts.servers {
                server.settings = REFUSAL.to_owned();
                server.state = Ok(REFUSAL.replace("conf", "srvr"));
            }
            found(facts, check)
        };
        let (severity, said) = refused("words").expect("a finding");
        assert_eq!((severity, &*said), (Notice, "not allowed: conf, srvr"));
        assert_eq!((refused("ticks"), refused("version")), (None, None));
        assert_eq!(found(healthy(3), "words"), None);
    }

    #[test]
    fn an_old_version_is_an_error_and_several_are_worth_knowing() {
        let mut facts = healthy(3);
        facts.servers[0].state = Ok(STATE.replace("3.8.0", "3.9.1"));
        assert_eq!(severity(facts, "version"), Notice);
        let mut facts = healthy(3);
        facts.servers[0].state = Ok(STATE.replace("3.8.0", "3.4.14"));
        assert_eq!(severity(facts, "version"), Error);
    }
}
