//! The list of documents, from which the site is built: it has every document, once.

use std::collections::BTreeSet;

use crate::repository::{Document, read};
use tests::documents::index::{INDEX, Part, parts};

/// The pages of packages in a registry, and what the list itself is found by.
const NOT_LISTED: &[&str] = &[
    "README.md",
    INDEX,
    "lock-macros/README.md",
    "lock-runtime/README.md",
    "lockctl/README.md",
];

#[test]
fn every_document_is_listed_once() {
    let documents = Document::all().into_iter().map(|document| document.path);
    let expected: BTreeSet<_> = documents
        .filter(|path| !NOT_LISTED.contains(&path.as_str()))
        .collect();
    let listed = paths(&parts(&Document::of(INDEX, &read(INDEX))));
    assert_eq!(BTreeSet::from_iter(listed.clone()), expected);
    assert_eq!(listed.len(), expected.len(), "a page is listed twice");
}

#[test]
fn there_are_four_kinds_of_documents_and_those_for_developers() {
    let titles = parts(&Document::of(INDEX, &read(INDEX))).into_iter();
    let titles: Vec<_> = titles.map(|part| part.title).collect();
    let kinds = ["Guide", "How-to", "Reference", "Explanation", "Development"];
    assert_eq!(titles, kinds);
}

#[test]
fn pages_are_read_from_the_lists_alone() {
    let text = "# Documents\n\n- [none](none.md)\n\n## Guide\n\nSee [some](some.md).\n\n\
        - [One](guide/one.md): one\n- [Part](two.md#part)\n- [Two](../two.md)\n- [Data](data.json)\n";
    let parts = parts(&Document::of("docs/README.md", text));
    assert_eq!(parts[0].title, "Guide");
    assert_eq!(paths(&parts), ["docs/guide/one.md", "two.md"]);
}

fn paths(parts: &[Part]) -> Vec<String> {
    let pages = parts.iter().flat_map(|part| &part.pages);
    pages.map(|page| page.path.clone()).collect()
}
