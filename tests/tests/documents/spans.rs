//! The spans and their fields, in `docs/watching.md` and where they are opened.

use std::collections::BTreeSet;

use crate::repository::{read, rows_of_table};

#[test]
fn the_document_lists_every_span_and_every_field() {
    let (source, text) = (source(), read("docs/watching.md"));
    assert_eq!(in_table(&text, "span"), opened(&source));
    assert_eq!(in_table(&text, "field"), fields(&source));
}

#[test]
fn a_span_that_is_opened_otherwise_is_noticed() {
    let source = "span!(\"lock.rest\", terms, keys)\n    lock.key = 1,\n    otel.kind = 2,\n";
    let table = "| field | |\n|---|---|\n| `lock.key`, `otel.kind` | `lock` |\n\n`lock.gone`";
    assert_eq!(opened(source), BTreeSet::from(["lock.rest".to_owned()]));
    assert_eq!(fields(source).len(), 2);
    assert_eq!(in_table(table, "field"), fields(source));
}

fn source() -> String {
    read("lock-runtime/src/telemetry/spans.rs")
}

/// What stands in backticks in the first column of a table.
fn in_table(text: &str, header: &str) -> BTreeSet<String> {
    let rows = rows_of_table(text, "", header).into_iter();
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let code = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    code.map(str::to_owned).collect()
}

fn opened(source: &str) -> BTreeSet<String> {
    let calls = source.split("span!(\"").skip(1);
    let names = calls.filter_map(|call| call.split('"').next());
    names.map(str::to_owned).collect()
}

fn fields(source: &str) -> BTreeSet<String> {
    let names = source.lines().filter_map(|line| {
        let (name, _) = line.trim_start().split_once(" = ")?;
        let is_field = |c: char| c.is_ascii_lowercase() || "._".contains(c);
        (name.contains('.') && name.chars().all(is_field)).then(|| name.to_owned())
    });
    names.collect()
}
