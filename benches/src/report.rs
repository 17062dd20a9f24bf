//! The figures with their bounds, as a table and as JSON.

use std::fmt;
use std::path::Path;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;
use serde_json::{Map, Value};

/// How a figure is printed.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// A number.
    Plain,
    /// Per second.
    PerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// A share of one CPU.
    Percent,
}

/// The bound of a figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Bound {
    /// What is compared: the figure itself or its ratio to another one.
    value: f64,
    /// What it is compared with, in words.
    of: &'static str,
    at_most: bool,
    limit: f64,
    met: bool,
}

impl Bound {
    /// The value must not exceed the limit.
    pub(crate) fn at_most(limit: f64, value: f64, of: &'static str) -> Self {
        Self {
            value,
            of,
            at_most: true,
            limit,
            met: value <= limit,
        }
    }

    /// The value must reach the limit.
    pub(crate) fn at_least(limit: f64, value: f64, of: &'static str) -> Self {
        Self {
            value,
            of,
            at_most: false,
            limit,
            met: value >= limit,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = if self.at_most { "at most" } else { "at least" };
        write!(
            f,
            "{}{}, {words} {}",
            number(self.value),
            self.of,
            number(self.limit)
        )
    }
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    case: String,
    figure: String,
    unit: Unit,
    ours: f64,
    /// The same figure for other systems.
    beside: Vec<(String, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<Bound>,
}

impl Row {
    /// A figure of ours.
    pub(crate) fn new(case: &str, figure: &str, unit: Unit, ours: f64) -> Self {
        Self {
            case: case.into(),
            figure: figure.into(),
            unit,
            ours,
            beside: Vec::new(),
            bound: None,
        }
    }

    /// Adds the figure of another system.
    pub(crate) fn beside(mut self, name: impl fmt::Display, value: f64) -> Self {
        self.beside.push((name.to_string(), value));
        self
    }

    /// Adds a bound.
    pub(crate) fn bound(self, bound: Bound) -> Self {
        Self {
            bound: Some(bound),
            ..self
        }
    }
}

/// All figures of a run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    /// Where and how it was run.
    pub(crate) run: Map<String, Value>,
    /// What was left out, and why.
    pub(crate) notices: Vec<String>,
    rows: Vec<Row>,
    /// The raw values behind the medians and the plots.
    raw: Map<String, Value>,
}

impl Report {
    /// Adds a figure.
    pub(crate) fn add(&mut self, row: Row) {
        println!(
            "  {}: {}{}",
            row.figure,
            row.unit.show(row.ours),
            row.verdict_in_words()
        );
        self.rows.push(row);
    }

    /// Ours and the others of one figure, the largest first.
    pub(crate) fn values(&self, case: &str, figure: &str) -> Option<Vec<(String, f64)>> {
        let row = self
            .rows
            .iter()
            .find(|row| row.case == case && row.figure == figure)?;
        let mut values = vec![("ours".into(), row.ours)];
        values.extend(
            row.beside
                .iter()
                .filter(|(_, value)| value.is_finite())
                .cloned(),
        );
        values.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        Some(values)
    }

    /// Keeps the raw values of a figure.
    pub(crate) fn keep(&mut self, name: impl Into<String>, values: impl Into<Value>) {
        self.raw.insert(name.into(), values.into());
    }

    /// Notes what was left out, and why.
    pub(crate) fn notice(&mut self, text: String) {
        println!("NOTICE: {text}");
        self.notices.push(text);
    }

    /// Prints the table; returns how many bounds are not met.
    pub(crate) fn print(&self) -> usize {
        let mut table = Table::new();
        table
            .load_style(presets::ASCII_MARKDOWN)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(["case", "figure", "ours", "beside it", "bound", ""]);
        let mut last = "";
        for row in &self.rows {
            let case = if row.case == last { "" } else { &row.case };
            last = &row.case;
            table.add_row([
                Cell::new(case),
                Cell::new(&row.figure),
                Cell::new(row.unit.show(row.ours)).set_alignment(CellAlignment::Right),
                Cell::new(row.others()),
                Cell::new(
                    row.bound
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                ),
                Cell::new(row.verdict()),
            ]);
        }
        println!("\n{table}");
        for notice in &self.notices {
            println!("NOTICE: {notice}");
        }
        let bounds = self.rows.iter().filter_map(|row| row.bound.as_ref());
        let (met, short): (Vec<_>, Vec<_>) = bounds.partition(|bound| bound.met);
        println!("{} bounds ok, {} short", met.len(), short.len());
        short.len()
    }

    /// The table as Markdown, with a line that says where it was run.
    pub(crate) fn markdown(&self, title: &str) -> String {
        let mut text = format!("{title}\n\n");
        text += "| case | figure | ours | beside it | bound | |\n|---|---|--:|---|---|---|\n";
        let mut last = "";
        for row in &self.rows {
            let case = if row.case == last { "" } else { &row.case };
            last = &row.case;
            let bound = row.bound.as_ref().map(ToString::to_string);
            let (ours, beside) = (row.unit.show(row.ours), row.others());
            let (figure, bound) = (&row.figure, bound.unwrap_or_default());
            let verdict = row.verdict();
            let cells = [case, figure, &ours, &beside, &bound, verdict];
            text += &["| ", &cells.join(" | "), " |\n"].concat();
        }
        for notice in &self.notices {
            text += &["\nNot measured: ", notice, "\n"].concat();
        }
        text
    }

    /// Writes everything as JSON.
    pub(crate) fn write(&self, path: &Path) {
        let text = serde_json::to_string_pretty(self).expect("JSON");
        std::fs::write(path, text + "\n").expect("a folder for the results");
    }
}

impl Row {
    fn others(&self) -> String {
        let show = |(name, value): &(String, f64)| format!("{name} {}", self.unit.show(*value));
        self.beside.iter().map(show).collect::<Vec<_>>().join(", ")
    }

    fn verdict(&self) -> &'static str {
        match &self.bound {
            None => "",
            Some(bound) if bound.met => "ok",
            Some(_) => "short",
        }
    }

    fn verdict_in_words(&self) -> String {
        let bound = self.bound.as_ref();
        bound.map_or_else(String::new, |bound| {
            format!(" ({bound}: {})", self.verdict())
        })
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        if !value.is_finite() {
            return "-".into();
        }
        match self {
            Self::Plain => number(value),
            Self::PerSecond => format!("{}/s", number(value)),
            Self::Nanoseconds if value >= 1e9 => format!("{} s", number(value / 1e9)),
            Self::Nanoseconds if value >= 1e6 => format!("{} ms", number(value / 1e6)),
            Self::Nanoseconds => format!("{} µs", number(value / 1e3)),
            Self::Bytes if value.abs() >= 1e6 => format!("{} MiB", number(value / 1_048_576.0)),
            Self::Bytes => format!("{} B", number(value)),
            Self::Percent => format!("{} %", number(value * 100.0)),
        }
    }
}

/// Three significant digits, and every digit before the decimal point.
fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 99.95 || value == 0.0 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size >= 0.9995 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}
