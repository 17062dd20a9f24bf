//! Looks for keys under the prefix that never expire, page by page.

use redis::Value;

use super::next::Next;
use crate::backend::redis::findings::Lasting;
use crate::backend::redis::protocol::inspection::Inspect;
use crate::backend::redis::protocol::reply::text;

/// How many pages are read, of 500 keys of the database each.
const MOST_PAGES: usize = 200;

/// A search that is not complete yet.
#[derive(Debug, Default)]
pub(super) struct Search {
    found: Lasting,
    pages: usize,
    cursor: u64,
    /// How many calls are not answered yet.
    awaited: usize,
}

impl Search {
    pub(super) fn first_step() -> Inspect {
        Inspect::Keys { cursor: 0 }
    }

    /// Takes in one page, and asks about its keys.
    pub(super) fn page(&mut self, value: &Value) -> Option<Next> {
        let Value::Array(items) = value else {
            return None;
        };
        let [cursor, Value::Array(names)] = &items[..] else {
            return None;
        };
        self.cursor = text(cursor)?.parse().ok()?;
        self.pages += 1;
        let names = names.iter().filter_map(text).filter(|it| should_expire(it));
        let asks: Vec<_> = names.map(|key| Inspect::Left(key.into())).collect();
        self.awaited = asks.len();
        Some(self.next(asks))
    }

    /// Takes in how much time a key has left; whoever may not ask does not know.
    pub(super) fn left(&mut self, key: Box<str>, left: Option<&Value>) -> Next {
        if let Some(Value::Int(-1)) = left {
            self.found.count += 1;
            self.found.first.get_or_insert(key);
        }
        self.awaited -= 1;
        self.next(Vec::new())
    }

    fn next(&mut self, asks: Vec<Inspect>) -> Next {
        let cursor = self.cursor;
        match (self.awaited, cursor) {
            (1.., _) => Next::Calls(asks),
            (0, 1..) if self.pages < MOST_PAGES => Next::Calls(vec![Inspect::Keys { cursor }]),
            (0, _) => {
                self.found.is_whole = cursor == 0;
                Next::Answer
            }
        }
    }

    pub(super) fn found(self) -> Lasting {
        self.found
    }
}

/// The owner of a lock is looked at with its lock, and counters stay.
fn should_expire(key: &str) -> bool {
    let is_counter = [":fence", ":run"].iter().any(|it| key.ends_with(it));
    let is_owner = key.contains(":{") && key.ends_with('}');
    !is_counter && !is_owner
}
