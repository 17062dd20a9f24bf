//! Line charts as SVG.

use std::error::Error;
use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// A line and its name.
pub(crate) type Series = (String, Vec<(f64, f64)>);

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
        let points = || self.series.iter().flat_map(|(_, points)| points);
        let shown = points().filter(|(x, y)| *x > 0.0 && *y > 0.0).count();
        if shown == 0 {
            return;
        }
        let x = range(points().map(|(x, _)| *x));
        let y = range(points().map(|(_, y)| *y));
        let drawn = if self.parts {
            self.draw(path, x.log_scale(), 0.0..1.0)
        } else {
            self.draw(path, x.log_scale(), y.log_scale())
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
        let area = SVGBackend::new(path, (860, 520)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(70)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .light_line_style(WHITE)
            .draw()?;
        for (number, (name, points)) in self.series.iter().enumerate() {
            let color = Palette99::pick(number).to_rgba();
            let points = points.iter().copied().filter(|(x, y)| *x > 0.0 && *y > 0.0);
            chart
                .draw_series(LineSeries::new(points, color.stroke_width(2)))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK)
            .draw()?;
        area.present()?;
        Ok(())
    }
}

/// From the smallest to the largest value above zero.
fn range(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let positive = values.filter(|value| *value > 0.0 && value.is_finite());
    let (low, high) = positive.fold((f64::MAX, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    low * 0.9..high * 1.1
}
