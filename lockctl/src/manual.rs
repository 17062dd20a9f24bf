//! `lockctl completions` and `lockctl man`, made from the arguments.

use std::io;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::{Done, Exit, Failure};

pub(crate) fn completions(shell: Shell) -> Exit {
    clap_complete::generate(shell, &mut Cli::command(), "lockctl", &mut io::stdout());
    Exit::Success
}

/// A page for each command in a directory, or the main one on stdout.
pub(crate) fn pages(directory: Option<&Path>) -> Done {
    match directory {
        None => clap_mangen::Man::new(Cli::command()).render(&mut io::stdout())?,
        Some(directory) => {
            let pages = clap_mangen::generate_to(Cli::command(), directory);
            let what = || format!("the pages cannot be written to {}", directory.display());
            pages.map_err(|error| Failure::system(what(), error))?;
        }
    }
    Ok(Exit::Success)
}
