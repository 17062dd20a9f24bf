//! What is written to stdout and stderr: lines for people, or objects for programs.

use std::io::{self, IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::exit::Failure;
use crate::json;
use crate::record;
use crate::words::tame;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();

/// Where answers go. Colours are left out where nobody sees them.
#[derive(Debug)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether objects are wanted, instead of text.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// A note for people beside the output, or an event for programs.
    pub(crate) fn note(&self, event: &impl Serialize, text: &str) {
        let text = if self.json {
            json::text(event).unwrap_or_default()
        } else {
            format!("{DIM}lockctl:{DIM:#} {}", tame(text))
        };
        // There is no way to report that stderr is closed.
        let _ = writeln!(anstream::stderr(), "{text}");
    }

    /// Why a command failed.
    pub(crate) fn failure(&self, failure: &Failure) {
        let (kind, error) = (failure.kind(), failure.to_string());
        let text = if self.json {
            json::text(&record::Failure {
                kind,
                error: &error,
            })
            .unwrap_or_default()
        } else {
            format!("{RED}lockctl:{RED:#} {}", tame(&error))
        };
        let _ = writeln!(anstream::stderr(), "{text}");
    }
}

/// What was not written since nobody reads it any more is not missing.
pub(crate) fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// An object on a line of its own.
pub(crate) fn object(object: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", json::text(object)?)?;
    out.flush()
}

/// A line of text.
pub(crate) fn line(text: impl AsRef<str>) -> io::Result<()> {
    writeln!(anstream::stdout(), "{}", text.as_ref())
}

/// A table with a heading, as wide as it needs where nobody looks.
pub(crate) fn table(heading: &[&str], rows: Vec<Vec<String>>) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heading.iter().copied());
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for (number, row) in table.lines().enumerate() {
        let row = row.trim_end();
        match number {
            0 => line(format!("{DIM}{row}{DIM:#}"))?,
            _ => line(row)?,
        }
    }
    Ok(())
}

/// Whether somebody can be asked.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
