//! The programs of the examples, which cargo builds beside the tests of their packages.

use std::path::PathBuf;

pub(crate) fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test is a program");
    let folder = test.ancestors().nth(2).expect("it is in `deps`");
    let program = folder.join("examples").join(name);
    assert!(
        program.exists(),
        "build it first: cargo build -p examples -p recipes --examples"
    );
    program
}
