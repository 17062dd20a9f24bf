//! The floors of a crate or folder, from the lowest to the highest.

use std::str::FromStr;

/// Floors as they are written: `base < backend | held < lib.rs`. Folders on one floor, divided by
/// `|`, do not import each other.
#[derive(Clone, Debug)]
pub struct Order(Vec<Vec<String>>);

/// Where an import leads, seen from where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// To a lower floor, or to the same folder.
    Below,
    /// To another folder on the same floor.
    Beside,
    /// To a higher floor.
    Above,
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = |name: &str| match name.trim() {
            "" => Err(format!("a floor without a name in `{text}`")),
            name => Ok(name.to_owned()),
        };
        let floor = |floor: &str| floor.split('|').map(name).collect();
        text.split('<')
            .map(floor)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl Order {
    pub(super) fn knows(&self, room: &str) -> bool {
        self.level(room).is_some()
    }

    /// `None` where one of them is on no floor.
    pub(super) fn relation(&self, from: &str, to: &str) -> Option<Relation> {
        let (from_level, to_level) = (self.level(from)?, self.level(to)?);
        Some(if to_level > from_level {
            Relation::Above
        } else if to_level == from_level && from != to {
            Relation::Beside
        } else {
            Relation::Below
        })
    }

    fn level(&self, room: &str) -> Option<usize> {
        let is_here = |floor: &Vec<String>| floor.iter().any(|name| name == room);
        self.0.iter().position(is_here)
    }
}
