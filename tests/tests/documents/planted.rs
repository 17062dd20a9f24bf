//! The bugs in `tests/mutations`, as CONTRIBUTING.md describes them: which promise each breaks, and which test notices.

use std::collections::BTreeSet;
use std::path::Path;

use crate::repository::{Document, files_below, read, root};
use tests::documents::links::headings;
use tests::documents::shown::shown;

const PROMISES: &str = "docs/guarantees.md";

/// A patch, by its name.
struct Planted {
    name: String,
    text: String,
}

impl Planted {
    fn all() -> Vec<Self> {
        let files = files_below(&root().join("tests/mutations")).into_iter();
        let patches = files.filter(|file| file.extension().is_some_and(|it| it == "patch"));
        patches.map(|file| Self::read(&file)).collect()
    }

    fn read(file: &Path) -> Self {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            name: name.into_owned(),
            text: std::fs::read_to_string(file).expect("a patch is text"),
        }
    }

    /// The text behind `name: ` in the lines above the patch itself.
    fn line(&self, name: &str) -> Option<&str> {
        let head = self.text.split("\ndiff ").next()?;
        let value = |line| str::strip_prefix(line, name)?.strip_prefix(": ");
        head.lines().find_map(value)
    }

    fn mistake(&self, sections: &[String]) -> Option<String> {
        let says = |what: &str| Some(format!("tests/mutations/{}.patch: {what}", self.name));
        let sentence = self.text.lines().next().unwrap_or_default();
        if !sentence.ends_with('.') {
            return says("it does not begin with a sentence");
        }
        let unknown = |promise: &&str| !sections.iter().any(|it| it == promise);
        if let Some(promise) = self.line("promise").filter(unknown) {
            return says(&format!("{PROMISES} has no section #{promise}"));
        }
        let Some(test) = self.line("test") else {
            return says("it names no test");
        };
        let mut words = test.split(' ').skip_while(|word| *word != "--test");
        let program = words.nth(1).filter(|_| test.starts_with("-p tests "));
        let exists = |program: &str| {
            let tests = root().join("tests/tests");
            tests.join(program).is_dir() || tests.join(format!("{program}.rs")).is_file()
        };
        match program {
            Some(program) if !exists(program) => {
                says(&format!("no test program is called {program}"))
            }
            _ => None,
        }
    }
}

#[test]
fn every_planted_bug_says_what_it_breaks_and_which_test_notices() {
    let sections = headings(&Document::of(PROMISES, &read(PROMISES)));
    let mistakes: Vec<_> = Planted::all()
        .iter()
        .filter_map(|planted| planted.mistake(&sections))
        .collect();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn every_promise_that_tests_show_has_a_planted_bug() {
    let planted = Planted::all();
    let is_broken = |promise: &&str| planted.iter().any(|it| it.line("promise") == Some(promise));
    let shown = shown();
    let promises = shown.iter().map(|it| it.section.split_once('#'));
    let promises = promises.filter_map(|section| match section {
        Some(("guarantees.md", promise)) => Some(promise),
        _ => None,
    });
    let unbroken: BTreeSet<_> = promises.filter(|promise| !is_broken(promise)).collect();
    assert!(unbroken.is_empty(), "nothing breaks {unbroken:?}");
}
