//! A sharded connection: a connection to each node of the cluster, and the one queue of all that goes
//! over them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Context;

use super::node_mailbox::{Event, NodeMailbox};
use super::routes::{Changed, NodeId, Routes};
use super::topology;
use crate::backend::queue::Rules;
use crate::backend::queue::protocol::step::Step as _;
use crate::backend::queue::protocol::trouble::{ServerSaid, Trouble};
use crate::backend::queue::quarantine::Part;
use crate::backend::redis::protocol::call::Queue;
use crate::backend::redis::protocol::call::{Call, Sent};
use crate::backend::redis::protocol::inspection::{AskedBy, Inspect};
use crate::backend::redis::protocol::names::KeyNames;
use crate::backend::redis::protocol::reply::Reply;
use crate::backend::redis::protocol::slot;
use crate::backend::redis::transport::link::Link;
use crate::base::clock::Moment;
use crate::types::key::LockKey;

#[derive(Debug)]
pub(super) struct ShardedConnection {
    pub(super) queue: Queue,
    pub(super) names: KeyNames,
    pub(super) nodes: BTreeMap<NodeId, Node>,
    /// The answer about the topology.
    topology: Option<Result<Changed, Trouble>>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) link: Link<NodeMailbox>,
    /// Why it is not connected, while it is not.
    pub(super) trouble: Trouble,
}

impl Node {
    pub(super) fn new(link: Link<NodeMailbox>) -> Self {
        let trouble = Trouble::not_now("not connected yet");
        Self { link, trouble }
    }

    /// Until when it grants nothing, if it is in quarantine.
    pub(super) fn quarantined(&self, now: Moment) -> Option<Moment> {
        self.link.queue.quarantined(now)
    }
}

impl ShardedConnection {
    pub(super) fn new(names: KeyNames, replicated: bool) -> Self {
        Self {
            queue: Queue::new(Rules {
                // Each node's replicas are asked on its link, which holds replies back until then.
                pushes_are_hints: replicated,
                ..Rules::default()
            }),
            names,
            nodes: BTreeMap::new(),
            topology: None,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.nodes.values().all(|node| node.link.is_up())
    }

    /// The nodes that can be reached.
    pub(super) fn up(&self) -> impl Iterator<Item = NodeId> {
        let up = self.nodes.iter().filter(|(_, node)| node.link.is_up());
        up.map(|(id, _)| *id)
    }

    /// Marks of the keys whose locks are handed over in chains.
    pub(super) fn chained_keys(&self) -> u64 {
        self.queue.chained_keys()
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.nodes.values().all(|node| node.link.is_quiet())
    }

    /// When something is due that no event announces.
    pub(super) fn next_wakeup(&self) -> Option<Moment> {
        let links = self
            .nodes
            .values()
            .filter_map(|node| node.link.next_wakeup());
        links.chain(self.queue.next_wakeup()).min()
    }

    /// Writes what was sent and reads what has come in.
    pub(super) fn poll_io(&mut self, cx: &mut Context<'_>) {
        for node in self.nodes.values_mut() {
            node.link.poll_io(cx);
        }
    }

    /// Takes in the answers that have arrived.
    pub(super) fn settle(&mut self, now: Moment, routes: &mut Routes) {
        for node in self.nodes.values_mut() {
            while let Some(answered) = node.link.next_answer() {
                node.link.settle(now, answered);
            }
            node.link.settle_replicas(now);
        }
        self.take_in(now, routes);
    }

    /// A step of a query. One that is about no lock goes to this node.
    pub(super) fn inspect(
        &mut self,
        now: Moment,
        node: Option<NodeId>,
        step: Inspect,
        by: AskedBy,
    ) {
        match node {
            Some(node) if step.key().is_none() && !self.queue.is_down() => {
                self.post(now, node, Sent::step(step, by, now));
            }
            _ => self.queue.inspect(now, step, by),
        }
    }

    /// Asks a node for the topology; `false` if it is not connected.
    pub(super) fn ask_topology(&mut self, now: Moment, whom: NodeId) -> bool {
        let node = self.nodes.get_mut(&whom);
        let Some(node) = node.filter(|node| node.link.is_up()) else {
            return false;
        };
        node.link
            .queue
            .post(Sent::new(Call::Step(Inspect::Topology), now));
        true
    }

    /// Connects if it has to, notifies the queue, and sends its calls.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>, now: Moment, routes: &mut Routes) -> bool {
        let mut changed = false;
        for node in self.nodes.values_mut() {
            let was_up = node.link.is_up();
            // The link tells its waiters of a failed attempt.
            let _ = node.link.poll_connection(cx, now);
            changed |= node.link.is_up() != was_up;
        }
        self.take_in(now, routes);
        self.queue.tick(now);
        self.send(now, routes);
        for (id, node) in &mut self.nodes {
            if node.link.queue.needs_mark()
                && let Some(slot) = routes.some_slot_of(*id)
            {
                node.link.queue.mark_with(&slot::tag_in(slot));
            }
            changed |= node.link.flush(now) | node.link.ask_replicas(now);
        }
        changed
    }

    /// Handles what the links have reported.
    pub(super) fn take_in(&mut self, now: Moment, routes: &mut Routes) {
        let ids: Vec<_> = self.nodes.keys().copied().collect();
        for id in ids {
            while let Some(event) = self
                .nodes
                .get_mut(&id)
                .and_then(|it| it.link.queue.next_event())
            {
                self.handle(now, routes, id, event);
            }
        }
    }

    fn handle(&mut self, now: Moment, routes: &mut Routes, from: NodeId, event: Event) {
        match event {
            Event::Replied(sent, result) => self.replied(now, routes, from, sent, result),
            Event::Heard(message) => self.queue.heard(now, message),
            Event::Up if routes.is_known() => {
                self.close(now, routes);
                self.queue.resume(now, |key| is_at(routes, key, from));
            }
            Event::Up => {}
            Event::Down(trouble) => {
                routes.doubt(now);
                if routes.is_known() {
                    self.queue
                        .interrupt(&trouble, |key| is_at(routes, key, from));
                } else {
                    self.queue.disconnected(trouble.clone());
                }
                if let Some(node) = self.nodes.get_mut(&from) {
                    node.trouble = trouble;
                }
            }
        }
    }

    fn replied(
        &mut self,
        now: Moment,
        routes: &mut Routes,
        from: NodeId,
        mut sent: Sent,
        result: Result<Reply, Trouble>,
    ) {
        if let Call::Step(Inspect::Topology) = sent.call {
            if routes.awaits(sent.at) {
                if result.is_ok() {
                    routes.answered(sent.at);
                }
                self.topology = Some(learn(now, routes, from, result));
            }
            return;
        }
        if let Err(trouble) = &result
            && let Some(redirect) = trouble.redirect()
            && let Some(to) = routes.follow(now, from, redirect, &mut sent)
        {
            self.close(now, routes);
            if self.queue.redirected(now, &mut sent.call) {
                self.post(now, to, sent);
            }
            return;
        }
        if result.as_ref().is_err_and(Trouble::is_about_cluster) {
            routes.doubt(now);
        }
        self.queue.replied(now, sent, result);
    }

    pub(super) fn take_topology(&mut self) -> Option<Result<Changed, Trouble>> {
        self.topology.take()
    }

    /// Sends the calls of the queue to the nodes that serve their locks.
    fn send(&mut self, now: Moment, routes: &mut Routes) {
        let behind = self.queue.waits_behind();
        let node = behind.and_then(|key| self.nodes.get(&routes.of(slot::of_lock(key))?));
        // The answer that is due brings us here again.
        if node.is_some_and(|node| node.link.awaits_answer()) {
            return;
        }
        // A call that cannot be sent is answered at once, and more may follow from that.
        loop {
            let calls = self.queue.calls();
            if calls.is_empty() {
                return;
            }
            for sent in calls {
                if let Some(to) = self.destination(routes, &sent.call) {
                    self.post(now, to, sent);
                } else {
                    routes.doubt(now);
                    let trouble = Trouble::not_now("no node of the cluster serves this lock");
                    self.queue.replied(now, sent, Err(trouble));
                }
            }
        }
    }

    fn destination(&self, routes: &Routes, call: &Call) -> Option<NodeId> {
        if let Some(key) = call.key() {
            return routes.of(slot::of_lock(key));
        }
        match call {
            Call::Disown(grant) => grant.key().and_then(|key| routes.of(slot::of_lock(&key))),
            // No node in particular was to be asked.
            Call::Step(Inspect::Holders(_) | Inspect::Wanted(_)) => self.up().next(),
            Call::Step(..) => None,
            _ => self.up().next(),
        }
    }

    fn post(&mut self, now: Moment, to: NodeId, sent: Sent) {
        let trouble = match self.nodes.get_mut(&to) {
            Some(node) if node.quarantined(now).is_some() && sent.call.may_grant() => {
                Trouble::not_now("the node of the cluster may have forgotten locks")
            }
            Some(node) if node.link.is_up() => return node.link.queue.post(sent),
            Some(node) => node.trouble.clone(),
            None => Trouble::not_now("a node of the cluster has just become known"),
        };
        self.queue.replied(now, sent, Err(trouble));
    }

    /// Other nodes serve these slots now.
    pub(super) fn moved(&mut self, now: Moment, routes: &Routes, changed: &Changed) {
        self.close(now, routes);
        let concerns = |key: &LockKey| changed.contains(slot::of_lock(key));
        self.queue.replaced(concerns);
        self.queue.resume(now, concerns);
    }

    /// Takes note of the slots of which nothing is granted: those of the nodes that may
    /// have forgotten locks, also once they have moved away from there.
    pub(super) fn close(&mut self, now: Moment, routes: &Routes) {
        for (id, node) in &self.nodes {
            if let Some(ends) = node.quarantined(now) {
                let (slots, slot_of) = (routes.slots_of(*id), slot::of_lock);
                self.queue.close(now, Part { slots, slot_of }, ends);
            }
        }
    }

    /// Leaves the nodes that are not in the cluster any more.
    pub(super) fn leave(&mut self, now: Moment, routes: &mut Routes) {
        let left: Vec<_> = self
            .nodes
            .keys()
            .copied()
            .filter(|id| !routes.contains(*id))
            .collect();
        for id in left {
            if let Some(node) = self.nodes.get_mut(&id) {
                let said = ServerSaid("the node has left the cluster".into());
                node.link.broken(now, Arc::new(said));
            }
            self.take_in(now, routes);
            self.nodes.remove(&id);
        }
    }
}

fn is_at(routes: &Routes, key: &LockKey, node: NodeId) -> bool {
    routes.of(slot::of_lock(key)) == Some(node)
}

/// Takes in the answer to a question about the topology.
fn learn(
    now: Moment,
    routes: &mut Routes,
    from: NodeId,
    result: Result<Reply, Trouble>,
) -> Result<Changed, Trouble> {
    let ranges = match &result {
        Ok(Reply::Step(value)) => topology::read(value),
        _ => None,
    };
    if let Some(ranges) = ranges {
        return Ok(routes.learned(now, from, ranges));
    }
    routes.not_learned(now);
    let unclear = || Trouble::not_now("the server's answer does not say which nodes there are");
    Err(result.err().unwrap_or_else(unclear))
}
