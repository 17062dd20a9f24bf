//! The Rust in the documents: every block is compiled, with a document or where it was copied from.

use crate::repository::{Document, read, rust_below};

#[test]
fn every_block_of_rust_is_compiled() {
    let (library, sources) = (read("examples/recipes/src/lib.rs"), sources());
    let not_compiled = |document: &Document| not_compiled(document, &library, &sources);
    let blocks: Vec<_> = Document::all().iter().flat_map(not_compiled).collect();
    assert!(blocks.is_empty(), "not compiled:\n{}", blocks.join("\n"));
}

#[test]
fn a_block_that_nobody_compiles_is_noticed() {
    let library = "#[doc = include_str!(\"../../../docs/compiled.md\")]";
    let text = "```rust\nlet here = 1;\n```\n\n```rust,ignore\nlet there = 2;\n```\n\n```rust\nlet nowhere = 3;\n```\n";
    let blocks = |path| not_compiled(&Document::of(path, text), library, "let here = 1;\n").len();
    assert_eq!(blocks("docs/some.md"), 2);
    assert_eq!(blocks("docs/compiled.md"), 1);
}

/// What may be quoted.
fn sources() -> String {
    ["lock-runtime/src", "tests/tests", "examples"]
        .map(rust_below)
        .concat()
}

/// The blocks that are neither compiled by `library`, which includes whole documents, nor stand in `sources`.
fn not_compiled(document: &Document, library: &str, sources: &str) -> Vec<String> {
    let is_included = library.contains(&format!("/{}\")]", document.path));
    let blocks = document.text.split("```").skip(1).step_by(2);
    let wrong = blocks.filter(|block| match block.strip_prefix("rust\n") {
        Some(code) => !is_included && !sources.contains(code),
        // Such as `rust,ignore`; no other attribute has been needed.
        None => block.starts_with("rust"),
    });
    wrong
        .map(|block| format!("{}: {block}", document.path))
        .collect()
}
