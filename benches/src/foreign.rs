//! Peers in other languages: how to install their packages and start their workers.

use std::path::{Path, PathBuf};

use crate::command::{self, own_program};
use crate::systems::System;

/// How long an installation may take.
const SECONDS: u64 = 120;

/// A peer that is not written in Rust.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Foreign {
    Python,
    Node,
}

impl Foreign {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Python, Self::Node];

    /// The language of a system that is not written in Rust.
    pub(crate) fn of(system: System) -> Option<Self> {
        match system {
            System::RedisPy => Some(Self::Python),
            System::Redlock => Some(Self::Node),
            _ => None,
        }
    }

    /// The system that it is measured as.
    pub(crate) fn system(self) -> System {
        match self {
            Self::Python => System::RedisPy,
            Self::Node => System::Redlock,
        }
    }

    /// Installs the packages that it needs, unless they are there; the error says why it cannot.
    pub(crate) async fn install(self) -> Result<(), String> {
        let folder = folder();
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let run = async |program: &str, args: &[&str]| {
            command::run(SECONDS, &folder, program, args)
                .await
                .map(drop)
        };
        match self {
            Self::Python => {
                if !folder.join("venv").exists() {
                    run("python3", &["-m", "venv", "venv"]).await?;
                }
                let wanted = text(&scripts().join("requirements.txt"));
                run(
                    "venv/bin/pip",
                    &["install", "--quiet", "--requirement", &wanted],
                )
                .await
            }
            Self::Node => {
                run("node", &["--version"]).await?;
                for file in ["package.json", "package-lock.json"] {
                    std::fs::copy(scripts().join(file), folder.join(file))
                        .map_err(|error| format!("{file}: {error}"))?;
                }
                run("npm", &["ci", "--silent", "--no-audit", "--no-fund"]).await
            }
        }
    }

    /// The command that starts its worker.
    pub(crate) fn command(self) -> (String, Vec<String>) {
        match self {
            Self::Python => {
                let python = text(&folder().join("venv/bin/python"));
                (python, vec![text(&scripts().join("redis_py.py"))])
            }
            Self::Node => {
                let script = text(&scripts().join("redlock.js"));
                ("node".into(), vec![script, text(&folder())])
            }
        }
    }
}

/// The folder of the workers' scripts.
fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// The folder for packages, beside the build.
fn folder() -> PathBuf {
    let program = PathBuf::from(own_program());
    let target = program.ancestors().nth(2).expect("a folder of the build");
    target.join("peers")
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
