//! The watches of claims, and the requests to the server about them.

use super::order::{Order, Watch};
use crate::backend::etcd::protocol::keys::Span;
use crate::base::numbers::Numbered;
use crate::types::terms::LeaseId;

#[derive(Debug, Default)]
pub(super) struct Watches {
    /// Which claim each is for.
    claims: Numbered<u64, LeaseId>,
    last: u64,
    orders: Vec<Order>,
}

impl Watches {
    /// Begins a watch for a claim; its number.
    pub(super) fn begin(&mut self, id: LeaseId, span: Span, from: i64, writes: bool) -> u64 {
        self.last += 1;
        self.claims.insert(self.last, id);
        self.orders.push(Order::Watch(Watch {
            id: self.last,
            span,
            from,
            writes,
        }));
        self.last
    }

    pub(super) fn end(&mut self, watch: u64) {
        if self.claims.remove(&watch).is_some() {
            self.orders.push(Order::Unwatch(watch));
        }
    }

    pub(super) fn claim(&self, watch: u64) -> Option<LeaseId> {
        self.claims.get(&watch).copied()
    }

    /// The next requests to the server.
    pub(super) fn orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    /// Watches nothing: there is no server that could be asked.
    pub(super) fn clear(&mut self) {
        self.claims.clear();
        self.orders.clear();
    }
}
