//! Finds files that import each other, also by way of others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::imports::Import;

/// The shortest circle through each file, each circle once. Modules for tests may be in circles:
/// nothing imports them when the crate is used.
pub(super) fn of(imports: &[Import<'_>]) -> Vec<String> {
    let mut arrows: BTreeMap<&str, Vec<&Import<'_>>> = BTreeMap::new();
    for import in imports.iter().filter(|import| !import.test) {
        arrows.entry(&import.from.path).or_default().push(import);
    }
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for file in arrows.keys() {
        let circle = shortest(file, &arrows).unwrap_or_default();
        let members: BTreeSet<&str> = circle.iter().map(|arrow| &*arrow.from.path).collect();
        if !circle.is_empty() && seen.insert(members) {
            let arrows = circle
                .iter()
                .map(|arrow| format!("\n  {} imports {}", arrow.location(), arrow.to.path));
            circles.push(format!("circle:{}", arrows.collect::<String>()));
        }
    }
    circles
}

/// The shortest way from the file back to itself.
fn shortest<'a>(
    start: &str,
    arrows: &BTreeMap<&str, Vec<&'a Import<'a>>>,
) -> Option<Vec<&'a Import<'a>>> {
    let mut reached = BTreeSet::new();
    let mut ways = VecDeque::from([Vec::new()]);
    while let Some(way) = ways.pop_front() {
        let end = way
            .last()
            .map_or(start, |arrow: &&Import<'_>| &*arrow.to.path);
        for arrow in arrows.get(end).into_iter().flatten() {
            let mut way = way.clone();
            way.push(*arrow);
            if arrow.to.path == start {
                return Some(way);
            }
            if reached.insert(&*arrow.to.path) {
                ways.push_back(way);
            }
        }
    }
    None
}
