//! Rounds in which systems take turns, and what they compare.

use std::collections::BTreeMap;

use crate::report::{Row, Unit};
use crate::stats::median;
use crate::systems::System;

const ROUNDS: usize = 3;

/// What each system reached in each round.
pub(crate) struct Rounds<T>(Vec<BTreeMap<System, T>>);

impl<T> Rounds<T> {
    /// Measures all systems in turns, every other round backwards.
    pub(crate) async fn of(systems: &[System], measure: impl AsyncFn(System) -> T) -> Self {
        let mut rounds = Vec::new();
        for number in 0..ROUNDS {
            let mut turn = systems.to_vec();
            if number % 2 == 1 {
                turn.reverse();
            }
            let mut round = BTreeMap::new();
            for system in turn {
                round.insert(system, measure(system).await);
            }
            rounds.push(round);
        }
        Self(rounds)
    }

    fn median(&self, value: impl Fn(&BTreeMap<System, T>) -> f64) -> f64 {
        median(&self.0.iter().map(value).collect::<Vec<_>>())
    }

    /// The median of a figure of ours.
    pub(crate) fn ours(&self, value: impl Fn(&T) -> f64) -> f64 {
        self.median(|round| value(&round[&System::Ours]))
    }

    /// The median of the ratios of ours to another system within one round.
    pub(crate) fn ratio(&self, under: System, value: impl Fn(&T) -> f64) -> f64 {
        self.median(|round| value(&round[&System::Ours]) / value(&round[&under]))
    }

    /// The medians of a figure.
    pub(crate) fn row(
        &self,
        case: &str,
        figure: &str,
        unit: Unit,
        value: impl Fn(&T) -> f64,
    ) -> Row {
        let row = Row::new(case, figure, unit, self.ours(&value));
        let others = self.0[0].keys().filter(|it| **it != System::Ours);
        others.fold(row, |row, system| {
            row.beside(system, self.median(|round| value(&round[system])))
        })
    }
}
