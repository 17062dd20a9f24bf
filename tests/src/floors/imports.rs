//! Resolves the paths of all files to the files that they lead to.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use super::paths::{self, Source, Written};

/// A file of the crate.
#[derive(Debug)]
pub(super) struct File {
    /// From the root on, with slashes.
    pub(super) path: String,
    module: Vec<String>,
    source: Source,
}

/// A path in one file that leads to another.
#[derive(Debug)]
pub(super) struct Import<'a> {
    pub(super) from: &'a File,
    pub(super) line: usize,
    pub(super) path: String,
    pub(super) to: &'a File,
    /// In a module for tests.
    pub(super) test: bool,
}

impl File {
    /// The folder that the file stands in, seen from the root; at the root, its own name.
    pub(super) fn room(&self) -> String {
        let first = self.path.split('/').next();
        first.unwrap_or_default().to_owned()
    }
}

impl Import<'_> {
    /// `base/clock.rs:3`
    pub(super) fn location(&self) -> String {
        format!("{}:{}", self.from.path, self.line)
    }
}

/// Every Rust file below this folder, in order.
pub(super) fn files(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    let mut folders = vec![Vec::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(folder.join("/")))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = [&folder[..], &[name]].concat();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if let Some(module) = module(&path) {
                files.push(File {
                    path: path.join("/"),
                    module,
                    source: paths::read(&fs::read_to_string(entry.path())?),
                });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// The module in the file at this path, if it is Rust.
fn module(path: &[String]) -> Option<Vec<String>> {
    let (name, folder) = path.split_last()?;
    let name = name.strip_suffix(".rs")?;
    Some(match name {
        "mod" => folder.to_vec(),
        "lib" | "main" if folder.is_empty() => Vec::new(),
        name => [folder, &[name.to_owned()]].concat(),
    })
}

/// The module whose files this folder holds: none for the root of a crate.
pub(super) fn root_module(root: &Path) -> Vec<String> {
    let is_crate = |folder: &&Path| {
        ["lib.rs", "main.rs"]
            .iter()
            .any(|it| folder.join(it).exists())
    };
    let crates = root.ancestors().find(is_crate);
    let within = crates.and_then(|it| root.strip_prefix(it).ok());
    let names = within.into_iter().flatten();
    names.map(|it| it.to_string_lossy().into_owned()).collect()
}

/// Every path that leads from one of these files, which are those of a module, to another.
pub(super) fn of<'a>(files: &'a [File], root: &[String]) -> Vec<Import<'a>> {
    let modules: BTreeMap<&[String], &File> =
        files.iter().map(|file| (&file.module[..], file)).collect();
    let mut imports = Vec::new();
    for from in files {
        let test = is_test(from, &modules);
        for written in &from.source.paths {
            let target = target(written, &from.module, root, &modules);
            if let Some(to) = target.filter(|to| to.path != from.path) {
                imports.push(Import {
                    from,
                    line: written.line,
                    path: written.segments.join("::"),
                    to,
                    test: test || written.test,
                });
            }
        }
    }
    imports
}

/// The file of the longest part of the path that is a module.
fn target<'a>(
    written: &Written,
    module: &[String],
    root: &[String],
    modules: &BTreeMap<&[String], &'a File>,
) -> Option<&'a File> {
    let mut path = [module, &written.within].concat();
    let mut segments = written.segments.iter().map(String::as_str).peekable();
    match segments.next()? {
        "crate" => {
            path.clear();
            for name in root {
                segments.next_if_eq(&name.as_str())?;
            }
        }
        "self" => {}
        "super" => {
            path.pop()?;
            while segments.next_if_eq(&"super").is_some() {
                path.pop()?;
            }
        }
        child => {
            path.push(child.to_owned());
            modules.get(&path[..])?;
        }
    }
    path.extend(segments.map(ToOwned::to_owned));
    (0..=path.len())
        .rev()
        .find_map(|size| modules.get(&path[..size]).copied())
}

/// Whether the file, or a module around it, is declared under `#[cfg(test)]` or called `tests`.
fn is_test(file: &File, modules: &BTreeMap<&[String], &File>) -> bool {
    (0..file.module.len()).any(|depth| {
        let name = &file.module[depth];
        let parent = modules.get(&file.module[..depth]);
        let declared = parent.is_some_and(|parent| {
            let mut modules = parent.source.modules.iter();
            modules.any(|module| module.test && module.name == *name)
        });
        declared || name == "tests"
    })
}
