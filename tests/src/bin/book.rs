//! `book MDBOOK`: builds the documents as a site in `target/book` with that program, and checks it.
//!
//! Prints the number of pages, words, dead links and blocks of Rust that nothing compiles; fails on the last two. Tables
//! that programs write are counted apart.
//! Without the program, only the documents themselves are checked.

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode};

use tests::documents::blocks::not_compiled_anywhere;
use tests::documents::links::broken_links;
use tests::documents::repository::{Document, root};
use tests::documents::site::{dead_links, pages, stage};
use tests::documents::words::Words;

fn main() -> ExitCode {
    let mdbook = env::args().nth(1).expect("usage: book MDBOOK");
    let mut dead: Vec<_> = Document::all().iter().flat_map(broken).collect();
    if Path::new(&mdbook).exists() {
        build(&mdbook);
        dead.extend(dead_links(&root().join("target/book")));
    }
    let not_compiled = not_compiled_anywhere();
    for mistake in dead.iter().chain(&not_compiled) {
        eprintln!("{mistake}");
    }

    let pages = pages();
    let words: Words = pages.iter().map(|page| Words::of(&page.text)).sum();
    println!(
        "{} pages, {} words and {} in tables that programs write, {} dead links, \
         {} blocks of Rust that are not compiled",
        pages.len(),
        words.written,
        words.generated,
        dead.len(),
        not_compiled.len()
    );
    if dead.is_empty() && not_compiled.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn broken(document: &Document) -> Vec<String> {
    let links = broken_links(document).into_iter();
    links
        .map(|link| format!("{}: {link}", document.path))
        .collect()
}

fn build(mdbook: &str) {
    stage(&root().join("target/book-pages")).expect("the pages can be written");
    let built = Command::new(mdbook).arg("build").arg(root()).status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "mdBook has not built the site"
    );
}
