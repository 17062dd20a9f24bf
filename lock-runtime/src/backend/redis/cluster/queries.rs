//! Which nodes a query goes to.

use super::Cluster;
use super::routes::NodeId;
use crate::backend::Request;
use crate::base::clock::Moment;
use crate::types::query::{Query, QueryId};

impl Cluster {
    pub(super) fn submit_query(&mut self, now: Moment, id: QueryId, query: Query) {
        let lane = match &query {
            Query::Status(key) | Query::ForceRelease(key) => self.lane_of(key),
            Query::List(_) | Query::Overview(_) | Query::Diagnose => {
                let masters = self.routes.masters();
                for node in masters.iter().filter(|_| self.is_open) {
                    let part = self.gathering.part(id);
                    self.lanes[0].pinned.insert(part, *node);
                    let request = Request::Query(part, query.clone());
                    self.lanes[0].queue.submit(now, request);
                }
                if !masters.is_empty() {
                    return;
                }
                0
            }
            Query::Health => {
                let (lane, node) = self.connection_to_probe(id);
                self.lanes[lane].pinned.insert(id, node);
                lane
            }
        };
        self.lanes[lane]
            .queue
            .submit(now, Request::Query(id, query));
    }

    /// One that is broken, or else each in turn.
    fn connection_to_probe(&self, id: QueryId) -> (usize, NodeId) {
        let lanes = self.lanes.iter().enumerate();
        let all = lanes.flat_map(|(number, lane)| lane.nodes.iter().map(move |it| (number, it)));
        let all: Vec<_> = all.collect();
        let broken = all.iter().position(|(_, (_, node))| !node.link.is_up());
        let chosen = broken.unwrap_or_else(|| usize::try_from(id.0).unwrap_or(0) % all.len());
        let (lane, (node, _)) = all[chosen];
        (lane, *node)
    }
}
