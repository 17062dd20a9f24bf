//! A soak: rounds of torture until every profile has had its share of grants. A file notes the rounds, so that an
//! interrupted soak goes on.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Outcome, Profile, Servers};

/// A soak of one store.
#[derive(Debug)]
pub struct Soak {
    servers: Servers,
    /// What is tested: rounds of other commits do not count.
    commit: String,
    profiles: Vec<Profile>,
    /// How many grants each profile has to have.
    share: usize,
    file: PathBuf,
    tallies: BTreeMap<&'static str, Tally>,
}

/// What the rounds of a profile have shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The day of the last round.
    pub date: String,
    /// How many grants were checked.
    pub grants: usize,
    /// How many tickets were adopted.
    pub adoptions: usize,
    /// How many holders had a poll beside another holder's.
    pub overlaps: usize,
    /// How many more had one beside a poll that was longer than any may be.
    pub overlong: usize,
    /// How many fences did not grow.
    pub fences: usize,
    /// How many entries of locks were left behind.
    pub left_behind: usize,
    /// The longest time that a key stood still after the end of a fault.
    pub recovery: Duration,
    /// How much there was that must not be.
    pub findings: usize,
}

impl Soak {
    /// Goes on with a soak whose rounds are noted in this folder, or begins one.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, or its file cannot be read.
    pub fn open(
        folder: &Path,
        servers: Servers,
        commit: &str,
        profiles: Vec<Profile>,
        grants: usize,
    ) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let file = folder.join(format!("{}.txt", servers.name()));
        let mut soak = Self {
            servers,
            commit: commit.to_owned(),
            share: grants.div_ceil(profiles.len().max(1)),
            profiles,
            tallies: BTreeMap::new(),
            file,
        };
        if soak.file.exists() {
            for line in fs::read_to_string(&soak.file)?.lines() {
                soak.count(line);
            }
        }
        Ok(soak)
    }

    /// The profile of the next round: the one that has counted the fewest, until all have their share.
    pub fn due(&self) -> Option<Profile> {
        let lacking = self.profiles.iter().map(|it| (self.counted(*it), *it));
        let lacking = lacking.filter(|(counted, _)| *counted < self.share);
        lacking
            .min_by_key(|(counted, _)| *counted)
            .map(|(_, it)| it)
    }

    /// Notes a round of this day, and describes what was found in it.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn note(&mut self, profile: Profile, outcome: &Outcome, date: &str) -> io::Result<()> {
        let (commit, report) = (&self.commit, &outcome.report);
        let mut lines = format!(
            "{commit} {} {date} {} {} {} {} {} {} {} {}\n",
            profile.name(),
            report.grants,
            report.adoptions,
            report.overlaps,
            report.overlong,
            report.fences,
            report.left_behind,
            report.recovery.as_millis(),
            outcome.findings(self.servers),
        );
        for finding in outcome.found(self.servers) {
            let _ = writeln!(lines, "  {finding}");
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file);
        // One write: whoever is killed meanwhile leaves whole lines.
        file?.write_all(lines.as_bytes())?;
        for line in lines.lines() {
            self.count(line);
        }
        Ok(())
    }

    /// What the profiles of this soak have shown.
    pub fn tallies(&self) -> impl Iterator<Item = (Profile, &Tally)> {
        let profiles = self.profiles.iter();
        profiles.filter_map(|it| Some((*it, self.tallies.get(it.name())?)))
    }

    /// What counts towards the share of a profile.
    fn counted(&self, profile: Profile) -> usize {
        let tally = self.tallies.get(profile.name());
        tally.map_or(0, |it| match profile {
            Profile::Tickets => it.adoptions,
            _ => it.grants,
        })
    }

    /// Adds a line of the file, unless it is of another commit, or describes something.
    fn count(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let [commit, profile, date, numbers @ ..] = words.as_slice() else {
            return;
        };
        let numbers: Vec<usize> = numbers.iter().filter_map(|it| it.parse().ok()).collect();
        let numbers = <[usize; 8]>::try_from(numbers);
        let (Some(profile), Ok(numbers)) = (Profile::named(profile), numbers) else {
            return;
        };
        if *commit != self.commit {
            return;
        }
        let tally = self.tallies.entry(profile.name()).or_default();
        tally.add(date, numbers);
    }
}

impl Tally {
    /// Adds a round of this day, whose numbers are in the order of the fields.
    fn add(&mut self, date: &str, round: [usize; 8]) {
        let [
            grants,
            adoptions,
            overlaps,
            overlong,
            fences,
            left_behind,
            recovery,
            findings,
        ] = round;
        let recovery = Duration::from_millis(u64::try_from(recovery).unwrap_or(u64::MAX));
        date.clone_into(&mut self.date);
        self.grants += grants;
        self.adoptions += adoptions;
        self.overlaps += overlaps;
        self.overlong += overlong;
        self.fences += fences;
        self.left_behind += left_behind;
        self.recovery = self.recovery.max(recovery);
        self.findings += findings;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torture::Report;

    const PROFILES: [Profile; 2] = [Profile::Clients, Profile::Messages];
    const DATE: &str = "2026-11-23";

    fn open(folder: &Path, commit: &str, grants: usize) -> Soak {
        Soak::open(folder, Servers::Etcd, commit, PROFILES.into(), grants).expect("a folder")
    }

    fn outcome(grants: usize, violations: &[&str]) -> Outcome {
        Outcome {
            report: Report {
                grants,
                recovery: Duration::from_millis(60),
                violations: violations.iter().map(|it| (*it).to_owned()).collect(),
                ..Report::default()
            },
            chains: crate::Chains::default(),
            model: None,
            faults: BTreeMap::new(),
            lateness: Duration::ZERO,
        }
    }

    #[test]
    fn every_profile_gets_its_share() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut soak = open(folder.path(), "a", 100);
        for (expected, grants) in [(0, 40), (1, 30), (1, 25), (0, 10)] {
            assert_eq!(soak.due(), Some(PROFILES[expected]));
            let noted = soak.note(PROFILES[expected], &outcome(grants, &[]), DATE);
            noted.expect("a file");
        }
        assert_eq!(soak.due(), None);
    }

    #[test]
    fn an_interrupted_soak_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut soak = open(folder.path(), "a", 100);
        let found = outcome(60, &["a clients 1 2 3 4 5 6 7 8 9", "two holders"]);
        let (first, second) = (soak.note(PROFILES[0], &found, DATE), soak.due());
        first.expect("a file");
        drop(soak);

        let mut soak = open(folder.path(), "a", 100);
        assert_eq!(soak.due(), second);
        assert_eq!(second, Some(PROFILES[1]));
        let noted = soak.note(PROFILES[0], &outcome(50, &[]), "2026-11-24");
        noted.expect("a file");
        let expected = Tally {
            date: "2026-11-24".to_owned(),
            grants: 110,
            recovery: Duration::from_millis(60),
            findings: 2,
            ..Tally::default()
        };
        let again = open(folder.path(), "a", 100);
        for soak in [soak, again] {
            let tallies: Vec<_> = soak.tallies().collect();
            assert_eq!(tallies, [(PROFILES[0], &expected)]);
        }
    }

    #[test]
    fn grants_of_another_commit_do_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut soak = open(folder.path(), "a", 2);
        for profile in PROFILES {
            let noted = soak.note(profile, &outcome(1, &[]), DATE);
            noted.expect("a file");
        }
        assert_eq!(soak.due(), None);
        assert_eq!(open(folder.path(), "b", 2).due(), Some(PROFILES[0]));
        assert_eq!(open(folder.path(), "a", 2).due(), None);
    }
}
