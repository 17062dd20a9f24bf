//! The site: what mdBook is given, and whether the links in what it builds lead somewhere.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::index::{INDEX, Part, from_root, parts};
use super::links::links;
use super::repository::{Document, files_below, read, root};

/// The first page, before those of the list.
const FIRST: &str = "README.md";

/// The documents of the site: the first page, the list of documents, and what it lists.
pub fn pages() -> Vec<Document> {
    let listed = parts(&index()).into_iter().flat_map(|part| part.pages);
    let paths = [FIRST, INDEX].map(str::to_owned).into_iter();
    let paths = paths.chain(listed.map(|page| page.path));
    paths
        .map(|path| Document::of(&path, &read(&path)))
        .collect()
}

/// Writes what mdBook reads: the pages with the files that they link to, and a summary made from the list.
///
/// # Errors
///
/// If a file cannot be read or written.
pub fn stage(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let pages = pages();
    let in_site: BTreeSet<_> = pages.iter().map(|page| page.path.clone()).collect();
    for page in &pages {
        write(folder, &page.path, with_links_of_the_site(page).as_bytes())?;
        for link in links(page) {
            let path = from_root(page, link.split('#').next().unwrap_or_default());
            if !in_site.contains(&path) && root().join(&path).is_file() {
                write(folder, &path, &fs::read(root().join(&path))?)?;
            }
        }
    }
    write(folder, "SUMMARY.md", summary(&parts(&index())).as_bytes())
}

/// Links in the pages below `site` that lead to no file of it or to no element of the page.
pub fn dead_links(site: &Path) -> Vec<String> {
    let files = files_below(site).into_iter();
    let pages = files.filter(|file| file.extension().is_some_and(|kind| kind == "html"));
    pages.flat_map(|page| dead_links_of(&page)).collect()
}

fn dead_links_of(page: &Path) -> Vec<String> {
    let html = fs::read_to_string(page).unwrap_or_default();
    let folder = page.parent().expect("a file is in a folder");
    let is_dead = |link: &&str| {
        let (file, element) = link.split_once('#').unwrap_or((link, ""));
        let file = match file {
            "" => page.to_owned(),
            file => folder.join(file),
        };
        !file.is_file() || !(element.is_empty() || has_element(&file, element))
    };
    let links = html.split("href=\"").skip(1);
    let links = links.filter_map(|rest| rest.split('"').next());
    let here = links.filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
    here.filter(is_dead)
        .map(|link| format!("{}: {link}", page.display()))
        .collect()
}

fn has_element(file: &Path, id: &str) -> bool {
    let html = fs::read_to_string(file).unwrap_or_default();
    html.contains(&format!("id=\"{id}\""))
}

fn index() -> Document {
    Document::of(INDEX, &read(INDEX))
}

/// The list of pages in the form of mdBook.
fn summary(parts: &[Part]) -> String {
    let mut summary = format!("# Summary\n\n[lock-runtime]({FIRST})\n[Documents]({INDEX})\n");
    for part in parts {
        let _ = writeln!(summary, "\n# {}\n", part.title);
        for page in &part.pages {
            let _ = writeln!(summary, "- [{}]({})", page.title, page.path);
        }
    }
    summary
}

/// The text with links as the site has them: mdBook names `README.md` `index`, and a folder becomes plain words.
fn with_links_of_the_site(page: &Document) -> String {
    let mut text = page.text.clone();
    for link in links(page) {
        let end = format!("]({link})");
        if root().join(from_root(page, &link)).is_dir() {
            let at = text.find(&end).expect("the page has the link");
            let start = text[..at].rfind('[').expect("a link has a beginning");
            text.replace_range(at..at + end.len(), "");
            text.remove(start);
        } else if link.ends_with("README.md") {
            text = text.replace(&end, &end.replace("README.md", "index.md"));
        }
    }
    text
}

fn write(folder: &Path, path: &str, content: &[u8]) -> io::Result<()> {
    let file: PathBuf = folder.join(path);
    fs::create_dir_all(file.parent().expect("a file is in a folder"))?;
    fs::write(file, content)
}
