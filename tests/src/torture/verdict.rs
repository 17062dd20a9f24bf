//! What is wrong with a run: what must not be, and what it has shown too little of.

use std::time::Duration;

use super::{Outcome, Profile, Servers, lock_name};

/// How many violations are described.
const DESCRIBED: usize = 10;

impl Outcome {
    /// What must not be.
    pub fn found(&self, servers: Servers) -> Vec<String> {
        let violations = &self.report.violations;
        let mut found: Vec<_> = violations.iter().take(DESCRIBED).cloned().collect();
        if violations.len() > DESCRIBED {
            found.push(format!("and {} more", violations.len() - DESCRIBED));
        }
        if self.is_slow(servers) {
            let recovery = self.report.recovery;
            let (key, until) = self.report.slowest.unwrap_or_default();
            let key = lock_name(key);
            found.push(format!(
                "{key} stood still for {recovery:?}, until {until:?}"
            ));
        }
        found
    }

    /// How much must not be.
    pub fn findings(&self, servers: Servers) -> usize {
        self.report.violations.len() + usize::from(self.is_slow(servers))
    }

    /// A machine that is late itself makes everything late that needs several turns of several processes.
    fn is_slow(&self, servers: Servers) -> bool {
        self.report.recovery > servers.recovery() + 20 * self.lateness
    }

    /// What there is too little of for a run of this time to show anything.
    pub fn lacks(&self, profile: Profile, servers: Servers, time: Duration) -> Vec<String> {
        // A short run has few, or none if it is very short.
        let share = (time.as_secs_f64().min(60.0) / 60.0).powi(2);
        let counts = [
            ("grants", self.report.grants, profile.grants(servers)),
            ("losses", self.report.losses, profile.losses(servers)),
            (
                "adoptions",
                self.report.adoptions,
                profile.adoptions(servers),
            ),
            (
                "hand-overs in chains",
                self.chains.entered,
                profile.hand_overs(servers),
            ),
        ];
        #[allow(clippy::cast_precision_loss, reason = "counts are small")]
        let lacking =
            |(_, count, least): &(&str, usize, f64)| (*count as f64) < (least * share).floor();
        let lacking = counts.into_iter().filter(lacking);
        lacking
            .map(|(what, count, _)| format!("only {count} {what}: the run shows nothing"))
            .collect()
    }
}
