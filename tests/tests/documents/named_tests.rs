//! The tests that documents name, as `file: function`, or `crate, module: function` for those of a crate itself.

use crate::repository::{Document, files_below, root};

#[test]
fn every_test_that_a_document_names_exists() {
    let missing: Vec<_> = Document::all().iter().flat_map(missing).collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_test_that_is_gone_is_noticed() {
    let gone = "`documents: a_test_that_is_gone_is_noticed` · `documents:\nthere_is_none` · \
        `no_such_file: at_all` · `lock-runtime, lease: there_is_none`";
    let missing = missing(&Document::of("docs/some.md", gone));
    assert_eq!(
        missing,
        [
            "docs/some.md: no test `documents: there_is_none`",
            "docs/some.md: no test `no_such_file: at_all`",
            "docs/some.md: no test `lock-runtime, lease: there_is_none`",
        ]
    );
}

/// How tests are named, where a document explains it.
const FORM: &str = "file: function";

fn missing(document: &Document) -> Vec<String> {
    let named = document.code().into_iter().filter(|code| {
        let test = code.split_once(": ");
        code != FORM && test.is_some_and(|(file, function)| !exists(file, function))
    });
    named
        .map(|test| format!("{}: no test `{test}`", document.path))
        .collect()
}

/// Whether there is such a test; true as well of what is not the name of one.
fn exists(file: &str, function: &str) -> bool {
    let is_name = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    let (folder, module) = match file.split_once(", ") {
        Some((name, module)) => (format!("{name}/src"), module),
        None => ("tests/tests".to_owned(), file),
    };
    if !is_name(module) || !is_name(function) {
        return true;
    }
    let definitions = [format!("fn {function}("), format!("mod {function};")];
    let files = files_below(&root().join(folder)).into_iter();
    // The module is a file or a folder.
    let mut of_module = files.filter(|file| {
        let mut parts = file.iter().filter_map(|part| part.to_str());
        parts.any(|part| part.strip_suffix(".rs").unwrap_or(part) == module)
    });
    of_module.any(|file| {
        let source = std::fs::read_to_string(file).unwrap_or_default();
        definitions
            .iter()
            .any(|definition| source.contains(definition))
    })
}
