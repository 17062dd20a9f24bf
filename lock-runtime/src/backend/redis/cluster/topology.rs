//! Reads which nodes serve which slots from the answer to `CLUSTER SLOTS`.

use redis::Value;

use crate::backend::redis::protocol::reply::{number, slot, text};
use crate::backend::redis::protocol::slot::SLOTS;
use crate::types::authority::Host;

/// Neighbouring slots and the master that serves them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u16,
    pub(crate) last: u16,
    /// Its name is empty if it is that of the node which was asked.
    pub(crate) master: Host,
}

/// `None` if it is no such answer.
pub(crate) fn read(value: &Value) -> Option<Vec<Range>> {
    match value {
        // Each has one slot at the least.
        Value::Array(ranges) if ranges.len() <= usize::from(SLOTS) => {
            ranges.iter().map(range).collect()
        }
        _ => None,
    }
}

fn range(value: &Value) -> Option<Range> {
    let Value::Array(parts) = value else {
        return None;
    };
    // Replicas follow the master.
    let [first, last, Value::Array(master), ..] = &**parts else {
        return None;
    };
    let [host, port, ..] = &**master else {
        return None;
    };
    let name = match host {
        Value::Nil => String::new(),
        host => text(host)?.into_owned(),
    };
    Some(Range {
        first: slot(first)?,
        last: slot(last)?,
        master: Host {
            name: if name == "?" { String::new() } else { name },
            port: u16::try_from(number(port)?).ok()?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: Value, port: i64) -> Value {
        let id = Value::BulkString(b"07c37df".into());
        Value::Array(vec![host, Value::Int(port), id, Value::Array(vec![])])
    }

    fn answer(last: i64, host: Value) -> Value {
        let replica = node(Value::BulkString(b"10.0.0.9".into()), 1);
        let range = vec![Value::Int(0), Value::Int(last), node(host, 6381), replica];
        Value::Array(vec![Value::Array(range)])
    }

    #[test]
    fn a_range_names_its_master() {
        for (host, name) in [
            (Value::BulkString(b"10.0.0.1".into()), "10.0.0.1"),
            (Value::BulkString(b"".into()), ""),
            (Value::BulkString(b"?".into()), ""),
            (Value::Nil, ""),
        ] {
            let ranges = read(&answer(5460, host)).expect("ranges");
            let [range] = &*ranges else {
                panic!("{ranges:?}");
            };
            assert_eq!((range.first, range.last), (0, 5460));
            assert_eq!((&*range.master.name, range.master.port), (name, 6381));
        }
        assert_eq!(read(&Value::Array(vec![])), Some(vec![]));
    }

    #[test]
    fn what_is_no_topology_is_not_read_as_one() {
        assert_eq!(read(&Value::Int(1)), None);
        assert_eq!(read(&answer(16384, Value::Nil)), None);
        assert_eq!(read(&answer(-1, Value::Nil)), None);
    }
}
