//! Links, paths and `make` targets in the documents.

use std::path::Path;

use crate::repository::{Document, files_below, read, root};
use tests::documents::links::{broken_links, folder};

#[test]
fn every_link_leads_somewhere() {
    none(broken_links);
}

#[test]
fn every_path_exists() {
    none(missing_paths);
}

#[test]
fn every_make_target_exists() {
    none(missing_targets);
}

#[test]
fn what_is_gone_is_noticed() {
    let document = Document::of(
        "docs/some.md",
        "# Some: *heading*\n\n# Twice\n\n# Twice\n\n```console\n# comment\n```\n\n[7](#twice-1) [8](#twice-2) \
         [9](#comment) [1](none.md) [2](guarantees.md#none) [3](#none) [4](guarantees.md#in-short) \
         [5](#some-heading) [6](https://none.example)\n\n\
         `none.md` `tests/none/` `lock-runtime/src/*.none` `tests/src/lib.rs` `ttl/3` `make none` `make test`\n",
    );
    assert_eq!(
        broken_links(&document),
        [
            "#twice-2",
            "#comment",
            "none.md",
            "guarantees.md#none",
            "#none"
        ]
    );
    assert_eq!(
        missing_paths(&document),
        ["none.md", "tests/none/", "lock-runtime/src/*.none"]
    );
    assert_eq!(missing_targets(&document), ["make none"]);
}

fn none(missing: fn(&Document) -> Vec<String>) {
    let report = |document: &Document| {
        let missing = missing(document).into_iter();
        let lines = missing.map(|what| format!("{}: {what}", document.path));
        lines.collect::<Vec<_>>()
    };
    let missing: Vec<_> = Document::all().iter().flat_map(report).collect();
    assert!(missing.is_empty(), "there is no\n{}", missing.join("\n"));
}

/// Files that are built, and a file of a reader's package.
const MADE: &[&str] = &["benches/results/", "target/", "src/main.rs"];

const KINDS: &[&str] = &["lua", "md", "patch", "rs", "toml", "txt", "yml"];

fn missing_paths(document: &Document) -> Vec<String> {
    let mut code = document.code();
    let runtime = root().join("lock-runtime/src");
    let scripts = runtime.join("backend/redis/lua");
    let below = [root(), folder(document), runtime, scripts];
    code.retain(|code| {
        looks_like_a_path(code)
            && !MADE.iter().any(|made| code.starts_with(made))
            && !below.iter().any(|folder| exists(folder, code))
    });
    code
}

fn looks_like_a_path(code: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-./*".contains(c);
    let (first, _) = code.split_once('/').unwrap_or_default();
    let kind = Path::new(code).extension().and_then(|kind| kind.to_str());
    code.chars().all(is_name)
        && !code.starts_with('/')
        && (code.ends_with('/')
            || kind.is_some_and(|kind| KINDS.contains(&kind))
            || (!first.is_empty() && root().join(first).exists()))
}

/// Whether there is such a file or folder; a star stands for any name.
fn exists(folder: &Path, path: &str) -> bool {
    let Some((before, after)) = path.split_once('*') else {
        return folder.join(path).exists();
    };
    let files = files_below(&folder.join(before));
    files
        .iter()
        .any(|file| file.to_str().is_some_and(|file| file.ends_with(after)))
}

fn missing_targets(document: &Document) -> Vec<String> {
    let makefile = read("Makefile");
    let is_target = |name: &str| {
        let rule = format!("{name}:");
        makefile.lines().any(|line| line.starts_with(&rule))
    };
    let mut code = document.code();
    code.retain(|code| {
        let target = code.strip_prefix("make ");
        target.is_some_and(|target| !target.split(' ').next().is_some_and(is_target))
    });
    code
}
