//! The store on Redis Cluster: lanes, each with a connection to every node, over which a
//! lock's calls go to the node that serves it.

mod address;
mod gather;
mod lane;
mod mail;
mod routes;
mod slot;
mod topology;

use std::collections::BTreeMap;
use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc;

use self::gather::Gathering;
use self::lane::{Lane, Node};
use self::mail::Mail;
use self::routes::{NodeId, Routes};
use super::protocol::call::{KeyNames, Layout};
use super::protocol::reply::Trouble;
use super::transport::connect::{Dialer, Push};
use super::transport::link::Link;
use super::transport::stream::Route;
use super::transport::way::Way;
use crate::backend::setup::Setup;
use crate::backend::{Backend, Outcome, Request};
use crate::base::clock::{Clock, Moment, Sleep};
use crate::base::numbers::Numbered;
use crate::vocabulary::authority::Host;
use crate::vocabulary::error::LockError;
use crate::vocabulary::key::LockKey;
use crate::vocabulary::query::{Query, QueryId};
use crate::vocabulary::terms::LeaseId;

pub(super) use self::address::ClusterAddress;

/// How often the topology is asked for while a node cannot be reached: another one may
/// have taken its place.
const WATCH: Duration = Duration::from_millis(250);

/// The number of a link, which its pushes and events carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ConnectionId(usize);

/// The backend for `redis+cluster:`.
#[derive(Debug)]
pub(super) struct Cluster {
    address: ClusterAddress,
    setup: Setup,
    lanes: Vec<Lane>,
    routes: Routes,
    /// Why the topology is not known, or a node cannot be connected to.
    trouble: Option<Trouble>,
    /// The lane that each acquisition went to.
    bound: Numbered<LeaseId, usize>,
    gathering: Gathering,
    /// The lane and the node of each connection.
    connections: BTreeMap<ConnectionId, (usize, NodeId)>,
    next_connection: usize,
    /// Counts questions about the topology: each goes to another node.
    asked: usize,
    /// Whether the queues know that the topology is known.
    is_open: bool,
    sender: mpsc::UnboundedSender<Push>,
    pushes: mpsc::UnboundedReceiver<Push>,
    clock: Clock,
    sleep: Sleep,
}

impl Cluster {
    /// Connects to every node, or says why it cannot; a lazy manager leaves that to the
    /// polls that follow.
    pub(super) async fn connect(
        setup: &Setup,
        address: &ClusterAddress,
    ) -> Result<Self, LockError> {
        let server = Arc::from(address.to_string());
        let (sender, pushes) = mpsc::unbounded_channel();
        let mut lanes = Vec::with_capacity(setup.pool_size);
        for _ in 0..setup.pool_size {
            let names = KeyNames::new(&setup.prefix, Layout::Declared)
                .map_err(|error| LockError::unavailable_at(&server, error))?;
            lanes.push(Lane::new(names, setup.replicas > 0));
        }
        let now = setup.clock.now();
        let mut this = Self {
            address: address.clone(),
            setup: setup.clone(),
            lanes,
            routes: Routes::new(&address.seeds, now),
            trouble: None,
            bound: Numbered::default(),
            gathering: Gathering::default(),
            connections: BTreeMap::new(),
            next_connection: 0,
            asked: 0,
            is_open: false,
            sender,
            pushes,
            clock: setup.clock.clone(),
            sleep: Sleep::default(),
        };
        this.meet(now);
        if setup.lazy {
            return Ok(this);
        }
        let all_up = poll_fn(|cx| this.poll_all_up(cx));
        match tokio::time::timeout(setup.connect_timeout, all_up).await {
            Ok(Ok(())) => Ok(this),
            Ok(Err(trouble)) => Err(connect_failed(&trouble, &server)),
            Err(_) => {
                let none = || format!("no connection within {:?}", setup.connect_timeout).into();
                let cause: Box<dyn Error + Send + Sync> = this
                    .latest_trouble()
                    .map_or_else(none, |it| it.cause().into());
                Err(LockError::unavailable_at(&server, cause))
            }
        }
    }

    /// Fails at an error that will not go away by itself.
    fn poll_all_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Trouble>> {
        loop {
            let unread = self.take_turn(cx);
            if self.routes.is_known() && self.lanes.iter().all(Lane::is_up) {
                return Poll::Ready(Ok(()));
            }
            if let Some(trouble @ Trouble::Never(_)) = self.latest_trouble() {
                return Poll::Ready(Err(trouble));
            }
            if !unread && self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Why something is not connected; what will not go away by itself comes first.
    fn latest_trouble(&self) -> Option<Trouble> {
        let nodes = self.lanes.iter().flat_map(|lane| lane.nodes.values());
        let down = nodes.filter(|node| !node.link.is_up());
        let mut all: Vec<_> = down
            .map(|node| &node.trouble)
            .chain(&self.trouble)
            .collect();
        all.sort_by_key(|trouble| !matches!(trouble, Trouble::Never(_)));
        all.first().map(|trouble| (*trouble).clone())
    }

    fn dialer(&self, host: &Host) -> Dialer {
        let route = Route::new(&self.address.place(host.clone()), &self.setup);
        let login = self.address.login.to(0);
        let sender = self.sender.clone();
        Dialer::new(Way::Known(route), login, &self.setup, sender).in_cluster()
    }

    /// Connects to nodes that are new, and leaves those that are gone.
    fn meet(&mut self, now: Moment) {
        for lane in &mut self.lanes {
            lane.leave(now, &mut self.routes);
        }
        let nodes = &self.routes;
        self.connections
            .retain(|_, (_, node)| nodes.contains(*node));
        let known = self.routes.nodes();
        let hosts: Vec<_> = known.map(|(id, host)| (id, host.clone())).collect();
        for (id, host) in hosts {
            for number in 0..self.lanes.len() {
                if self.lanes[number].nodes.contains_key(&id) {
                    continue;
                }
                let dialer = self.dialer(&host);
                let connection = self.next_connection;
                self.next_connection += 1;
                self.connections
                    .insert(ConnectionId(connection), (number, id));
                let lane = &mut self.lanes[number];
                let names = lane.names.clone();
                let mail = Mail::new(self.setup.replicas > 0);
                let link = Link::new(connection, mail, names, dialer, now);
                lane.nodes.insert(id, Node::new(link));
            }
        }
    }

    /// Commands about one key stay in order, since they share a lane.
    fn lane_of(&self, key: &LockKey) -> usize {
        super::place_of(key, self.lanes.len())
    }

    /// Everything that can be done now; whether there may be more.
    fn take_turn(&mut self, cx: &mut Context<'_>) -> bool {
        self.receive(cx);
        let now = self.clock.now();
        self.ask_topology(now);
        let mut unread = false;
        for lane in &mut self.lanes {
            unread |= lane.drive(cx, now, &mut self.routes);
        }
        unread |= self.hear_news(now);
        if self.routes.has_other_nodes() {
            self.meet(now);
            unread = true;
        }
        if !self.lanes.iter().all(Lane::is_up) {
            self.routes.doubt_at(now.after(WATCH));
        }
        unread
    }

    /// Takes in everything that has arrived, pushes before the replies that arrived with
    /// them.
    fn receive(&mut self, cx: &mut Context<'_>) {
        for lane in &mut self.lanes {
            lane.poll_io(cx);
        }
        let now = self.clock.now();
        // They arrive while a connection is polled, and wake nobody else.
        while let Ok(push) = self.pushes.try_recv() {
            let connection = ConnectionId(push.connection);
            if let Some((lane, node)) = self.connections.get(&connection)
                && let Some(node) = self.lanes[*lane].nodes.get_mut(node)
            {
                node.link.pushed(now, push.generation, &push.event);
            }
        }
        for lane in &mut self.lanes {
            lane.settle(now, &mut self.routes);
        }
    }

    /// Asks one node after the other: one that is cut off does not know what has changed.
    fn ask_topology(&mut self, now: Moment) {
        if self.routes.next_wakeup().is_none_or(|at| at > now) {
            return;
        }
        let up = self.reachable();
        if up.is_empty() || !self.routes.begins_to_ask(now) {
            return;
        }
        self.asked = self.asked.wrapping_add(1);
        let (lane, node) = up[self.asked % up.len()];
        self.lanes[lane].ask_topology(now, node);
    }

    /// The connections that are open.
    fn reachable(&self) -> Vec<(usize, NodeId)> {
        let lanes = self.lanes.iter().enumerate();
        let up = lanes.flat_map(|(number, lane)| lane.up().map(move |id| (number, id)));
        up.collect()
    }

    /// What became of a question about the topology; `false` if nothing has.
    fn hear_news(&mut self, now: Moment) -> bool {
        let Some(news) = self.lanes.iter_mut().find_map(Lane::take_news) else {
            return false;
        };
        for lane in &mut self.lanes {
            match &news {
                Ok(changed) if self.is_open => lane.moved(now, changed),
                Ok(_) if self.routes.is_known() => lane.queue.connected(now),
                Ok(_) => {}
                Err(trouble) if self.is_open => {}
                Err(trouble) => lane.queue.disconnected(trouble.clone()),
            }
        }
        self.is_open = self.routes.is_known();
        self.trouble = news.err();
        true
    }

    fn submit_query(&mut self, now: Moment, id: QueryId, query: Query) {
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

    fn next_outcome(&mut self) -> Option<Outcome> {
        loop {
            let (number, mut outcome) =
                self.lanes.iter_mut().enumerate().find_map(|(number, it)| {
                    it.queue.next_outcome().map(|outcome| (number, outcome))
                })?;
            if let Some(id) = outcome.ended() {
                self.bound.remove(&id);
            }
            if let Outcome::Answered { id, result } = &mut outcome {
                self.lanes[number].complete(*id, result);
            }
            if let Some(outcome) = self.gathering.take_in(outcome) {
                return Some(outcome);
            }
        }
    }

    /// Ready when something is due that no event announces.
    fn poll_sleep(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let topology = self
            .routes
            .next_wakeup()
            .filter(|_| self.lanes.iter().any(|lane| lane.up().next().is_some()));
        let lanes = self.lanes.iter().filter_map(Lane::next_wakeup);
        let wakeup = lanes.chain(topology).min();
        self.sleep.poll_until(cx, &self.clock, wakeup)
    }
}

impl Backend for Cluster {
    fn submit(&mut self, now: Moment, request: Request) {
        let lane = match &request {
            Request::Acquire(terms) => {
                let lane = self.lane_of(&terms.key);
                self.bound.insert(terms.id, lane);
                lane
            }
            Request::Abandon(id) | Request::Renew(id) | Request::Release(id) => {
                self.bound.get(id).copied().unwrap_or(0)
            }
            Request::Query(id, query) => return self.submit_query(now, *id, query.clone()),
        };
        self.lanes[lane].queue.submit(now, request);
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            if let Some(outcome) = self.next_outcome() {
                return Poll::Ready(outcome);
            }
            let unread = self.take_turn(cx);
            if let Some(outcome) = self.next_outcome() {
                return Poll::Ready(outcome);
            }
            if !unread && self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn passed_on(&self) -> u64 {
        let marks = self.lanes.iter().map(Lane::passed_on);
        marks.fold(0, |all, marks| all | marks)
    }

    fn is_quiet(&self) -> bool {
        self.lanes.iter().all(Lane::is_quiet)
    }
}

/// Why a manager cannot connect: because of a setting, or of the cluster.
fn connect_failed(trouble: &Trouble, server: &Arc<str>) -> LockError {
    if trouble.is_no_cluster() {
        let reason = "the server is not part of a cluster: name it with `redis://`";
        return LockError::invalid("url", reason);
    }
    super::connect_failed(trouble, server, 0)
}
