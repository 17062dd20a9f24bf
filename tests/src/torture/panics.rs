//! Panics of tortured processes, which end one of their tasks and nothing else.

use std::{fs, io, io::Write, panic, path::Path};

/// From now on, each panic of this process is noted in `directory`.
pub(super) fn note(directory: &Path) {
    let process = std::process::id();
    let path = directory.join(format!("{process}.panic"));
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        usual(info);
        let line = format!(
            "process {process}: {}\n",
            info.to_string().replace('\n', " ")
        );
        let file = fs::OpenOptions::new().create(true).append(true).open(&path);
        // What cannot be noted is on its standard error.
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }));
}

/// The panics of all processes.
pub(super) fn read(directory: &Path) -> io::Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "panic") {
            all.extend(fs::read_to_string(path)?.lines().map(str::to_owned));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_task_is_noted() {
        let folder = tempfile::tempdir().expect("a folder");
        note(folder.path());
        let ended = std::thread::spawn(|| panic!("a body ends\nby itself")).join();
        assert!(ended.is_err());
        // Another test of this process may fail meanwhile.
        let all = read(folder.path()).expect("a folder");
        let noted = all.iter().any(|it| it.contains("a body ends by itself"));
        assert!(noted, "{all:?}");
    }
}
