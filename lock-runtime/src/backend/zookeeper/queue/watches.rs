//! The acquisitions that look again when a node changes.

use std::collections::{BTreeSet, HashMap};

use crate::backend::zookeeper::protocol::op::Op;
use crate::backend::zookeeper::protocol::reply::Change;
use crate::types::terms::LeaseId;

/// The most that one request to renew watches contains: a server closes the connection
/// on a packet of more than 1 MiB. The client in Java has the same limit.
const MOST_BYTES: usize = 128 * 1024;

/// How many may wait for a message without a look at which of them live.
const FEW: usize = 16;

/// The bytes of a path beside its text.
const LENGTH: usize = 4;

/// The nodes that messages are expected about, each of which comes once.
#[derive(Default)]
pub(super) struct Watches {
    nodes: HashMap<String, Watchers>,
    children: HashMap<String, Watchers>,
}

/// Those that wait for one message, in the order in which they were asked for.
#[derive(Default)]
struct Watchers {
    ids: BTreeSet<LeaseId>,
    /// With how many the next one looks for those that are gone.
    full: usize,
}

impl Watches {
    /// Somebody has asked for a message about a node. Others that have and do not live any more are forgotten now and
    /// then: a node may stay for long, and many may wait for it one after the other.
    pub(super) fn node(&mut self, path: String, id: LeaseId, lives: impl Fn(LeaseId) -> bool) {
        self.nodes.entry(path).or_default().add(id, lives);
    }

    /// Somebody has asked for a message about the children of a node; as above.
    pub(super) fn children(&mut self, path: String, id: LeaseId, lives: impl Fn(LeaseId) -> bool) {
        self.children.entry(path).or_default().add(id, lives);
    }

    /// The recipients of a message.
    pub(super) fn changed(&mut self, path: &str, change: Change) -> Vec<LeaseId> {
        let nodes = match change {
            Change::Deleted | Change::Written => self.nodes.remove(path),
            _ => None,
        };
        let children = match change {
            Change::Deleted | Change::Children => self.children.remove(path),
            _ => None,
        };
        let watchers = [nodes, children].into_iter().flatten();
        watchers.flat_map(|it| it.ids).collect()
    }

    /// Asks for all of them on another connection, with the events that it has missed since `seen`.
    pub(super) fn renew(&self, seen: i64) -> Vec<Op> {
        let nodes = self.nodes.keys().map(|path| (path, true));
        let all = nodes.chain(self.children.keys().map(|path| (path, false)));
        let mut parts: Vec<(Vec<String>, Vec<String>)> = Vec::new();
        let mut left = 0;
        for (path, is_node) in all {
            let length = path.len() + LENGTH;
            if left < length {
                parts.push((Vec::new(), Vec::new()));
                left = MOST_BYTES;
            }
            left = left.saturating_sub(length);
            if let Some((data, children)) = parts.last_mut() {
                let paths = if is_node { data } else { children };
                paths.push(path.clone());
            }
        }
        let ops = parts.into_iter().map(|(data, children)| Op::Watch {
            seen,
            data,
            children,
        });
        ops.collect()
    }

    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.children.clear();
    }
}

impl Watchers {
    fn add(&mut self, id: LeaseId, lives: impl Fn(LeaseId) -> bool) {
        if self.ids.len() >= self.full {
            self.ids.retain(|id| lives(*id));
            self.full = FEW.max(2 * self.ids.len());
        }
        self.ids.insert(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::zookeeper::protocol::op::Access;

    #[test]
    fn those_that_have_given_up_are_forgotten_however_long_the_node_stays() {
        let mut watches = Watches::default();
        for number in 0..100_000 {
            let is_among_the_last = |id: LeaseId| id.0 + 3 > number;
            watches.node("/lock/k/x".into(), LeaseId(number), is_among_the_last);
        }
        let told = watches.changed("/lock/k/x", Change::Deleted);
        assert!(told.len() <= 2 * FEW, "{} are kept", told.len());
        assert!(told.ends_with(&[99_997, 99_998, 99_999].map(LeaseId)));
    }

    #[test]
    fn watches_are_renewed_in_parts_that_a_server_takes() {
        let mut watches = Watches::default();
        let path = |number: usize| format!("/lock/{number:0>900}");
        for number in 0..1_000 {
            watches.node(path(number), LeaseId(1), |_| true);
            watches.children(path(number), LeaseId(1), |_| true);
        }
        let (mut nodes, mut of_children) = (Vec::new(), Vec::new());
        for op in watches.renew(7) {
            let bytes = op.encode(1, Access::Everybody).1.len();
            assert!(bytes < 1 << 20, "{bytes} bytes");
            let Op::Watch { data, children, .. } = op else {
                panic!("{op:?}");
            };
            nodes.extend(data);
            of_children.extend(children);
        }
        for mut paths in [nodes, of_children] {
            paths.sort_unstable();
            assert!(paths.into_iter().eq((0..1_000).map(path)), "each once");
        }
        assert!(Watches::default().renew(7).is_empty());
    }
}
