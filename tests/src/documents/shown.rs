//! Which files of tests show which section of the documents: a line `Section: page.md#heading` in the file says it.

use std::collections::BTreeSet;
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

/// A file with tests that show a section.
#[derive(Debug, PartialEq)]
pub struct Shown {
    /// `page.md#heading`, relative to `docs/`.
    pub section: String,
    /// `crate module::module`, or the test program and its module.
    pub file: String,
}

/// All sections that tests show, in the order of files.
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

/// The sections that the tests of a file show, each once.
///
/// Lines are read rather than tests, so that tests that macros make count too.
pub fn shown_in(file: &str, source: &str) -> Vec<Shown> {
    let lines = source.lines().map(str::trim_start);
    let named: BTreeSet<_> = lines.filter_map(sections).flatten().collect();
    let shown = |section| Shown {
        section,
        file: file.to_owned(),
    };
    named.into_iter().map(shown).collect()
}

/// A table of all sections that tests show, in the order of the pages and their headings.
pub fn table(shown: &[Shown]) -> String {
    let mut table = "| section | files |\n|---|---|\n".to_owned();
    for (section, title) in places() {
        let rows = shown.iter().filter(|it| it.section == section);
        let files: Vec<_> = rows.map(|it| format!("`{}`", it.file)).collect();
        if !files.is_empty() {
            let _ = writeln!(table, "| [{title}]({section}) | {} |", files.join(", "));
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

/// The sections that a comment names.
fn sections(line: &str) -> Option<Vec<String>> {
    let comment = line.strip_prefix("//! ").or(line.strip_prefix("// "))?;
    let sections = comment.strip_prefix(LINE)?;
    Some(sections.split(", ").map(str::to_owned).collect())
}
