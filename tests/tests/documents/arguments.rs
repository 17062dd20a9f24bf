//! The arguments of the attribute, in docs/arguments.md, in the attribute's documentation and in the parser.

use crate::repository::{names_in_table, read, rust_below};

#[test]
fn the_reference_lists_every_argument() {
    let listed = names_in_table(&read("docs/arguments.md"), "", "argument");
    assert_eq!(listed, accepted(&rust_below("lock-macros/src")));
}

#[test]
fn the_attribute_documents_every_argument() {
    let listed = names_in_table(&read("lock-runtime/src/lib.rs"), "/// ", "argument");
    assert_eq!(listed, accepted(&rust_below("lock-macros/src")));
}

#[test]
fn an_argument_that_is_not_listed_is_noticed() {
    let table = "| argument | form |\n|---|---|\n| `key` | a string |\n\n| `ttl` | is elsewhere |";
    let parser = r#"const ARGUMENTS: &[(&str, &str)] = &[
        ("key", "\"a\""),
        ("ttl", "\"1s\""),
    ];"#;
    assert_eq!(names_in_table(table, "", "argument"), ["key"]);
    assert_eq!(accepted(parser), ["key", "ttl"]);
}

/// The names in `ARGUMENTS`, which the parser goes by.
fn accepted(source: &str) -> Vec<String> {
    let (_, list) = source
        .split_once("const ARGUMENTS: ")
        .expect("the parser has a list of its arguments");
    let (list, _) = list.split_once("];").expect("it ends");
    let entries = list.lines().map(str::trim_start);
    entries
        .filter_map(|entry| entry.strip_prefix("(\"")?.split('"').next())
        .map(str::to_owned)
        .collect()
}
