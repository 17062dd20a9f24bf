//! The errors, in `docs/errors.md` and in the code.

use std::collections::BTreeSet;

use crate::repository::{read, rows_of_table};

#[test]
fn the_document_lists_every_error() {
    let listed = listed(&read("docs/errors.md"));
    assert_eq!(
        listed,
        variants(&read("lock-runtime/src/types/error/mod.rs"))
    );
}

#[test]
fn every_error_has_a_status() {
    let statuses = listed(&read("docs/statuses.md"));
    assert_eq!(
        statuses,
        variants(&read("lock-runtime/src/types/error/mod.rs"))
    );
}

#[test]
fn an_error_that_is_not_listed_is_noticed() {
    let source = "Self::Lost { .. } => \"lost\",\n    Self::ShutDown => \"shut_down\",\n";
    let table = "| `LockError` | |\n|---|---|\n| `Lost`, `Gone` | is stopped with `on_lost` |\n";
    assert_eq!(variants(source), set(&["Lost", "ShutDown"]));
    assert_eq!(listed(table), set(&["Lost", "Gone"]));
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The names in backticks in the first column.
fn listed(text: &str) -> BTreeSet<String> {
    let rows = rows_of_table(text, "", "`LockError`").into_iter();
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}

/// The variants, as `LockError::kind` matches them.
fn variants(source: &str) -> BTreeSet<String> {
    let arms = source.lines().filter(|line| line.contains(" => \""));
    let names = arms.filter_map(|arm| {
        let variant = arm.trim_start().strip_prefix("Self::")?;
        variant.split(' ').next()
    });
    names.map(str::to_owned).collect()
}
