//! Judges the time of some round trips to a server by the promises of the locks.

use std::time::Duration;

use crate::types::finding::{Finding, Severity};

/// Fine if the longest took less than `limit`; `None` if there was none.
pub(crate) fn latency(
    mut times: Vec<Duration>,
    limit: Duration,
    meaning: &'static str,
    advice: &str,
) -> Option<Finding> {
    times.sort_unstable();
    let (median, worst) = (times.get(times.len() / 2)?, times.last()?);
    let millis = |time: &Duration| time.as_secs_f64() * 1e3;
    let found = format!(
        "{:.1} ms, {:.1} ms at worst of {}",
        millis(median),
        millis(worst),
        times.len()
    );
    let finding = Finding::fine("latency", found);
    Some(finding.unless(*worst < limit, Severity::Warning, meaning, advice))
}
