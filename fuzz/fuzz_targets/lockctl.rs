//! Arguments of `lockctl`, one a line: none panics.
#![no_main]
#![allow(dead_code, reason = "lockctl uses more of the modules")]

#[path = "../../lockctl/src/cli.rs"]
mod cli;
#[path = "../../lockctl/src/duration.rs"]
mod duration;

use clap::Parser as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let arguments = std::iter::once("lockctl").chain(text.split('\n'));
    match cli::Cli::try_parse_from(arguments) {
        Ok(cli) => drop(format!("{cli:?}")),
        Err(wrong) => drop(wrong.to_string()),
    }
});
