//! Runs other programs, for a limited time.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

/// What `timeout` returns when it had to end the program.
const TIMEOUT: i32 = 124;

/// What a program says on its standard output; the last line of its errors where it fails or takes too long.
pub(crate) async fn run<A: AsRef<OsStr>>(
    seconds: u64,
    folder: &Path,
    program: &str,
    args: impl IntoIterator<Item = A>,
) -> Result<String, String> {
    // It ends what the program has started, too.
    let output = Command::new("timeout")
        .args([&seconds.to_string(), program])
        .args(args)
        .current_dir(folder)
        // Where it is cargo, it must find nothing built.
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
