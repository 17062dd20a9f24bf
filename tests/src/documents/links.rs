//! The links of a document, and whether they lead somewhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::repository::{Document, root};

/// The links in the prose of a document to files and headings of the repository.
pub fn links(document: &Document) -> Vec<String> {
    let prose = document.prose();
    let targets = prose.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    targets
        .filter(|link| !link.contains("://"))
        .map(str::to_owned)
        .collect()
}

/// The links that lead to no file, or to no heading of it.
pub fn broken_links(document: &Document) -> Vec<String> {
    let leads_somewhere = |link: &String| {
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let there = match file {
            "" => Document::of(&document.path, &document.text),
            _ if heading.is_empty() => return folder(document).join(file).exists(),
            _ => {
                let text = fs::read_to_string(folder(document).join(file));
                Document::of(file, &text.unwrap_or_default())
            }
        };
        headings(&there).contains(&heading.to_owned())
    };
    let mut links = links(document);
    links.retain(|link| !leads_somewhere(link));
    links
}

/// The folder that the links of a document start from.
pub fn folder(document: &Document) -> PathBuf {
    let path = root().join(&document.path);
    path.parent().expect("a file is in a folder").to_owned()
}

/// The headings as links name them: of two with the same words, the second ends in `-1`.
pub fn headings(document: &Document) -> Vec<String> {
    let prose = document.prose();
    let lines = prose.lines().filter(|line| line.starts_with('#'));
    let mut seen = BTreeMap::new();
    let anchors = lines.map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor = kept.collect::<String>().replace(' ', "-");
        let before = seen.entry(anchor.clone()).or_insert(0_u32);
        *before += 1;
        match *before {
            1 => anchor,
            count => format!("{anchor}-{}", count - 1),
        }
    });
    anchors.collect()
}
