//! Which tests show which section of the documents: a line `Section: page.md#heading` in a test file or above a test says it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::index::{INDEX, parts};
use super::links::headings;
use super::repository::{Document, files_below, read, root};

const LINE: &str = "Section: ";

/// Where tests are: a folder, and what it is called in the table.
const FOLDERS: &[(&str, &str)] = &[
    ("tests/tests", ""),
    ("lock-runtime/src", "lock-runtime "),
    ("lock-macros/src", "lock-macros "),
];

/// The tests of one file that show one section.
#[derive(Debug, PartialEq)]
pub struct Shown {
    /// `page.md#heading`, relative to `docs/`.
    pub section: String,
    /// `crate module::module`, or the test program and its module.
    pub file: String,
    /// Their names.
    pub tests: Vec<String>,
}

/// All tests that show a section, in the order of files.
pub fn shown() -> Vec<Shown> {
    let mut all = Vec::new();
    for (folder, name) in FOLDERS {
        let folder = root().join(folder);
        for file in files_below(&folder) {
            let path = file.strip_prefix(&folder).expect("it is below the folder");
            let module = path.with_extension("").to_string_lossy().replace('/', "::");
            let module = module.trim_end_matches("::main").trim_end_matches("::mod");
            let source = std::fs::read_to_string(&file).unwrap_or_default();
            all.extend(shown_in(&format!("{name}{module}"), &source));
        }
    }
    all
}

/// The tests of a file, by the sections that they show. A line above a test replaces the line of its file.
pub fn shown_in(file: &str, source: &str) -> Vec<Shown> {
    let (listed, mut by_section) = (listed(source), BTreeMap::<_, Vec<_>>::new());
    let (mut of_file, mut of_test, mut is_test) = (Vec::new(), None, false);
    let mut add = |name: &str, sections: &[String]| {
        for section in sections {
            let tests = by_section.entry(section.clone()).or_default();
            tests.push(name.to_owned());
        }
    };
    for line in source.lines().map(str::trim_start) {
        if let Some(sections) = line.strip_prefix("//! ").and_then(sections) {
            of_file = sections;
        } else if let Some(sections) = line.strip_prefix("// ").and_then(sections) {
            of_test = Some(sections);
        } else if line.starts_with("#[test") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(kind) = kind_checked(line) {
            add(kind, &of_file);
        } else if let Some(name) = function(line) {
            if is_test || listed.contains(&name) {
                add(name, of_test.as_ref().unwrap_or(&of_file));
            }
            (of_test, is_test) = (None, false);
        }
    }
    let shown = |(section, tests)| Shown {
        section,
        file: file.to_owned(),
        tests,
    };
    by_section.into_iter().map(shown).collect()
}

/// A table of all sections that tests show, in the order of the pages and their headings.
pub fn table(shown: &[Shown]) -> String {
    let mut table = "| section | file | tests |\n|---|---|---|\n".to_owned();
    for (section, title) in places() {
        let mut title = format!("[{title}]({section})");
        for row in shown.iter().filter(|it| it.section == section) {
            let tests: Vec<_> = row.tests.iter().map(|it| format!("`{it}`")).collect();
            let _ = writeln!(table, "| {title} | `{}` | {} |", row.file, tests.join(", "));
            title.clear();
        }
    }
    table
}

/// The sections that no document has.
pub fn unknown(shown: &[Shown]) -> Vec<String> {
    let places = places();
    let is_unknown = |it: &&Shown| !places.iter().any(|(section, _)| *section == it.section);
    let unknown = shown.iter().filter(is_unknown);
    unknown
        .map(|it| format!("{}: {}", it.file, it.section))
        .collect()
}

/// Every section of every page in `docs/`, as tests name it, with its heading; the guarantees come first.
fn places() -> Vec<(String, String)> {
    let index = Document::of(INDEX, &read(INDEX));
    let pages = parts(&index).into_iter().flat_map(|part| part.pages);
    let mut pages: Vec<_> = pages.map(|page| page.path).collect();
    pages.sort_by_key(|path| path != "docs/guarantees.md");
    let sections = |path: String| {
        let page = Document::of(&path, &read(&path));
        let prose = page.prose();
        let titles = prose.lines().filter(|line| line.starts_with('#'));
        let titles = titles.map(|line| line.trim_start_matches('#').trim().to_owned());
        let name = path.trim_start_matches("docs/").to_owned();
        let anchors = headings(&page).into_iter();
        let sections = anchors.map(move |anchor| format!("{name}#{anchor}"));
        sections.zip(titles.collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    pages.into_iter().flat_map(sections).collect()
}

fn sections(comment: &str) -> Option<Vec<String>> {
    let sections = comment.strip_prefix(LINE)?;
    Some(sections.split(", ").map(str::to_owned).collect())
}

/// The tests in the tables of `on_every_store!`.
fn listed(source: &str) -> Vec<&str> {
    let tables = source.split("on_every_store! {\n").skip(1);
    let rows = tables.flat_map(|table| table.lines().take_while(|line| *line != "}"));
    rows.filter_map(|row| row.trim().trim_end_matches(',').split(' ').next())
        .collect()
}

/// The name of a kind of locks that is put to the checks of every kind.
fn kind_checked(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("checks_of_kind!(")?;
    rest.split(',').next()
}

/// The name of the function that begins on this line.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}
