//! The routes from slots to nodes, changed by redirections, and the time to ask the
//! cluster again. A state machine without I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::topology::Range;
use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::protocol::redirect::Redirect;
use crate::backend::redis::protocol::slot::SLOTS;
use crate::base::clock::Moment;
use crate::types::authority::Host;

/// The shortest time between two questions about the topology.
const ASK_AT_MOST_EVERY: Duration = Duration::from_millis(100);
/// How long a node may take to answer before another one is asked.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(250);
/// How long a node is kept that serves no slot but was named by a redirection: its first
/// slot may be on its way there.
const KEEP_GUEST: Duration = Duration::from_secs(60);
/// The pause between two returns to the seeds doubles from this one on.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often a call is sent on: nodes that disagree may each name another one.
const MOST_HOPS: u8 = 5;

/// Identifies a node as long as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

#[derive(Debug)]
pub(crate) struct Routes {
    seeds: Box<[Host]>,
    nodes: BTreeMap<NodeId, Host>,
    /// The same the other way round.
    ids: BTreeMap<Host, NodeId>,
    slots: Box<[Option<NodeId>]>,
    /// The slots that redirections have given to another node since the last answer.
    redirected: BTreeSet<u16>,
    /// Until when nodes are kept that serve no slot.
    guests: BTreeMap<NodeId, Moment>,
    next_id: u32,
    /// Whether a node has named the topology.
    known: bool,
    /// When it was asked for last, and whether that is to be answered still.
    asked: Option<Moment>,
    asking: bool,
    /// When the question was asked whose answer is the latest one.
    answered: Option<Moment>,
    /// When to ask.
    due: Option<Moment>,
    /// Whether nodes have come or gone since the last look.
    other_nodes: bool,
    /// When the seeds may be returned to, and the pause after that.
    return_at: Moment,
    pause: Duration,
}

/// The slots that a new answer, or a redirection before it, has given to another node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Changed(Vec<u16>);

impl Changed {
    pub(crate) fn contains(&self, slot: u16) -> bool {
        self.0.binary_search(&slot).is_ok()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Routes {
    /// Only these nodes are known, and not their slots.
    pub(crate) fn new(seeds: &[Host], now: Moment) -> Self {
        let mut this = Self {
            seeds: seeds.into(),
            nodes: BTreeMap::new(),
            ids: BTreeMap::new(),
            slots: vec![None; usize::from(SLOTS)].into(),
            redirected: BTreeSet::new(),
            guests: BTreeMap::new(),
            next_id: 0,
            known: false,
            asked: None,
            asking: false,
            answered: None,
            due: Some(now),
            other_nodes: false,
            return_at: now,
            pause: FIRST_PAUSE,
        };
        this.add_seeds();
        this
    }

    fn add_seeds(&mut self) {
        for seed in self.seeds.clone() {
            self.node(seed);
        }
    }

    /// None of the nodes can be reached, or one of them knows of no others: others may have
    /// replaced them, and the seeds know those. Now and then: seeds that are no masters are left
    /// at their first answer, over and over if no master can be reached.
    pub(crate) fn return_to_seeds(&mut self, now: Moment) {
        if self.return_at().is_none_or(|at| now < at) {
            return;
        }
        self.return_at = now.after(self.pause);
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        self.add_seeds();
    }

    /// When the seeds may be returned to again, unless all are known.
    pub(crate) fn return_at(&self) -> Option<Moment> {
        let is_known = |it| self.ids.contains_key(it);
        (!self.seeds.iter().all(is_known)).then_some(self.return_at)
    }

    /// All nodes can be reached.
    pub(crate) fn reached(&mut self) {
        self.pause = FIRST_PAUSE;
    }

    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = (NodeId, &Host)> {
        self.nodes.iter().map(|(id, host)| (*id, host))
    }

    /// Where a node is.
    pub(crate) fn host_of(&self, id: NodeId) -> Option<&Host> {
        self.nodes.get(&id)
    }

    /// Whether nodes have come or gone since the last time.
    pub(crate) fn has_other_nodes(&mut self) -> bool {
        std::mem::take(&mut self.other_nodes)
    }

    pub(crate) fn contains(&self, id: NodeId) -> bool {
        self.nodes.contains_key(&id)
    }

    /// The nodes that serve a slot.
    pub(crate) fn masters(&self) -> Vec<NodeId> {
        let serving: BTreeSet<_> = self.slots.iter().flatten().collect();
        serving.into_iter().copied().collect()
    }

    /// The slots that a node serves, as far as is known.
    pub(crate) fn slots_of(&self, id: NodeId) -> BTreeSet<u16> {
        (0..SLOTS)
            .filter(|slot| self.of(*slot) == Some(id))
            .collect()
    }

    /// One of them.
    pub(crate) fn some_slot_of(&self, id: NodeId) -> Option<u16> {
        let all = self.slots_of(id);
        let before = fastrand::usize(..all.len().max(1));
        all.into_iter().nth(before)
    }

    /// The node that serves a slot, as far as is known.
    pub(crate) fn of(&self, slot: u16) -> Option<NodeId> {
        self.slots.get(usize::from(slot)).copied().flatten()
    }

    /// The next node for a call that `from` did not carry out, unless it has been sent on too
    /// often.
    pub(crate) fn follow(
        &mut self,
        now: Moment,
        from: NodeId,
        redirect: &Redirect,
        sent: &mut Sent,
    ) -> Option<NodeId> {
        let to = self.node(self.host(from, &redirect.host, redirect.port));
        self.guests.insert(to, now.after(KEEP_GUEST));
        if !redirect.asking {
            if let Some(slot) = self.slots.get_mut(usize::from(redirect.slot)) {
                *slot = Some(to);
                self.redirected.insert(redirect.slot);
            }
            self.doubt(now);
        } else if !self.slots.contains(&Some(to)) {
            // It may serve slots already that no answer has named.
            self.doubt(now);
        }
        if sent.route.hops >= MOST_HOPS {
            return None;
        }
        sent.route.hops += 1;
        sent.route.asking = redirect.asking;
        Some(to)
    }

    /// Something contradicts the known routes: ask soon.
    pub(crate) fn doubt(&mut self, now: Moment) {
        let earliest = self.asked.map_or(now, |at| at.after(ASK_AT_MOST_EVERY));
        self.doubt_at(earliest.max(now));
    }

    /// Ask at this time or before.
    pub(crate) fn doubt_at(&mut self, at: Moment) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Whether to ask now; if so, [`learned`](Self::learned) or
    /// [`not_learned`](Self::not_learned) has to follow.
    pub(crate) fn begins_to_ask(&mut self, now: Moment) -> bool {
        let begins = self.next_wakeup().is_some_and(|at| at <= now);
        if begins {
            self.asking = true;
            self.asked = Some(now);
            self.due = None;
        }
        begins
    }

    /// Whether no later question has been answered than that of this time. An answer that comes
    /// after [`ANSWER_TIMEOUT`] counts all the same: the next one may be as slow.
    pub(crate) fn awaits(&self, asked: Moment) -> bool {
        self.answered.is_none_or(|it| it < asked)
    }

    /// The question of that time is answered.
    pub(crate) fn answered(&mut self, asked: Moment) {
        self.answered = Some(asked);
    }

    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        if self.asking {
            self.asked.map(|at| at.after(ANSWER_TIMEOUT))
        } else {
            self.due
        }
    }

    /// There was no answer.
    pub(crate) fn not_learned(&mut self, now: Moment) {
        self.asking = false;
        self.doubt(now);
    }

    /// Takes in the topology that `from` has named.
    pub(crate) fn learned(&mut self, now: Moment, from: NodeId, ranges: Vec<Range>) -> Changed {
        if ranges.is_empty() {
            // It has left the cluster, or has lost its data.
            self.return_to_seeds(now);
            self.not_learned(now);
            return Changed(Vec::new());
        }
        self.asking = false;
        self.known = true;
        let mut slots = vec![None; usize::from(SLOTS)].into_boxed_slice();
        for Range {
            first,
            last,
            master,
        } in ranges
        {
            let master = self.node(self.host(from, &master.name, master.port));
            if let Some(range) = slots.get_mut(usize::from(first)..=usize::from(last)) {
                range.fill(Some(master));
            }
        }
        let redirected = std::mem::take(&mut self.redirected);
        let moved = |slot: &u16| self.of(*slot) != slots[usize::from(*slot)];
        let changed = (0..SLOTS).filter(|slot| redirected.contains(slot) || moved(slot));
        let changed = Changed(changed.collect());
        self.slots = slots;
        self.guests.retain(|_, until| *until > now);
        let mut kept: BTreeSet<_> = self.masters().into_iter().collect();
        kept.extend(self.guests.keys());
        let before = self.nodes.len();
        self.nodes.retain(|id, _| kept.contains(id));
        self.ids.retain(|_, id| kept.contains(id));
        self.other_nodes |= self.nodes.len() < before;
        changed
    }

    /// A node without a name for itself is reached by the name that clients use already.
    fn host(&self, from: NodeId, name: &str, port: u16) -> Host {
        let name = match self.nodes.get(&from) {
            Some(host) if name.is_empty() => &host.name,
            _ => name,
        };
        Host {
            name: name.to_owned(),
            port,
        }
    }

    fn node(&mut self, host: Host) -> NodeId {
        if let Some(id) = self.ids.get(&host) {
            return *id;
        }
        let id = NodeId(self.next_id);
        self.next_id += 1;
        self.nodes.insert(id, host.clone());
        self.ids.insert(host, id);
        self.other_nodes = true;
        id
    }
}

#[cfg(test)]
mod tests;
