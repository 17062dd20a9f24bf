//! Runs other programs with a time limit; also the path of this one.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

/// The exit status of `timeout` when it had to end the program.
const TIMEOUT: i32 = 124;

/// Returns the program's standard output, or the last line of its standard error if it fails or takes too long.
pub(crate) async fn run<A: AsRef<OsStr>>(
    seconds: u64,
    folder: &Path,
    program: &str,
    args: impl IntoIterator<Item = A>,
) -> Result<String, String> {
    // It also ends the child processes of the program.
    let output = Command::new("timeout")
        .args([&seconds.to_string(), program])
        .args(args)
        .current_dir(folder)
        // If the program is cargo, it must start from an empty target folder.
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    if output.status.code() == Some(TIMEOUT) {
        return Err(format!("{program}: not done after {seconds} s"));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.lines().last().unwrap_or("no reason given");
    Err(format!("{program}: {reason} ({})", output.status))
}

/// The path of this program.
pub(crate) fn own_program() -> String {
    let path = std::env::current_exe().expect("a path of our own");
    path.into_os_string().into_string().expect("UTF-8")
}
