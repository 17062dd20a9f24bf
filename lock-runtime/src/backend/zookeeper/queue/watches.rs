//! The acquisitions that look again when a node changes.

use std::collections::HashMap;

use crate::backend::zookeeper::protocol::op::Op;
use crate::backend::zookeeper::protocol::reply::Change;
use crate::types::terms::LeaseId;

/// The most that one request to renew watches contains: a server closes the connection
/// on a packet of more than 1 MiB. The client in Java has the same limit.
const MOST_BYTES: usize = 128 * 1024;

/// The bytes of a path beside its text.
const LENGTH: usize = 4;

/// The nodes that messages are expected about, each of which comes once.
#[derive(Default)]
pub(super) struct Watches {
    nodes: HashMap<String, Vec<LeaseId>>,
    children: HashMap<String, Vec<LeaseId>>,
}

impl Watches {
    /// Somebody has asked for a message about a node.
    pub(super) fn node(&mut self, path: String, id: LeaseId) {
        add(&mut self.nodes, path, id);
    }

    /// Somebody has asked for a message about the children of a node.
    pub(super) fn children(&mut self, path: String, id: LeaseId) {
        add(&mut self.children, path, id);
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
        [nodes, children].into_iter().flatten().flatten().collect()
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

fn add(to: &mut HashMap<String, Vec<LeaseId>>, path: String, id: LeaseId) {
    let ids = to.entry(path).or_default();
    if !ids.contains(&id) {
        ids.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::zookeeper::protocol::op::Access;

    #[test]
    fn watches_are_renewed_in_parts_that_a_server_takes() {
        let mut watches = Watches::default();
        let path = |number: usize| format!("/lock/{number:0>900}");
        for number in 0..1_000 {
            watches.node(path(number), LeaseId(1));
            watches.children(path(number), LeaseId(1));
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
