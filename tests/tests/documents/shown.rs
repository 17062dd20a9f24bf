//! The table of tests in docs/guarantees-tests.md, which is made from the tests themselves.
//!
//! `UPDATE_SNAPSHOTS=1` writes the table anew.

use crate::repository::{read, root};
use tests::documents::shown::{Shown, shown, shown_in, table, unknown};

const PAGE: &str = "docs/guarantees-tests.md";

/// How the table begins.
const HEADER: &str = "| section | files |\n";

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
fn a_file_that_shows_another_section_is_noticed() {
    let source = "//! Section: guarantees.md#in-short\n\ntests! {\n    made_by_a_macro,\n}\n\n\
        \x20   // Section: guarantees.md#the-lock-goes-on, guarantees.md#in-short\n    #[test]\n    fn both() {}\n";
    let expected = |section: &str| Shown {
        section: format!("guarantees.md#{section}"),
        file: "some".to_owned(),
    };
    let shown = shown_in("some", source);
    assert_eq!(shown, [expected("in-short"), expected("the-lock-goes-on")]);
    let row = "| [The lock goes on](guarantees.md#the-lock-goes-on) | `some` |\n";
    assert!(table(&shown).contains(row));
    assert_eq!(unknown(&[expected("none")]), ["some: guarantees.md#none"]);
}
