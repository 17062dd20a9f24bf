//! What watching costs: instructions of a cycle while nobody listens, and while somebody does.

use support::RedisServer;

use crate::callgrind::{self, How};

const CYCLES: u64 = 2_000;

/// Prints the instructions of all threads for one call of a function with the attribute.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() {
    let server = RedisServer::start().await;
    for (store, url) in [("memory", "memory:"), ("Redis", &server.url())] {
        for (how, name) in LISTENERS {
            match callgrind::a_cycle(*how, url, CYCLES).await {
                Ok(threads) => {
                    let sum: f64 = threads.iter().sum();
                    println!("instructions a cycle, {store}, {name}: {sum:.0}");
                }
                Err(reason) => println!("NOTICE: instructions are not counted: {reason}"),
            }
        }
    }
}

#[cfg(not(feature = "watching"))]
const LISTENERS: &[(How, &str)] = &[(How::Attribute, "built without metrics")];

#[cfg(feature = "watching")]
const LISTENERS: &[(How, &str)] = &[
    (How::Attribute, "built with metrics, nobody listens"),
    (How::Metrics, "metrics counted for Prometheus"),
    (How::Spans, "spans written as text"),
];

/// Installs the listener of this process.
#[cfg(feature = "watching")]
pub(crate) fn listen(how: How) {
    use metrics_exporter_prometheus::PrometheusBuilder;
    use tracing_subscriber::fmt::format::FmtSpan;

    match how {
        How::Metrics => {
            let recorder = PrometheusBuilder::new().set_buckets(&[0.001, 0.025, 0.5, 10.0]);
            let recorder = recorder.expect("there are buckets").install_recorder();
            recorder.expect("the only one");
        }
        How::Spans => tracing_subscriber::fmt()
            .with_span_events(FmtSpan::CLOSE)
            .with_writer(std::io::sink)
            .init(),
        _ => {}
    }
}

#[cfg(not(feature = "watching"))]
pub(crate) fn listen(_how: How) {}
