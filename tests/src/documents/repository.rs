//! The files of the repository, and the parts of a document.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the workspace.
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the workspace").to_owned()
}

/// The text of a file; `path` is relative to the root.
pub fn read(path: &str) -> String {
    let file = root().join(path);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The text of every Rust file below a folder, one after the other.
pub fn rust_below(folder: &str) -> String {
    let files = files_below(&root().join(folder)).into_iter();
    files
        .filter(|file| file.extension().is_some_and(|kind| kind == "rs"))
        .map(|file| fs::read_to_string(file).expect("source is text"))
        .collect()
}

/// Every file below a folder; none where there is no such folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let expand = |path: PathBuf| {
        if path.is_dir() {
            files_below(&path)
        } else {
            vec![path]
        }
    };
    paths.into_iter().flat_map(expand).collect()
}

/// The first cells of the rows of the table whose header begins with `| header |`; `margin` begins every line.
pub fn names_in_table(text: &str, margin: &str, header: &str) -> Vec<String> {
    let rows = rows_of_table(text, margin, header).into_iter();
    rows.filter_map(|row| Some(row.split('`').nth(1)?.to_owned()))
        .collect()
}

/// The rows of that table, without their margins.
pub fn rows_of_table<'t>(text: &'t str, margin: &str, header: &str) -> Vec<&'t str> {
    let header = format!("| {header} |");
    let lines = text.lines().map(|line| line.trim_start_matches(margin));
    lines
        .skip_while(|line| !line.starts_with(&header))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect()
}

/// A document of the repository; `path` is relative to the root.
#[derive(Debug)]
pub struct Document {
    /// Where it is, from the root.
    pub path: String,
    /// Markdown.
    pub text: String,
}

impl Document {
    /// All of them: in the root, below `docs/`, and the READMEs of the packages.
    pub fn all() -> Vec<Document> {
        let folders = [
            "",
            "docs",
            "docs/development",
            "docs/guide",
            "examples",
            "lock-macros",
            "lock-runtime",
            "lockctl",
            "tests",
        ];
        let files = folders.iter().flat_map(|folder| {
            let entries = fs::read_dir(root().join(folder)).expect("a folder");
            entries.flatten().map(|entry| entry.path())
        });
        let documents = files.filter(|file| file.extension().is_some_and(|kind| kind == "md"));
        let documents = documents.map(|file| {
            let path = file.strip_prefix(root()).expect("it is below the root");
            let path = path.to_str().expect("names are text").to_owned();
            let text = read(&path);
            Document { path, text }
        });
        documents.collect()
    }

    /// A document for a test of a check.
    pub fn of(path: &str, text: &str) -> Document {
        let (path, text) = (path.to_owned(), text.to_owned());
        Document { path, text }
    }

    /// The paragraphs, tables and headings, without the blocks of code.
    pub fn prose(&self) -> String {
        self.text.split("```").step_by(2).collect()
    }

    /// The words in backticks of the prose, on one line each.
    pub fn code(&self) -> Vec<String> {
        let prose = self.prose();
        let paragraphs = prose.split("\n\n");
        let code = paragraphs.flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2));
        code.map(|code| code.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    }
}
