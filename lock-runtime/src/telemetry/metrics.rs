//! The metrics, through the facade of the crate `metrics`; `docs/watching.md`
//! lists it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use metrics::Unit;

use crate::types::terms::Terms;

/// Names a metric for its recorder, and describes it.
macro_rules! metrics {
    ($($kind:ident $metric:ident = $name:literal, $unit:ident, $about:literal;)*) => {
        $(const $metric: &str = $name;)*

        /// Tells the recorder of the program what each metric is.
        pub(crate) fn describe() {
            $(describe!($kind, $metric, $unit, $about);)*
        }
    };
}

macro_rules! describe {
    (counter, $metric:ident, $unit:ident, $about:literal) => {
        metrics::describe_counter!($metric, Unit::$unit, $about)
    };
    (gauge, $metric:ident, $unit:ident, $about:literal) => {
        metrics::describe_gauge!($metric, Unit::$unit, $about)
    };
    (histogram, $metric:ident, $unit:ident, $about:literal) => {
        metrics::describe_histogram!($metric, Unit::$unit, $about)
    };
}

metrics! {
    counter ATTEMPTS = "lock_attempts_total", Count, "Attempts to acquire a lock";
    counter OUTCOMES = "lock_outcomes_total", Count, "Results of these attempts: granted, cancelled, or the kind of error";
    gauge WAITING = "lock_waiting", Count, "Acquisitions without an answer so far";
    histogram WAIT = "lock_wait_seconds", Seconds, "From the request to its outcome";
    gauge HELD = "lock_held", Count, "Locks from their grant until the server has confirmed the release";
    histogram HOLD = "lock_hold_seconds", Seconds, "From the grant to the end of the work or of the lease";
    histogram HANDOVER = "lock_handover_seconds", Seconds, "From the end of the work until the server has handed the lock on, or freed it";
    counter RENEWALS = "lock_renewals_total", Count, "Leases that were renewed";
    counter LATE = "lock_renewals_late_total", Count, "Renewals with less than a third of the ttl left";
    counter RENEWAL_FAILURES = "lock_renewal_failures_total", Count, "Renewals that failed, and are tried again until the lease ends";
    counter LOST = "lock_lost_total", Count, "Leases that ended while they were held";
    counter LIMITED = "lock_limited_total", Count, "Leases that lasted for as long as they may, by max_hold or without renewals";
    counter OVERRUNS = "lock_overruns_total", Count, "Bodies that finished in a poll that outlasted the lease";
    counter RELEASE_FAILURES = "lock_release_failures_total", Count, "Releases that failed: the lock stays until its ttl";
    counter CONNECTS = "lock_connects_total", Count, "Connections that were opened, the first ones included";
    counter DISCONNECTS = "lock_disconnects_total", Count, "Connections that broke";
    histogram TURN = "lock_driver_turn_seconds", Seconds, "How long one turn of the driver takes";
    histogram QUEUE = "lock_driver_queue_length", Count, "Requests that a turn of the driver finds";
}

/// A metric of acquisitions, with its labels.
macro_rules! of {
    ($terms:expr, $kind:ident!($metric:expr $(, kind = $word:expr)?)) => {
        metrics::$kind!(
            $metric,
            "template" => $terms.template.unwrap_or_default(),
            "function" => $terms.function.unwrap_or_default()
            $(, "kind" => $word)?
        )
    };
}

/// Counters of what may never happen.
const RARE: [&str; 7] = [
    RENEWALS,
    LATE,
    RENEWAL_FAILURES,
    LOST,
    LIMITED,
    OVERRUNS,
    RELEASE_FAILURES,
];

/// Begins them at zero with the first acquisition. Prometheus takes the value with which a
/// counter appears for its beginning: an alert would not see the first loss.
fn begin(terms: &Terms) {
    static BEGUN: Mutex<BTreeSet<[Option<&str>; 2]>> = Mutex::new(BTreeSet::new());
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    if begun.insert([terms.template, terms.function]) {
        for metric in RARE {
            of!(terms, counter!(metric)).increment(0);
        }
        of!(terms, counter!(OUTCOMES, kind = "unavailable")).increment(0);
    }
}

pub(super) fn acquiring(terms: &Terms) {
    begin(terms);
    of!(terms, counter!(ATTEMPTS)).increment(1);
    of!(terms, gauge!(WAITING)).increment(1);
}

/// An acquisition is granted, cancelled or refused.
pub(super) fn answered(terms: &Terms, kind: &'static str, waited: Duration) {
    no_longer_waiting(terms);
    of!(terms, counter!(OUTCOMES, kind = kind)).increment(1);
    of!(terms, histogram!(WAIT, kind = kind)).record(waited);
}

pub(crate) fn no_longer_waiting(terms: &Terms) {
    of!(terms, gauge!(WAITING)).decrement(1);
}

pub(super) fn held(terms: &Terms) {
    of!(terms, gauge!(HELD)).increment(1);
}

pub(crate) fn no_longer_held(terms: &Terms) {
    of!(terms, gauge!(HELD)).decrement(1);
}

pub(super) fn released(terms: &Terms, held: Duration, took: Duration) {
    no_longer_held(terms);
    of!(terms, histogram!(HOLD)).record(held);
    of!(terms, histogram!(HANDOVER)).record(took);
}

pub(super) fn release_failed(terms: &Terms) {
    of!(terms, counter!(RELEASE_FAILURES)).increment(1);
}

pub(super) fn renewed(terms: &Terms, left: Duration) {
    of!(terms, counter!(RENEWALS)).increment(1);
    if left < terms.ttl / 3 {
        of!(terms, counter!(LATE)).increment(1);
    }
}

pub(super) fn renewal_failed(terms: &Terms) {
    of!(terms, counter!(RENEWAL_FAILURES)).increment(1);
}

pub(super) fn lost(terms: &Terms) {
    of!(terms, counter!(LOST)).increment(1);
}

pub(super) fn limited(terms: &Terms) {
    of!(terms, counter!(LIMITED)).increment(1);
}

pub(super) fn overran(terms: &Terms) {
    of!(terms, counter!(OVERRUNS)).increment(1);
}

pub(super) fn connected() {
    metrics::counter!(CONNECTS).increment(1);
    // It begins at zero too.
    metrics::counter!(DISCONNECTS).increment(0);
}

pub(super) fn disconnected() {
    metrics::counter!(DISCONNECTS).increment(1);
}

/// One turn of the driver, measured when it is dropped.
pub(crate) struct Turn {
    began: Instant,
    queue: usize,
}

impl Turn {
    pub(crate) fn begin(queue: usize) -> Self {
        let began = Instant::now();
        Self { began, queue }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        metrics::histogram!(TURN).record(self.began.elapsed());
        let queue = u32::try_from(self.queue).unwrap_or(u32::MAX);
        metrics::histogram!(QUEUE).record(queue);
    }
}
