//! What the web service gives to Prometheus, beside what documents, dashboard and alerts say of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use lock_runtime::LockManager;
use tests::RedisServer;
use tokio::time::sleep;

use crate::service::Service;

#[tokio::test]
async fn what_is_scraped_is_what_the_documents_name() {
    let scraped = scrape_after_trouble().await;
    let documented = documented();
    for (metric, kind) in &scraped.metrics {
        assert_eq!(documented.get(metric), Some(kind), "{metric}");
    }
    let labels = ["function", "kind", "le", "template"];
    let unknown = |label: &&String| !labels.contains(&label.as_str());
    assert_eq!(scraped.labels.iter().find(unknown), None);
    for metric in documented.keys() {
        assert!(scraped.metrics.contains_key(metric), "{metric}");
    }
}

/// Prometheus sees no increase in a counter that appears with its first event.
#[tokio::test]
async fn a_counter_of_trouble_is_there_before_the_trouble() {
    let server = RedisServer::start().await;
    let service = Service::start(Some(server.url())).await;
    assert_eq!(service.order("lamp").await.0, 200);
    let (_, answer) = service.ask("GET /metrics").await;
    for metric in [
        "lock_disconnects_total",
        "lock_lost_total",
        "lock_overruns_total",
        "lock_release_failures_total",
        "lock_renewal_failures_total",
        "lock_renewals_late_total",
        "lock_renewals_total",
    ] {
        let values = answer
            .lines()
            .filter(|line| names(line).next() == Some(metric));
        let values: Vec<_> = values.filter(|line| !line.starts_with('#')).collect();
        let is_zero = |line: &&str| line.ends_with(" 0");
        assert!(
            values.len() == 1 && values.iter().all(is_zero),
            "{metric}: {values:?}"
        );
    }
}

/// A histogram that the exporter has no buckets for comes as a summary, which the dashboard cannot read.
#[tokio::test]
async fn dashboard_and_alerts_read_series_that_are_scraped() {
    let scraped = scrape_after_trouble().await;
    let files = ["docs/dashboard.json", "docs/alerts.yml"].map(read);
    let read = files
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| line.contains("expr"));
    let read: BTreeSet<_> = read.flat_map(names).collect();
    assert!(read.len() > 10, "{read:?}");
    for series in read {
        assert!(scraped.series.contains(series), "{series}");
    }
}

struct Scraped {
    /// The metrics with their types.
    metrics: BTreeMap<String, String>,
    /// The names in which their values come.
    series: BTreeSet<String>,
    labels: BTreeSet<String>,
}

/// What is there after an order, a renewal, a refusal, a loss and an outage.
async fn scrape_after_trouble() -> Scraped {
    let mut server = RedisServer::start().await;
    let others = LockManager::connect(server.url()).await.unwrap();
    // The payment takes longer than a third of this.
    let service = Service::start(Some(format!("{}?ttl=300ms", server.url()))).await;
    assert_eq!(service.order("lamp").await.0, 200);

    let guard = others.lock("stock:lamp").acquire().await.unwrap();
    assert_eq!(service.order("lamp").await.0, 409);
    drop(guard);

    let revoke = async {
        loop {
            others.force_release("stock:lamp").await.unwrap();
            sleep(Duration::from_millis(10)).await;
        }
    };
    let lost = tokio::select! {
        answer = service.order("lamp") => answer,
        () = revoke => unreachable!("it is endless"),
    };
    assert_eq!(lost.0, 500, "{}", lost.1);

    server.kill().await;
    assert_eq!(service.order("lamp").await.0, 503);
    let (status, answer) = service.ask("GET /metrics").await;
    assert_eq!(status, 200);
    parse(&answer)
}

fn parse(text: &str) -> Scraped {
    let body = text.split("\r\n\r\n").nth(1).unwrap();
    let types = body.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let metrics = types.filter_map(|line| line.split_once(' '));
    let values = || body.lines().filter(|line| line.starts_with("lock_"));
    let labels = values().flat_map(|line| {
        let named = line.match_indices("=\"").map(|(at, _)| &line[..at]);
        named.filter_map(|before| before.rsplit(['{', ',']).next())
    });
    Scraped {
        metrics: metrics
            .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
            .collect(),
        series: values()
            .filter_map(|line| names(line).next())
            .map(str::to_owned)
            .collect(),
        labels: labels.map(str::to_owned).collect(),
    }
}

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// The names of metrics in a line.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("lock_"))
}

/// The metrics with their types, as `docs/watching.md` lists them.
fn documented() -> BTreeMap<String, String> {
    let text = read("docs/watching.md");
    let rows = text.lines().filter(|line| line.starts_with("| `lock_"));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    cells
        .map(|cells| (cells[1].trim_matches('`').to_owned(), cells[2].to_owned()))
        .collect()
}
