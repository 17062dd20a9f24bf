//! `floors FOLDER ORDER [--list]`: checks that the imports of a crate, or within a folder of it, lead downwards and in no
//! circle.
//!
//! ORDER names the folders from the lowest floor to the highest: `base < backend | held < lib.rs`.
//! `--list` prints how many imports lead from folder to folder.

use std::process::ExitCode;
use std::{env, path::Path};

use tests::floors::{Order, survey};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (folder, order, list) = match words.as_slice() {
        [folder, order] => (folder, order, false),
        [folder, order, "--list"] => (folder, order, true),
        _ => panic!("usage: floors FOLDER ORDER [--list]"),
    };
    let order: Order = order.parse().expect("floors, as in `base < lib.rs`");
    let survey = survey(Path::new(folder), &order).expect("the files can be read");
    if list {
        for ((from, to), count) in &survey.between_folders {
            println!("{from} -> {to}: {count}");
        }
    }
    for mistake in &survey.mistakes {
        eprintln!("{mistake}");
    }
    if survey.mistakes.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
