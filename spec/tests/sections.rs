//! The sections of docs/protocol.md that the model of the queue names are there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .replace(' ', "-")
}

/// The words that follow a `#` in comments.
fn named(text: &str) -> Vec<String> {
    let comments = text
        .lines()
        .filter_map(|line| line.split_once("//"))
        .map(|(_, comment)| comment);
    let words = comments
        .flat_map(str::split_whitespace)
        .filter_map(|word| word.strip_prefix('#'));
    let words = words.map(|word| word.trim_end_matches([':', ',', '.']));
    words
        .filter(|word| word.starts_with(|it: char| it.is_ascii_lowercase()))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_page_has_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../docs/protocol.md")).expect("the page");
    let sections: BTreeSet<_> = page
        .lines()
        .filter(|it| it.starts_with('#'))
        .map(anchor)
        .collect();
    let mut count = 0;
    for file in fs::read_dir(root.join("src/queue")).expect("the model") {
        let file = file.expect("a file").path();
        for name in named(&fs::read_to_string(&file).expect("text")) {
            assert!(
                sections.contains(&name),
                "{}: no section #{name}",
                file.display()
            );
            count += 1;
        }
    }
    assert!(count > 20, "{count} sections are named");
}
