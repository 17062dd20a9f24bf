//! Many who want one lock on five servers: how many get it in a few seconds, and how
//! equally it is shared.

use std::time::Duration;

use super::{Store, World};

const WAITERS: usize = 50;
const SEEDS: u64 = 1;
const TIME: Duration = Duration::from_secs(2);

/// Jain's index: one where all have got the same.
fn fairness(counts: &[u32]) -> f64 {
    let sum: f64 = counts.iter().copied().map(f64::from).sum();
    let squares: f64 = counts.iter().map(|it| f64::from(*it).powi(2)).sum();
    let all = u32::try_from(counts.len()).map_or(0.0, f64::from);
    sum * sum / (all * squares)
}

impl World {
    /// One in which all want the same lock all the time.
    fn hot(seed: u64) -> Self {
        let mut world = Self::of(seed, Store::Majority, WAITERS);
        world.calm = true;
        for client in &mut world.clients {
            client.eager = Some(0);
        }
        world
    }

    /// How often each gets it.
    fn share(&mut self) -> Vec<u32> {
        while let Some(event) = self.next_event() {
            if self.now.since(self.start) > TIME {
                break;
            }
            self.happen(event);
            self.check().expect("one at a time");
        }
        self.clients.iter().filter_map(|it| it.eager).collect()
    }
}

#[test]
fn fifty_waiters_share_a_lock_of_a_majority() {
    let (mut grants, mut shares) = (0, Vec::new());
    for seed in 0..SEEDS {
        let counts = World::hot(seed).share();
        grants += counts.iter().sum::<u32>();
        shares.push(fairness(&counts));
    }
    let least = shares.iter().copied().fold(1.0, f64::min);
    println!("{grants} acquisitions in {SEEDS} times {TIME:?}, Jain at least {least:.3}");
    assert!(u64::from(grants) > SEEDS * 500, "{grants} acquisitions");
    assert!(least > 0.98, "Jain {least:.3}");
}
