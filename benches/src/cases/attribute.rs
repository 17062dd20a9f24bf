//! The attribute against the same calls by hand: instructions of the caller's thread.

use crate::bench::Bench;
use crate::callgrind::{self, How};
use crate::report::{Bound, Row, Unit};

/// In process: what the server costs is the same for both.
const URL: &str = "memory:";
const CYCLES: u64 = 2_000;

pub(super) async fn run(bench: &mut Bench) {
    let count = async |how| {
        let threads = callgrind::a_cycle(how, URL, CYCLES).await;
        threads.map(|threads| threads[0])
    };
    let (attribute, calls) = match (count(How::Attribute).await, count(How::Calls).await) {
        (Ok(attribute), Ok(calls)) => (attribute, calls),
        (Err(reason), _) | (_, Err(reason)) => {
            return bench
                .report
                .notice(format!("instructions are not counted: {reason}"));
        }
    };
    let more = (attribute / calls - 1.0) * 100.0;
    bench.report.add(
        Row::new(
            "attribute",
            "instructions of a cycle on the caller's thread",
            Unit::Plain,
            attribute,
        )
        .beside("calls by hand", calls)
        .bound(Bound::at_most(3.0, more, " % more")),
    );
}
