//! The list of documents in `docs/README.md`: the kinds of documents, and the pages of each.

use std::path::{Component, Path};

use super::repository::Document;

/// Where the list is.
pub const INDEX: &str = "docs/README.md";

/// One kind of documents.
#[derive(Debug, PartialEq)]
pub struct Part {
    /// The heading of the kind.
    pub title: String,
    /// Its pages, in their order.
    pub pages: Vec<Page>,
}

/// A document in the list.
#[derive(Debug, PartialEq)]
pub struct Page {
    /// The text of the link.
    pub title: String,
    /// The path from the root of the repository.
    pub path: String,
}

/// The parts of the list. Entries that lead to a section of a page are left out.
pub fn parts(index: &Document) -> Vec<Part> {
    let sections = index.text.split("\n## ").skip(1);
    let part = |section: &str| Part {
        title: section.lines().next().unwrap_or_default().to_owned(),
        pages: section
            .lines()
            .filter_map(|line| page(index, line))
            .collect(),
    };
    sections.map(part).collect()
}

/// The page of an entry such as `- [Testing](testing.md): how to test …`.
fn page(index: &Document, entry: &str) -> Option<Page> {
    let (title, rest) = entry.strip_prefix("- [")?.split_once("](")?;
    let (link, _) = rest.split_once(')')?;
    let is_markdown = Path::new(link).extension().is_some_and(|kind| kind == "md");
    is_markdown.then(|| Page {
        title: title.to_owned(),
        path: from_root(index, link),
    })
}

/// Where a link of a document leads, as a path from the root.
pub fn from_root(document: &Document, link: &str) -> String {
    let folder = Path::new(&document.path).parent().unwrap_or(Path::new(""));
    let mut parts = Vec::new();
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            part => parts.push(part.as_os_str().to_string_lossy().into_owned()),
        }
    }
    parts.join("/")
}
