//! Checks that the files of a crate, or of a folder in it, import only from their floor and below, and never in a
//! circle.
//!
//! It reads text, not what the compiler makes of it: imports and paths that start from `crate`,
//! `super`, `self` or a module of the file. A name that a macro makes up is not seen.

mod circles;
mod imports;
mod order;
mod paths;
mod tokens;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

pub use order::Order;

use imports::Import;
use order::Relation;

/// What was found in one crate, or in one of its folders.
#[derive(Debug)]
pub struct Survey {
    /// What is wrong, a line for each import that has to go.
    pub mistakes: Vec<String>,
    /// How many imports lead from one folder to another.
    pub between_folders: BTreeMap<(String, String), usize>,
}

/// Reads every file below `root`: the folder of `lib.rs`, or one below it, whose imports from elsewhere are left out.
///
/// # Errors
///
/// Those of reading the files.
pub fn survey(root: &Path, order: &Order) -> io::Result<Survey> {
    let files = imports::files(root)?;
    let imports = imports::of(&files, &imports::root_module(root));
    let mut mistakes: Vec<String> = files
        .iter()
        .filter(|file| !order.knows(&file.room()))
        .map(|file| format!("{}: {} is on no floor", file.path, file.room()))
        .collect();
    let mut between_folders = BTreeMap::new();
    for import in &imports {
        let rooms = (import.from.room(), import.to.room());
        mistakes.extend(wrong_way(import, &rooms, order));
        if rooms.0 != rooms.1 {
            *between_folders.entry(rooms).or_default() += 1;
        }
    }
    mistakes.extend(circles::of(&imports));
    Ok(Survey {
        mistakes,
        between_folders,
    })
}

fn wrong_way(import: &Import<'_>, (from, to): &(String, String), order: &Order) -> Option<String> {
    let relation = match order.relation(from, to)? {
        Relation::Below => return None,
        Relation::Beside => "beside",
        Relation::Above => "above",
    };
    let Import { path, .. } = import;
    Some(format!(
        "{}: {from} imports `{path}`, but {to} is {relation} it",
        import.location()
    ))
}

#[cfg(test)]
mod tests;
