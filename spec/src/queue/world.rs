//! One state of everything, and what each action does to it. `#…` names the section of docs/protocol.md that has the
//! rule.

use super::client::{Stage, Task};
use super::rules::Bug;
use super::scenario::index;
use super::server::{Position, Push, Reply, Request, Server, Token, Waiter};
use super::{Fault, Scenario};

/// The connection of a client, and what is on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Link {
    /// Whether the client is disconnected.
    pub down: bool,
    /// Whether its process is stopped.
    pub stopped: bool,
    /// Whether what is on its way may take longer than a tick.
    pub slow: bool,
    /// The ticks for which something on its way has taken longer.
    pub late_by: u8,
    /// Calls that the server has not run.
    pub requests: Vec<Request>,
    /// Replies that the client has not read.
    pub replies: Vec<Reply>,
    /// Pushes that the client has not read.
    pub pushes: Vec<Push>,
    /// Calls of an earlier connection, which the server may still run.
    pub late: Vec<Request>,
}

impl Link {
    /// Whether the client has read all that was sent to it.
    pub fn is_read(&self) -> bool {
        self.replies.is_empty() && self.pushes.is_empty()
    }
}

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// The server.
    pub server: Server,
    /// The connection of each client.
    pub links: Vec<Link>,
    /// The acquisitions.
    pub tasks: Vec<Task>,
    /// How many faults may still occur.
    pub faults: u8,
    /// For each lock, the fence with which the last body began.
    pub begun: Vec<u8>,
    /// For each lock, the ticks for which a cooldown lasts, or a ticket that nobody has adopted, and whose that is.
    pub closed: Vec<(u8, u8)>,
    /// Whether a body began with a fence that is not larger than an earlier one.
    pub stale_fence: bool,
    /// Whether an acquisition was granted the lock before one that came more than the window earlier.
    pub overtaken: bool,
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An acquisition begins: #taking-a-lock.
    Start(u8),
    /// The server runs the next call of a client: #what-each-one-does.
    Run(u8),
    /// The server runs a call of a client's earlier connection, which was not closed or not yet:
    /// #opening-a-connection.
    RunLate(u8),
    /// The server finds that a client's earlier connection has ended: #opening-a-connection.
    Notice(u8),
    /// A client reads a reply: #taking-a-lock, #leases.
    Read(u8),
    /// A client reads a push: #messages, #taking-a-lock, #chains.
    ReadPush(u8),
    /// A body returns: #leases, #chains, #several-keys.
    Finish(u8),
    /// A waiter gives up: #taking-a-lock.
    GiveUp(u8),
    /// A client connects again, and asks whether a quarantine lasts: #opening-a-connection, #quarantine.
    Connect(u8),
    /// A process that was stopped goes on.
    Resume(u8),
    /// A connection that was slow is fast again.
    Recover(u8),
    /// Something goes wrong.
    Fail(Fault, u8),
    /// Time passes: #leases, #silence-and-errors.
    Tick,
}

impl World {
    /// The first state.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            server: Server::new(scenario.locks(), scenario.clients()),
            links: vec![Link::default(); scenario.clients()],
            tasks: (0u8..).take(scenario.plans.len()).map(Task::new).collect(),
            faults: scenario.faults,
            begun: vec![0; scenario.locks()],
            closed: vec![(0, 0); scenario.locks()],
            stale_fence: false,
            overtaken: false,
        }
    }

    /// Whether time may pass: nothing is on its way that takes less than a tick.
    pub fn is_quiet(&self) -> bool {
        self.links
            .iter()
            .all(|it| it.slow || it.requests.is_empty() && (it.stopped || it.is_read()))
    }

    /// Lets one thing happen, and all that clients do at once thereafter.
    pub fn take(&mut self, scenario: &Scenario, action: Action) {
        match action {
            Action::Start(task) => self.tasks[usize::from(task)].stage = Stage::Ready,
            Action::Run(client) => {
                let link = &mut self.links[usize::from(client)];
                let request = link.requests.remove(0);
                let reply = self.run(scenario, request);
                let link = &mut self.links[usize::from(client)];
                // #taking-a-lock: a push and the reply to the call that caused it come in either order.
                if link.slow || link.stopped || !link.pushes.is_empty() {
                    link.replies.push(reply);
                } else {
                    self.read(scenario, usize::from(client), reply);
                }
            }
            Action::RunLate(client) => {
                let request = self.links[usize::from(client)].late.remove(0);
                self.run(scenario, request);
            }
            Action::Notice(client) => {
                let link = &mut self.links[usize::from(client)];
                link.late.clear();
                self.server.listens[usize::from(client)] = !link.down;
            }
            Action::Read(client) => {
                let reply = self.links[usize::from(client)].replies.remove(0);
                self.read(scenario, usize::from(client), reply);
            }
            Action::ReadPush(client) => {
                let push = self.links[usize::from(client)].pushes.remove(0);
                self.read_push(scenario, usize::from(client), &push);
            }
            Action::Finish(task) => self.finish(scenario, task),
            Action::GiveUp(task) => self.give_up(scenario, task),
            Action::Connect(client) => {
                self.links[usize::from(client)].down = false;
                self.server.listens[usize::from(client)] = true;
            }
            Action::Resume(client) => self.links[usize::from(client)].stopped = false,
            Action::Recover(client) => self.links[usize::from(client)].slow = false,
            Action::Fail(fault, client) => self.fail(scenario, fault, usize::from(client)),
            Action::Tick => self.tick(scenario),
        }
        self.settle(scenario);
    }

    /// The server runs a script, and sends what it publishes.
    fn run(&mut self, scenario: &Scenario, request: Request) -> Reply {
        let mut pushes = Vec::new();
        let lock = scenario.lock(request.token().task);
        let (owner, queue) = (
            self.server.locks[lock].owner,
            self.server.locks[lock].queue.clone(),
        );
        let reply = self.server.run(scenario, request, &mut pushes);
        let now = self.server.locks[lock].owner;
        self.note_closed(scenario, lock, request, reply, owner != now);
        let holder = now
            .filter(|it| Some(it.token) != owner.map(|it| it.token))
            .map(|it| it.token);
        if let (Some(holder), false) = (holder, matches!(request, Request::Adopt(..))) {
            let followers = pushes
                .iter()
                .filter(|it| it.token == holder)
                .flat_map(|it| &it.followers);
            let joined = match request {
                Request::Acquire(token, Some(position)) => Some(Waiter { position, token }),
                _ => None,
            };
            let before = queue.into_iter().chain(joined).collect::<Vec<_>>();
            self.overtaken |= self.overtakes(
                scenario,
                lock,
                &before,
                holder,
                followers.map(|(it, _)| *it),
            );
        }
        for push in pushes {
            let link = &mut self.links[scenario.client(push.token.task)];
            if !link.down {
                link.pushes.push(push);
            }
        }
        reply
    }

    /// How long nobody else may have the lock from now on.
    fn note_closed(
        &mut self,
        scenario: &Scenario,
        lock: usize,
        request: Request,
        reply: Reply,
        changed: bool,
    ) {
        let task = request.token().task;
        match (request, reply) {
            (Request::CoolDown(_), _) if changed => {
                self.closed[lock] = (scenario.rules.cooldown, task);
            }
            (Request::Issue(_), _) if changed => self.closed[lock] = (scenario.rules.ticket, task),
            (Request::Adopt(..), Reply::Granted(..)) => self.closed[lock] = (0, 0),
            _ => {}
        }
    }

    /// #chains: whether somebody still waits that came before the new holder, or more than the window before one of
    /// its followers. A position counts once its acquisition has heard of it; whom the server may skip does not count.
    fn overtakes(
        &self,
        scenario: &Scenario,
        key: usize,
        before: &[Waiter],
        holder: Token,
        mut followers: impl Iterator<Item = Token>,
    ) -> bool {
        let lock = &self.server.locks[key];
        let position = |token: Token| {
            let task = &self.tasks[usize::from(token.task)];
            task.position.filter(|_| task.token == token)
        };
        let listens = |token: Token| {
            let client = scenario.client(token.task);
            self.server.listens[client] && lock.seen[client].is_some()
        };
        let waiting = lock.queue.iter().filter(|it| listens(it.token));
        let Some(first) = waiting.filter_map(|it| position(it.token)).min() else {
            return false;
        };
        // Who had no position has come now.
        let now = Position {
            tick: lock.clock.tick,
            rank: u8::MAX,
        };
        let in_queue = |token| {
            before
                .iter()
                .filter(move |it| it.token == token)
                .map(|it| it.position)
        };
        let came = |token| {
            position(token)
                .into_iter()
                .chain(in_queue(token))
                .min()
                .unwrap_or(now)
        };
        first < came(holder) || followers.any(|it| first.tick < came(it).tick)
    }

    /// A client reads a reply: it is for the acquisition that has the token now.
    fn read(&mut self, scenario: &Scenario, client: usize, reply: Reply) {
        let token = reply.token();
        let mut tasks = (0u8..)
            .zip(&self.tasks)
            .filter(|(number, _)| scenario.client(*number) == client);
        let task = tasks
            .find(|(_, it)| it.token == token && it.is_known())
            .map(|(number, _)| number);
        if let Some(number) = task {
            let ended = self.change(scenario, number, |it| {
                it.heard(&scenario.rules, number, reply)
            });
            if ended {
                self.end_chain(token);
            }
        }
    }

    /// A client reads a push.
    fn read_push(&mut self, scenario: &Scenario, client: usize, push: &Push) {
        let mut tasks = (0u8..)
            .zip(&self.tasks)
            .filter(|(number, _)| scenario.client(*number) == client);
        let first = tasks
            .find(|(_, it)| it.token == push.token && it.is_known())
            .map(|(number, _)| number);
        let Some(first) = first else {
            // #taking-a-lock: the client does not know it, and sends `release`.
            self.links[client]
                .requests
                .push(Request::Release(push.token));
            return self.follow(scenario, push, false);
        };
        // #chains: the lease counts from the latest call of all that were taken out of the queue.
        let tokens = std::iter::once(push.token).chain(push.followers.iter().map(|(it, _)| *it));
        let waiting =
            tokens.filter_map(|token| self.tasks.iter().find(|it| it.token == token)?.age());
        let age = waiting.min().unwrap_or(scenario.rules.ttl);
        let took = self.change(scenario, first, |it| it.pushed(&scenario.rules, push, age));
        self.follow(scenario, push, took);
    }

    /// #chains: the followers of a push join the chain, or acquire again.
    fn follow(&mut self, scenario: &Scenario, push: &Push, took: bool) {
        for (token, fence) in &push.followers {
            let task = &mut self.tasks[usize::from(token.task)];
            // Those that have a fresh token by then are left out.
            if task.token != *token || task.age().is_none() {
                continue;
            }
            if took {
                let same = scenario.rules.breaks(Bug::FollowersWithoutFences);
                task.stage = Stage::Following {
                    chain: push.token,
                    fence: if same { push.fence } else { *fence },
                };
            } else {
                task.start_over(token.task);
            }
        }
    }

    /// #chains: followers that have not entered acquire again.
    fn end_chain(&mut self, token: Token) {
        for (number, task) in (0u8..).zip(&mut self.tasks) {
            if matches!(task.stage, Stage::Following { chain, .. } if chain == token) {
                task.start_over(number);
            }
        }
    }

    /// The follower that is next, with its fence.
    fn next_follower(&self, token: Token) -> Option<(u8, u8)> {
        let followers = (0u8..)
            .zip(&self.tasks)
            .filter_map(|(number, task)| match task.stage {
                Stage::Following { chain, fence } if chain == token => Some((fence, number)),
                _ => None,
            });
        followers.min().map(|(fence, number)| (number, fence))
    }

    /// Changes an acquisition, and notes when its body begins.
    fn change<T>(
        &mut self,
        scenario: &Scenario,
        number: u8,
        change: impl FnOnce(&mut Task) -> T,
    ) -> T {
        let task = &mut self.tasks[usize::from(number)];
        let held = matches!(task.stage, Stage::Held { .. });
        let result = change(task);
        if let (false, Stage::Held { fence, .. }) = (held, task.stage) {
            let begun = &mut self.begun[scenario.lock(number)];
            self.stale_fence |= fence <= *begun;
            *begun = fence;
        }
        result
    }

    /// A body returns, or its deadline has passed.
    fn finish(&mut self, scenario: &Scenario, number: u8) {
        if let Stage::Held { left, renewing, .. } = self.tasks[usize::from(number)].stage
            && !self.hand_over(scenario, number, left, renewing)
        {
            self.tasks[usize::from(number)].stage = Stage::Leaving {
                held: true,
                sent: false,
            };
        }
    }

    /// #chains: the next follower takes over the token and the lease. Whether there is one.
    fn hand_over(
        &mut self,
        scenario: &Scenario,
        number: u8,
        left: u8,
        renewing: super::client::Renewal,
    ) -> bool {
        let Task { token, cut, .. } = self.tasks[usize::from(number)];
        let Some((next, fence)) = self.next_follower(token) else {
            return false;
        };
        self.tasks[usize::from(number)].stage = Stage::Done;
        self.tasks[usize::from(next)].token = token;
        self.tasks[usize::from(next)].cut = cut;
        let claim = scenario.rules.ttl.min(scenario.rules.claim);
        self.change(scenario, next, |it| {
            it.enter(&scenario.rules, left, claim, fence, renewing);
        });
        if let Stage::Held { brief, .. } = &mut self.tasks[usize::from(next)].stage {
            *brief = true;
        }
        true
    }

    fn give_up(&mut self, scenario: &Scenario, number: u8) {
        let stage = self.tasks[usize::from(number)].stage;
        match stage {
            Stage::Ready | Stage::Following { .. } => {
                self.tasks[usize::from(number)].stage = Stage::Done;
            }
            Stage::Confirming { renewing, .. } if self.hand_over(scenario, number, 0, renewing) => {
            }
            Stage::Waiting { fence: Some(_), .. } if self.hand_over(scenario, number, 0, None) => {}
            _ => {
                self.tasks[usize::from(number)].stage = Stage::Leaving {
                    held: false,
                    sent: false,
                };
            }
        }
    }

    fn fail(&mut self, scenario: &Scenario, fault: Fault, client: usize) {
        self.faults -= 1;
        match fault {
            Fault::Disconnect => self.disconnect(scenario, client),
            Fault::Stop => self.links[client].stopped = true,
            Fault::Crash => {
                self.disconnect(scenario, client);
                for (number, task) in (0u8..).zip(&mut self.tasks) {
                    if scenario.client(number) == client {
                        task.stage = Stage::Done;
                    }
                }
            }
            Fault::Delay => self.links[client].slow = true,
            Fault::Restart | Fault::Forget => {
                for client in 0..self.links.len() {
                    self.disconnect(scenario, client);
                    self.links[client].late.clear();
                }
                self.server.restart(scenario, fault == Fault::Forget);
                if fault == Fault::Forget {
                    self.closed.fill((0, 0));
                }
            }
        }
    }

    /// #silence-and-errors: a connection breaks. No reply comes any more, and what was sent may still arrive.
    fn disconnect(&mut self, scenario: &Scenario, client: usize) {
        let link = &mut self.links[client];
        link.down = true;
        link.slow = false;
        link.late_by = 0;
        link.replies.clear();
        link.pushes.clear();
        link.late.append(&mut link.requests);
        for number in 0u8..u8::try_from(self.tasks.len()).unwrap_or(u8::MAX) {
            if scenario.client(number) == client {
                self.tasks[usize::from(number)].disconnected(&scenario.rules, number);
            }
        }
    }

    fn tick(&mut self, scenario: &Scenario) {
        self.drop_silent_links(scenario);
        self.server.pass(&scenario.rules, 1);
        for closed in &mut self.closed {
            *closed = if closed.0 > 1 {
                (closed.0 - 1, closed.1)
            } else {
                (0, 0)
            };
        }
        for task in &mut self.tasks {
            task.tick(&scenario.rules);
        }
    }

    /// #silence-and-errors: a client drops a connection on which a call has been unanswered for too long.
    fn drop_silent_links(&mut self, scenario: &Scenario) {
        for client in 0..self.links.len() {
            let link = &mut self.links[client];
            if !link.slow {
                continue;
            }
            if link.late_by < scenario.rules.call_timeout || link.stopped {
                link.late_by = (link.late_by + 1).min(scenario.rules.call_timeout);
            } else {
                self.disconnect(scenario, client);
            }
        }
    }

    /// Clients do at once what needs no event: deadlines that have passed, the next key of several, the next calls.
    fn settle(&mut self, scenario: &Scenario) {
        for number in 0..index(self.tasks.len()) {
            let link = &self.links[scenario.client(number)];
            if !link.stopped {
                self.end_at_deadline(scenario, number);
                self.follow_the_key_before(scenario, number);
                self.adopt_again(scenario, number);
            }
        }
        for number in 0..index(self.tasks.len()) {
            let link = &self.links[scenario.client(number)];
            if !link.stopped && !link.down {
                self.send(scenario, number);
            }
        }
        for link in &mut self.links {
            link.slow &= !(link.requests.is_empty() && link.is_read());
            link.late_by = if link.slow { link.late_by } else { 0 };
        }
    }

    /// #leases: no poll of the body starts at or after the deadline.
    fn end_at_deadline(&mut self, scenario: &Scenario, number: u8) {
        let has_passed = matches!(
            self.tasks[usize::from(number)].stage,
            Stage::Held { left: 0, .. }
        );
        if has_passed && !scenario.rules.breaks(Bug::PolledWithoutALook) {
            self.finish(scenario, number);
        }
    }

    /// #several-keys: the next is acquired once the one before is held, and is given up with it.
    fn follow_the_key_before(&mut self, scenario: &Scenario, number: u8) {
        let Some(before) = scenario.plans[usize::from(number)].after else {
            return;
        };
        let held = matches!(self.tasks[usize::from(before)].stage, Stage::Held { .. });
        let over = matches!(
            self.tasks[usize::from(before)].stage,
            Stage::Leaving { .. } | Stage::Done
        );
        let task = &mut self.tasks[usize::from(number)];
        match task.stage {
            Stage::New if held => task.stage = Stage::Ready,
            Stage::New if over => task.stage = Stage::Done,
            Stage::Held { .. } if over => self.finish(scenario, number),
            _ if over && task.wants() => self.give_up(scenario, number),
            _ => {}
        }
    }

    /// #what-each-one-does: `adopt` can be repeated under the same token, and is never followed by `ask`.
    fn adopt_again(&mut self, scenario: &Scenario, number: u8) {
        let task = &mut self.tasks[usize::from(number)];
        if scenario.plans[usize::from(number)].adopts.is_some()
            && matches!(task.stage, Stage::Waiting { .. })
        {
            task.stage = Stage::Ready;
        }
    }

    /// #opening-a-connection: all calls of a client go through one connection, in order.
    fn send(&mut self, scenario: &Scenario, number: u8) {
        let quarantine = scenario.rules.quarantine
            && self.server.young > 0
            && !scenario.rules.breaks(Bug::QuarantineSkipped);
        let task = &self.tasks[usize::from(number)];
        let follows = self.next_follower(task.token).is_some();
        if let Some(request) = task.next_call(scenario, number, follows, quarantine) {
            self.links[scenario.client(number)].requests.push(request);
            self.tasks[usize::from(number)].sent(request);
        }
    }
}
