//! Medians, quantiles and fairness.

/// The median; of an even number of values the mean of the middle two.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// A sorted sample, for quantiles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorted(Vec<u64>);

impl FromIterator<u64> for Sorted {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut values = Vec::from_iter(values);
        values.sort_unstable();
        Self(values)
    }
}

impl Sorted {
    /// The value that this part of all values does not exceed; not a number where there are none.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let rank = (part * self.0.len() as f64).ceil() as usize;
        let value = self.0.get(rank.saturating_sub(1));
        value.map_or(f64::NAN, |value| *value as f64)
    }

    /// At most this many points of the distribution: value, and the part of all values up to it.
    pub(crate) fn points(&self, most: usize) -> Vec<(f64, f64)> {
        let count = self.0.len();
        let step = count.div_ceil(most).max(1);
        let point = |rank: usize| (self.0[rank] as f64, (rank + 1) as f64 / count as f64);
        (0..count).step_by(step).map(point).collect()
    }

    /// The size of the sample.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// Jain's fairness: 1 where all have the same, 1/n where one has all.
///
/// See Jain, Chiu, Hawe: *A Quantitative Measure of Fairness and Discrimination* (1984).
pub(crate) fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// The exponent by which `y` grows with `x` between two points: 0 where it stays, 1 where it grows in proportion.
pub(crate) fn growth((x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> f64 {
    (y2 / y1).ln() / (x2 / x1).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn the_middle() {
        assert!(close(median(&[3.0, 1.0, 2.0]), 2.0));
        assert!(close(median(&[4.0, 1.0, 2.0, 3.0]), 2.5));
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn quantiles_are_values() {
        let sorted: Sorted = (1..=100).rev().collect();
        assert!(close(sorted.quantile(0.5), 50.0));
        assert!(close(sorted.quantile(0.99), 99.0));
        assert!(close(sorted.quantile(1.0), 100.0));
        assert!(Sorted::default().quantile(0.5).is_nan());
    }

    #[test]
    fn fairness_and_growth() {
        assert!(close(jain(&[2.0, 2.0, 2.0]), 1.0));
        assert!(close(jain(&[4.0, 0.0, 0.0, 0.0]), 0.25));
        assert!(close(growth((10.0, 3.0), (1000.0, 300.0)), 1.0));
    }
}
