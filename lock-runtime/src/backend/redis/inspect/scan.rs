//! Searches the server for locks, page by page.

use std::collections::BTreeSet;
use std::future::Future;

use redis::Value;

use super::{Server, mismatch};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::protocol::inspection::Inspect;
use crate::backend::redis::protocol::reply::text;
use crate::types::error::Cause;
use crate::types::key::LockKey;
use crate::types::query::Pattern;

/// The role of a key for its lock.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Owner,
    Queue,
}

/// One page of a search.
pub(super) struct Page {
    /// The cursor of the next page; zero after the last one.
    pub(super) cursor: u64,
    /// The locks that were found by their owner or their queue.
    keys: Vec<(LockKey, Part)>,
}

impl<C: Copy> Server<C> {
    pub(in crate::backend::redis) async fn list(
        self,
        pattern: Pattern,
    ) -> Result<Vec<LockKey>, Cause> {
        let mut found = BTreeSet::new();
        let mut cursor = 0;
        loop {
            let page = self.page(&pattern, false, cursor).await?;
            let page = Page::read(&page).ok_or_else(mismatch)?;
            let owners = page.keys.into_iter().filter(|(_, it)| *it == Part::Owner);
            let keys = owners.map(|(key, _)| key);
            found.extend(keys.filter(|key| pattern.matches(key)));
            if page.cursor == 0 {
                return Ok(found.into_iter().collect());
            }
            cursor = page.cursor;
        }
    }

    /// A page of the owners of locks, and of the queues where `queues` says so.
    pub(super) fn page(
        &self,
        pattern: &Pattern,
        queues: bool,
        cursor: u64,
    ) -> impl Future<Output = Result<Value, Trouble>> + use<'_, C> {
        self.ask(Inspect::Scan {
            glob: glob(pattern).into(),
            queues,
            cursor,
        })
    }
}

impl Page {
    pub(super) fn read(value: &Value) -> Option<Self> {
        let (cursor, names) = read_page(value)?;
        let mut keys = Vec::new();
        for name in names {
            let name = text(name)?;
            // Neither a prefix nor a name has a brace in it.
            let rest = name.split_once(":{").and_then(|(_, it)| it.split_once('}'));
            match rest {
                Some((key, "")) => keys.push((LockKey::unchecked(key), Part::Owner)),
                Some((key, ":q")) => keys.push((LockKey::unchecked(key), Part::Queue)),
                _ => {}
            }
        }
        Some(Self { cursor, keys })
    }

    pub(super) fn into_keys(self) -> impl Iterator<Item = LockKey> {
        self.keys.into_iter().map(|(key, _)| key)
    }
}

/// The cursor of the next page, and the names in this one.
pub(super) fn read_page(value: &Value) -> Option<(u64, &[Value])> {
    let Value::Array(items) = value else {
        return None;
    };
    let [cursor, Value::Array(names)] = &items[..] else {
        return None;
    };
    Some((text(cursor)?.parse().ok()?, names))
}

/// A pattern for Redis that matches everything that this one does, and more: in Redis
/// brackets have a meaning too, and a question mark matches a byte.
fn glob(pattern: &Pattern) -> String {
    let mut glob = String::new();
    let mut rest = pattern.as_str().chars().peekable();
    while let Some(c) = rest.next() {
        if matches!(c, '[' | ']' | '^' | '\\') {
            glob.push('\\');
        }
        glob.push(c);
        if c == '?' && rest.peek() != Some(&'?') {
            glob.push('*');
        }
    }
    glob
}
