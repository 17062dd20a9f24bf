//! The Rust in the documents: every block is compiled, with a document or where it was copied from.

use crate::repository::Document;
use tests::documents::blocks::{not_compiled, not_compiled_anywhere};

#[test]
fn every_block_of_rust_is_compiled() {
    let blocks = not_compiled_anywhere();
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
