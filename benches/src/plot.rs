//! Line charts as SVG.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

const SIZE: (u32, u32) = (920, 520);
/// The legend is beside the chart, where it hides nothing.
const LEGEND: u32 = 150;
/// Up to this many points are marked one by one: nothing was measured between them.
const FEW: usize = 20;
/// A palette for all kinds of colour vision, by Okabe and Ito; the first colour is ours.
const COLORS: [RGBColor; 8] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 0, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
    RGBColor(0, 114, 178),
    RGBColor(204, 121, 167),
    RGBColor(150, 150, 150),
    RGBColor(230, 180, 0),
];

/// A line.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// The same number is the same colour in all charts.
    pub(crate) color: usize,
    pub(crate) points: Vec<(f64, f64)>,
}

/// One chart. Both axes are logarithmic unless `parts` says that `y` is a part of all, from 0 to 1.
#[derive(Debug)]
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    pub(crate) parts: bool,
    pub(crate) series: Vec<Series>,
}

impl Chart<'_> {
    /// Writes the chart; where there is nothing to show, nothing.
    pub(crate) fn write(&self, path: &Path) {
        let points = || self.series.iter().flat_map(Series::shown);
        if points().next().is_none() {
            return;
        }
        let (low, high) = ends(points().map(|(x, _)| x));
        let x = (low * 0.9..high * 1.1).log_scale();
        let (low, high) = ends(points().map(|(_, y)| y));
        let drawn = if self.parts {
            self.draw(path, x, 0.0..1.0)
        } else {
            self.draw(path, x, (power_below(low)..high * 1.2).log_scale())
        };
        drawn.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    fn draw<X, Y>(&self, path: &Path, x: X, y: Y) -> Result<(), Box<dyn Error>>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let area = SVGBackend::new(path, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (left, right) = area.split_horizontally(SIZE.0 - LEGEND);
        let mut chart = ChartBuilder::on(&left)
            .caption(self.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(80)
            .build_cartesian_2d(x, y)?;
        let scale = if self.parts {
            "logarithmic"
        } else {
            "both axes logarithmic"
        };
        chart
            .configure_mesh()
            .x_desc(format!("{} ({scale})", self.x))
            .y_desc(self.y)
            .x_label_formatter(&|value| value.to_string())
            .y_label_formatter(&|value| format!("{}", (value * 1e6).round() / 1e6))
            .label_style(("sans-serif", 13))
            .light_line_style(WHITE)
            .draw()?;
        for series in &self.series {
            let style = series.color().stroke_width(2);
            chart.draw_series(LineSeries::new(series.shown(), style))?;
            if series.points.len() <= FEW {
                let mark = |point| Circle::new(point, 4, series.color().filled());
                chart.draw_series(series.shown().map(mark))?;
            }
        }
        self.legend(&right)?;
        area.present()?;
        Ok(())
    }

    fn legend(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Box<dyn Error>> {
        for (series, y) in self.series.iter().zip((56..).step_by(22)) {
            let line = [(0, y), (20, y)];
            area.draw(&PathElement::new(line, series.color().stroke_width(3)))?;
            let name = Text::new(series.name.clone(), (26, y - 7), ("sans-serif", 13));
            area.draw(&name)?;
        }
        Ok(())
    }
}

impl Series {
    fn color(&self) -> RGBColor {
        COLORS[self.color % COLORS.len()]
    }

    /// Whether a logarithmic axis can show the value.
    fn shown(&self) -> impl Iterator<Item = (f64, f64)> {
        let points = self.points.iter().copied();
        points.filter(|(x, y)| x.min(*y) > 0.0 && x.max(*y).is_finite())
    }
}

/// The smallest value and the largest.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, 0.0), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// The next of 0.1, 1, 10, …: axes are labelled from there on.
fn power_below(value: f64) -> f64 {
    10_f64.powf(value.log10().floor())
}
