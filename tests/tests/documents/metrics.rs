//! The metrics, in their table, in the dashboard and in the alert rules, and where they are named.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::repository::{read, root, rows_of_table};

#[test]
fn the_table_lists_every_metric() {
    let documented = documented(&read("docs/watching.md"));
    assert!(!documented.is_empty(), "no metric is found in the table");
    assert_eq!(documented, exported(&source()));
}

#[test]
fn the_dashboard_shows_every_metric_and_no_other() {
    let expressions = expressions(&read("docs/dashboard.json"), "\"expr\": \"");
    assert_eq!(
        unknown(&expressions, &exported(&source())),
        Vec::<String>::new()
    );
    let shown: BTreeSet<_> = expressions.iter().flat_map(|it| metrics(it)).collect();
    for (metric, kind) in exported(&source()) {
        let name = if kind == "histogram" {
            format!("{metric}_bucket")
        } else {
            metric
        };
        assert!(shown.contains(&*name), "{name} is not shown");
    }
}

#[test]
fn the_alerts_are_about_metrics_that_there_are() {
    let expressions = expressions(&read("docs/alerts.yml"), "expr: ");
    assert!(!expressions.is_empty(), "no alert is found");
    assert_eq!(
        unknown(&expressions, &exported(&source())),
        Vec::<String>::new()
    );
}

#[test]
fn prometheus_accepts_the_alerts() {
    let mut check = Command::new("promtool");
    let check = check
        .args(["check", "rules", "docs/alerts.yml"])
        .current_dir(root());
    match check.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
        }
        Err(error) => {
            eprintln!("NOTICE: Prometheus has not read docs/alerts.yml: no promtool ({error})");
        }
    }
}

#[test]
fn what_is_not_exported_is_noticed() {
    let exported = exported(
        r#"
        counter LOST = "lock_lost_total", Count, "Lost";
        histogram WAIT = "lock_wait_seconds", Seconds, "Waited";
        "#,
    );
    assert_eq!(exported.len(), 2);
    let wrong = [
        "rate(lock_gone_total[5m])",
        "lock_wait_seconds",
        "lock_lost_total_bucket",
        "sum by (key) (lock_lost_total)",
        "lock_lost_total{colour=\\\"red\\\"}",
    ];
    let right = "sum by (le, template) (rate(lock_wait_seconds_bucket{kind=\\\"granted\\\"}[5m])) / lock_lost_total";
    let yaml = format!("expr: {right}\n- expr: {}\n", wrong.join("\n- expr: "));
    let expressions = expressions(&yaml, "expr: ");
    assert_eq!(expressions.len(), 6);
    assert_eq!(unknown(&expressions, &exported).len(), wrong.len());
}

/// The labels of the runtime, that of buckets, and the one by which Prometheus tells processes apart.
const LABELS: &[&str] = &["template", "function", "kind", "le", "instance"];

fn source() -> String {
    read("lock-runtime/src/telemetry/metrics.rs")
}

/// The metrics and their types, as the code names them.
fn exported(source: &str) -> BTreeMap<String, String> {
    let kinds = ["counter ", "gauge ", "histogram "];
    let lines = source.lines().map(str::trim_start);
    let named = lines.filter(|line| kinds.iter().any(|kind| line.starts_with(kind)));
    let named = named.filter_map(|line| {
        let kind = line.split(' ').next()?;
        let name = line.split('"').nth(1)?;
        Some((name.to_owned(), kind.to_owned()))
    });
    named.collect()
}

fn documented(text: &str) -> BTreeMap<String, String> {
    let rows = rows_of_table(text, "", "metric").into_iter();
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    cells
        .map(|cells| (cells[1].trim_matches('`').to_owned(), cells[2].to_owned()))
        .collect()
}

/// The text behind `opening`, up to the end of the line.
fn expressions(text: &str, opening: &str) -> Vec<String> {
    let after = text.lines().filter_map(|line| line.split_once(opening));
    after.map(|(_, expression)| expression.to_owned()).collect()
}

/// The names in an expression that are those of metrics.
fn metrics(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("lock_"))
}

/// The labels that an expression goes by or asks for.
fn labels(expression: &str) -> impl Iterator<Item = &str> {
    let groups = expression.split("by (").skip(1);
    let groups = groups.filter_map(|rest| rest.split(')').next());
    let by = groups.flat_map(|group| group.split(", "));
    let selectors = expression.split('{').skip(1);
    by.chain(selectors.filter_map(|rest| rest.split(['=', '!']).next()))
}

/// The expressions that no exported metric, or no label, answers.
fn unknown(expressions: &[String], exported: &BTreeMap<String, String>) -> Vec<String> {
    let is_exported = |name: &str| match name.strip_suffix("_bucket") {
        Some(histogram) => exported
            .get(histogram)
            .is_some_and(|kind| kind == "histogram"),
        None => exported.get(name).is_some_and(|kind| kind != "histogram"),
    };
    let expressions = expressions.iter().filter(|expression| {
        // What follows an expression on its line of JSON has no braces and no metrics.
        metrics(expression).next().is_none()
            || !metrics(expression).all(is_exported)
            || !labels(expression).all(|label| LABELS.contains(&label))
    });
    expressions.cloned().collect()
}
