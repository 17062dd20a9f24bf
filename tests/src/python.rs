//! Processes of the client in Python, where there are Python and what it needs.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use crate::Worker;

/// An interpreter that has redis-py.
static PYTHON: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let usable = |python: &PathBuf| {
        Command::new(python)
            .args(["-c", "import redis"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    // Where `make setup` puts it; else the machine's own may do.
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/python/bin/python");
    let candidates = [installed, "python3".into()];
    candidates.into_iter().find(usable)
});

/// The command that runs a program in `tests/python`.
pub(crate) fn command(program: &str) -> [String; 3] {
    let python = PYTHON.as_ref().expect("there is a Python with redis-py");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let script = script.join(program);
    let [python, script] = [python, &script].map(|it| it.to_string_lossy().into_owned());
    // `-B`: no files beside the sources.
    [python, "-B".to_owned(), script]
}

impl Worker {
    /// Whether [`Worker::python`] works here; if not, a notice says that `test` is skipped.
    pub fn has_python(test: &str) -> bool {
        if PYTHON.is_none() {
            let notice = format!(
                "NOTICE: {test} not run: no Python with redis-py; `make setup` installs it\n"
            );
            // Not by a macro: the output of a test that passes is not shown.
            let _ = io::stderr().write_all(notice.as_bytes());
        }
        PYTHON.is_some()
    }

    /// Starts `tests/python/worker.py`.
    pub async fn python<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Self {
        Self::python_program("worker.py", args).await
    }

    /// Starts a program in `tests/python`.
    pub async fn python_program<A: AsRef<OsStr>>(
        program: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let [python, words @ ..] = command(program);
        let mut all = words.map(OsString::from).to_vec();
        all.extend(args.into_iter().map(|it| it.as_ref().to_owned()));
        Self::spawn(&python, all).await
    }
}
