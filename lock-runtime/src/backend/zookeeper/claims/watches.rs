//! Who looks again when a node changes.

use std::collections::HashMap;

use crate::backend::zookeeper::protocol::op::Op;
use crate::backend::zookeeper::protocol::reply::Change;
use crate::vocabulary::terms::LeaseId;

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

    /// Those whom a message is for.
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

    /// Asks for all of them on another connection, with what it has missed since `seen`.
    pub(super) fn renew(&self, seen: i64) -> Option<Op> {
        let paths = |of: &HashMap<String, _>| of.keys().cloned().collect::<Vec<_>>();
        let (data, children) = (paths(&self.nodes), paths(&self.children));
        let any = !data.is_empty() || !children.is_empty();
        any.then_some(Op::Watch {
            seen,
            data,
            children,
        })
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
