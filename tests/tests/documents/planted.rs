//! The bugs in `tests/mutations`, as CONTRIBUTING.md describes them: which promise each breaks, and which test notices.

use std::path::Path;

use crate::repository::{files_below, read, root};

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

    fn mistake(&self, sections: &[Section]) -> Option<String> {
        let says = |what: &str| Some(format!("tests/mutations/{}.patch: {what}", self.name));
        let sentence = self.text.lines().next().unwrap_or_default();
        if !sentence.ends_with('.') {
            return says("it does not begin with a sentence");
        }
        let unknown = |promise: &&str| !sections.iter().any(|it| it.anchor == *promise);
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

/// A section of the guarantees.
struct Section {
    anchor: String,
    names_tests: bool,
}

impl Section {
    fn all() -> Vec<Self> {
        let text = read(PROMISES);
        let parts = text.split("\n##").skip(1);
        parts.map(Self::of).collect()
    }

    fn of(text: &str) -> Self {
        let title = text.lines().next().unwrap_or_default();
        let title = title.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -".contains(*c));
        Self {
            anchor: kept.collect::<String>().replace(' ', "-"),
            names_tests: text.contains(": a") || text.contains(": the_"),
        }
    }
}

#[test]
fn every_planted_bug_says_what_it_breaks_and_which_test_notices() {
    let sections = Section::all();
    let mistakes: Vec<_> = Planted::all()
        .iter()
        .filter_map(|planted| planted.mistake(&sections))
        .collect();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn every_section_of_promises_has_a_planted_bug() {
    let planted = Planted::all();
    let is_broken = |section: &Section| {
        let anchor = Some(&*section.anchor);
        planted.iter().any(|it| it.line("promise") == anchor)
    };
    let sections = Section::all();
    let unbroken: Vec<_> = sections
        .iter()
        .filter(|it| it.names_tests && !is_broken(it))
        .map(|it| &*it.anchor)
        .collect();
    assert!(unbroken.is_empty(), "nothing breaks {unbroken:?}");
}
