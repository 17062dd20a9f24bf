//! A file system of a server's own, so small that a test can fill it.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The folder that it is mounted on; dropping it unmounts it.
#[derive(Debug)]
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// Mounts one of so many MB; `None`, with a notice, where that is not allowed.
    pub(crate) fn mount(folder: &Path, size: u32, test: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}m"), "tmpfs"]);
        let mounted = mount.arg(folder).stderr(Stdio::null()).status();
        if !mounted.is_ok_and(|it| it.success()) {
            let notice = format!("NOTICE: {test} not run: a small disk cannot be mounted\n");
            // Not by a macro: the output of a test that passes is not shown.
            let _ = io::stderr().write_all(notice.as_bytes());
            return None;
        }
        Some(Self(folder.to_owned()))
    }

    /// Leaves no room for anything more.
    pub(crate) fn fill(&self) {
        let mut filler = File::create(self.filler()).expect("a file");
        let block = [0; 4096];
        while filler.write_all(&block).is_ok() {}
    }

    /// Makes room again.
    pub(crate) fn clear(&self) {
        fs::remove_file(self.filler()).expect("the disk was filled");
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let mut unmount = Command::new("umount");
        // Where it fails, the system does it with the last process that has files there.
        let _ = unmount.arg("--lazy").arg(&self.0).status();
    }
}
