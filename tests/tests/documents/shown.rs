//! The table of tests in docs/guarantees-tests.md, which is made from the tests themselves.
//!
//! `UPDATE_SNAPSHOTS=1` writes the table anew.

use crate::repository::{read, root};
use tests::documents::shown::{Shown, shown, shown_in, table, unknown};

const PAGE: &str = "docs/guarantees-tests.md";

/// How the table begins.
const HEADER: &str = "| section | file | tests |\n";

#[test]
fn the_table_lists_the_tests_that_there_are() {
    let (page, table) = (read(PAGE), table(&shown()));
    let start = page.find(HEADER).expect("the page has the table");
    let end = page[start..]
        .find("\n\n")
        .map_or(page.len(), |end| start + end + 1);
    if page[start..end] == table {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_SNAPSHOTS").is_some(),
        "{PAGE} is out of date; UPDATE_SNAPSHOTS=1 writes this:\n{table}"
    );
    let page = format!("{}{table}{}", &page[..start], &page[end..]);
    std::fs::write(root().join(PAGE), page).expect("it can be written");
}

#[test]
fn every_section_that_a_test_names_exists() {
    let unknown = unknown(&shown());
    assert!(
        unknown.is_empty(),
        "no such section: {}",
        unknown.join("\n")
    );
}

#[test]
fn a_test_that_is_added_or_shows_something_else_is_noticed() {
    let source = "//! Section: guarantees.md#in-short\n\non_every_store! {\n    on_stores [fair],\n}\n\n\
        async fn on_stores(store: Store) {}\n\nfn no_test() {}\n\n\
        // Section: guarantees.md#the-lock-goes-on, guarantees.md#in-short\n#[test]\nfn both() {}\n";
    let expected = |section: &str, tests: &[&str]| Shown {
        section: format!("guarantees.md#{section}"),
        file: "some".to_owned(),
        tests: tests.iter().map(|&test| test.to_owned()).collect(),
    };
    let in_short = expected("in-short", &["on_stores", "both"]);
    let goes_on = expected("the-lock-goes-on", &["both"]);
    let shown = shown_in("some", source);
    assert_eq!(shown, [in_short, goes_on]);
    let row = "| [The lock goes on](guarantees.md#the-lock-goes-on) | `some` | `both` |\n";
    assert!(table(&shown).contains(row));
    assert_eq!(
        unknown(&[expected("none", &["a"])]),
        ["some: guarantees.md#none"]
    );
}
