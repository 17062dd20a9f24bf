//! The picture of all stores: for each a row of bars, ours beside the others, kept between runs that measure one store
//! or another.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use crate::report::Report;

/// Which figure is shown.
const FIGURE: &str = "64 tasks: cycles";
/// The rows, by the name of their case.
const ROWS: [(&str, &str); 8] = [
    ("free keys", "Redis"),
    ("five servers, a majority decides", "Redlock, five servers"),
    ("etcd, three members", "etcd, three members"),
    ("ZooKeeper, three servers", "ZooKeeper, three servers"),
    ("PostgreSQL, no fsync", "PostgreSQL"),
    ("PostgreSQL, fsync", "PostgreSQL, with fsync"),
    ("MySQL, no fsync", "MySQL"),
    ("MySQL, fsync", "MySQL, with fsync"),
];
const WIDTH: i32 = 920;
const TITLE: i32 = 44;
/// Of a row: above and below its bars, and of each bar.
const AROUND: i32 = 14;
const BAR: i32 = 18;
/// Where the bars begin, and how long the longest is: its number stands behind it.
const LEFT: i32 = 450;
const LONGEST: f64 = 390.0;
const OURS: RGBColor = RGBColor(213, 94, 0);
const OTHERS: RGBColor = RGBColor(150, 150, 150);

/// Cycles a second of one store, by name, the most first.
type Bars = Vec<(String, f64)>;

/// Adds what this run has measured to what others have, and draws all.
pub(crate) fn draw(report: &Report, results: &Path) {
    let kept = results.join("bars.json");
    let text = std::fs::read_to_string(&kept).unwrap_or_default();
    let mut all: BTreeMap<String, Bars> = serde_json::from_str(&text).unwrap_or_default();
    for (case, _) in ROWS {
        if let Some(mut values) = report.values(case, FIGURE) {
            // Settings of ours that exist to be compared with.
            values.retain(|(name, _)| !name.starts_with("ours,"));
            all.insert(case.into(), values);
        }
    }
    let text = serde_json::to_string_pretty(&all).expect("JSON");
    std::fs::write(kept, text + "\n").expect("a folder for the results");
    let rows: Vec<_> = ROWS
        .iter()
        .filter_map(|(case, title)| Some((*title, all.get(*case)?)))
        .collect();
    let path = results.join("stores.svg");
    picture(&rows, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn picture(rows: &[(&str, &Bars)], path: &Path) -> Result<(), Box<dyn Error>> {
    let height = |bars: &[_]| AROUND + BAR * i32::try_from(bars.len()).unwrap_or(0);
    let whole = TITLE + rows.iter().map(|(_, bars)| height(bars)).sum::<i32>() + AROUND;
    let size = (WIDTH.unsigned_abs(), whole.unsigned_abs());
    let area = SVGBackend::new(path, size).into_drawing_area();
    area.fill(&WHITE)?;
    let title = "Cycles of acquire and release a second, 64 tasks, free keys; each store has a scale of its own";
    area.draw(&Text::new(title, (12, 14), ("sans-serif", 17)))?;
    let mut top = TITLE;
    for (title, bars) in rows {
        area.draw(&Text::new(*title, (12, top), ("sans-serif", 16)))?;
        let most = bars
            .iter()
            .fold(0.0, |most: f64, (_, value)| most.max(*value));
        for ((name, value), y) in bars
            .iter()
            .zip((top..).step_by(BAR.unsigned_abs() as usize))
        {
            let right = LEFT + pixels(value / most * LONGEST);
            let color = if name == "ours" { OURS } else { OTHERS };
            area.draw(&Rectangle::new(
                [(LEFT, y), (right, y + BAR - 3)],
                color.filled(),
            ))?;
            area.draw(&Text::new(name.clone(), (196, y), ("sans-serif", 14)))?;
            let number = Text::new(format!("{value:.0}"), (right + 6, y), ("sans-serif", 14));
            area.draw(&number)?;
        }
        top += height(bars);
    }
    area.present()?;
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "a few hundred pixels")]
fn pixels(length: f64) -> i32 {
    length.round() as i32
}
