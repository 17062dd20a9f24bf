//! The glossary of the guide and the words of ARCHITECTURE.md: no word is explained twice.

use std::collections::BTreeSet;

use crate::repository::{read, rows_of_table};

#[test]
fn no_word_is_explained_twice() {
    let words = words(&read("docs/guide/what-it-is.md"));
    let expected = [
        "acquisition",
        "chain",
        "cooldown",
        "deadline",
        "fencing token",
        "guard",
        "hand-over",
        "holder",
        "lease",
        "lock",
        "manager",
        "quarantine",
        "renewal",
        "revoke",
        "ticket",
        "waiter",
    ];
    assert_eq!(words, expected.map(str::to_owned).into());
    let of_the_code = self::words(&read("ARCHITECTURE.md"));
    let twice: Vec<_> = words.intersection(&of_the_code).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn each_word_of_a_row_counts() {
    let table = "| word | meaning |\n|---|---|\n| lock, key | a |\n| ttl | b |\n\n| word |\n";
    let expected = ["key", "lock", "ttl"].map(str::to_owned);
    assert_eq!(words(table), expected.into());
}

/// The words of the table that begins with `word`; a row may explain several.
fn words(text: &str) -> BTreeSet<String> {
    let rows = rows_of_table(text, "", "word").into_iter();
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let words = cells.flat_map(|cell| cell.split(','));
    words.map(|word| word.trim().to_owned()).collect()
}
