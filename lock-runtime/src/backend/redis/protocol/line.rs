//! What a reply tells of a lock that it does not grant: who has it, and who waits.

use std::borrow::Cow;
use std::time::Duration;

use redis::Value;

use crate::backend::name;
use crate::types::crowd::Crowd;
use crate::types::holder::Holder;

/// The head of a queue.
#[derive(Debug)]
pub(crate) struct Line {
    /// The name of the holder whose lease ends first.
    pub(crate) owner: Box<str>,
    /// `None` if it has no ttl.
    pub(crate) left: Option<Duration>,
    pub(crate) crowd: Crowd,
}

impl Line {
    pub(super) fn read(left: &Value, owner: Cow<'_, str>, crowd: &[Value]) -> Option<Self> {
        let left = match left {
            Value::Int(-1) => None,
            // -2: there is no owner yet, since the head of the queue is dead and the
            // script has skipped as many as it may.
            Value::Int(left) => Some(millis(*left)),
            _ => return None,
        };
        Some(Self {
            owner: owner.into(),
            left,
            crowd: self::crowd(crowd),
        })
    }

    /// Whether the lock is held by a client that knows nothing of the queue.
    pub(crate) fn is_foreign(&self) -> bool {
        !self.owner.is_empty() && name::holder(&self.owner, None).process.is_none()
    }

    pub(crate) fn holder(&self) -> Holder {
        Holder {
            crowd: self.crowd,
            ..name::holder(&self.owner, self.left)
        }
    }
}

/// Nobody, where the answer does not say; how long they have waited, only where it does.
fn crowd(items: &[Value]) -> Crowd {
    let number = |at: usize| match items.get(at) {
        Some(Value::Int(number)) => *number,
        _ => 0,
    };
    Crowd {
        waiting: u32::try_from(number(0)).unwrap_or(0),
        longest: millis(number(1)),
    }
}

/// A time below zero is one that the server's clock has gone back by.
fn millis(count: i64) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or(0))
}
