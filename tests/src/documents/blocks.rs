//! The Rust in the documents, and whether anything compiles it.

use super::repository::{Document, read, rust_below};

/// The blocks of Rust in all documents that nothing compiles.
pub fn not_compiled_anywhere() -> Vec<String> {
    let (library, sources) = (read("examples/recipes/src/lib.rs"), sources());
    let not_compiled = |document: &Document| not_compiled(document, &library, &sources);
    Document::all().iter().flat_map(not_compiled).collect()
}

/// The blocks that are neither compiled by `library`, which includes whole documents, nor copied from `sources`.
pub fn not_compiled(document: &Document, library: &str, sources: &str) -> Vec<String> {
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

/// The code that documents may quote.
fn sources() -> String {
    ["lock-runtime/src", "tests/tests", "examples"]
        .map(rust_below)
        .concat()
}
