//! One state of everything, and what each action does to it.

use super::client::{Client, Stage};
use super::store::{Event, Id, Message, Request, Store};
use super::{Bug, Fault, SESSION, Scenario};

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// The store.
    pub store: Store,
    /// The clients.
    pub clients: Vec<Client>,
    /// How many faults may still occur.
    pub faults: u8,
    /// The fence with which the last body began.
    pub begun: u8,
    /// Whether a body began with a fence that is not larger than an earlier one.
    pub stale_fence: bool,
    /// Whether a body began while an earlier entry of a session that lives was in the queue.
    pub overtaken: bool,
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An acquisition begins: "lease", "acquire".
    Start(u8),
    /// A body returns: "release".
    Finish(u8),
    /// A waiter gives up: "release", "Lost answers".
    GiveUp(u8),
    /// A server carries out the next request of a client: "Order", "Looking", "Waiting".
    Run(u8),
    /// The majority carries out a request of an earlier connection: "Lost answers".
    RunLate(u8),
    /// What is left of an earlier connection is lost.
    Notice(u8),
    /// A client reads a message: "Looking", "Not looking", "Waiting".
    Read(u8),
    /// A client connects to a server of the majority.
    Connect(u8),
    /// A client connects to the server that is cut off.
    ConnectToCutOff(u8),
    /// A process that was stopped goes on.
    Resume(u8),
    /// The server that was cut off joins the others.
    Rejoin,
    /// Something goes wrong.
    Fail(Fault, u8),
    /// Time passes.
    Tick,
}

impl World {
    /// The first state.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            store: Store::default(),
            clients: (0..scenario.clients).map(Client::new).collect(),
            faults: scenario.faults,
            begun: 0,
            stale_fence: false,
            overtaken: false,
        }
    }

    /// Whether the server of a client can answer its next request: one that is cut off answers reads alone.
    pub fn may_run(&self, scenario: &Scenario, client: &Client) -> bool {
        let Some(request) = client.link.requests.first() else {
            return false;
        };
        let answers = matches!(request, Request::Look(_, false))
            || matches!(request, Request::Beat(_))
                && scenario.breaks(Bug::HeartbeatOfACutOffServer);
        !client.link.cut_off || answers
    }

    /// Whether time may pass: nothing is on its way that takes less than a tick.
    pub fn is_quiet(&self, scenario: &Scenario) -> bool {
        self.clients.iter().all(|it| {
            let unread = !it.link.stopped && !it.link.messages.is_empty();
            !unread && !self.may_run(scenario, it)
        })
    }

    /// Lets one thing happen, and all that clients do at once thereafter.
    pub fn take(&mut self, scenario: &Scenario, action: Action) {
        match action {
            Action::Start(client) => self.client(client).stage = Stage::Opening(false),
            Action::Finish(client) | Action::GiveUp(client) => self.client(client).leave(scenario),
            Action::Run(client) => self.run(scenario, client),
            Action::RunLate(client) => {
                let request = self.client(client).link.late.remove(0);
                self.carry_out(request);
            }
            Action::Notice(client) => self.client(client).link.late.clear(),
            Action::Read(client) => {
                let message = self.client(client).link.messages.remove(0);
                self.read(scenario, client, &message);
            }
            Action::Connect(client) => self.client(client).link.down = false,
            Action::ConnectToCutOff(client) => {
                self.client(client).link.down = false;
                self.client(client).link.cut_off = true;
            }
            Action::Resume(client) => self.client(client).link.stopped = false,
            Action::Rejoin => self.rejoin(),
            Action::Fail(fault, client) => self.fail(fault, client),
            Action::Tick => self.tick(),
        }
        self.settle(scenario);
    }

    fn client(&mut self, number: u8) -> &mut Client {
        &mut self.clients[usize::from(number)]
    }

    /// The answer is read at once, unless the process is stopped: an answer that is lost is as one to a request that
    /// comes late.
    fn run(&mut self, scenario: &Scenario, number: u8) {
        let request = self.client(number).link.requests.remove(0);
        let message = match (
            &self.store.cut_off,
            request,
            self.clients[usize::from(number)].link.cut_off,
        ) {
            (Some((entries, revision)), Request::Look(id, _), true) => {
                Store::look(entries, id, *revision)
            }
            (Some(_), Request::Beat(id), true) => Message::Beaten(id, true),
            _ => self.carry_out(request),
        };
        if self.client(number).link.stopped {
            self.client(number).link.messages.push(message);
        } else {
            self.read(scenario, number, &message);
        }
    }

    /// The majority carries out a request.
    fn carry_out(&mut self, request: Request) -> Message {
        let mut events = Vec::new();
        let message = self.store.run(request, &mut events);
        self.notify(events);
        message
    }

    fn notify(&mut self, events: Vec<Event>) {
        for Event { watcher, entry, at } in events {
            self.client(watcher)
                .link
                .messages
                .push(Message::Deleted(entry, at));
        }
    }

    fn read(&mut self, scenario: &Scenario, number: u8, message: &Message) {
        let client = &mut self.clients[usize::from(number)];
        let held = matches!(client.stage, Stage::Held { .. });
        client.heard(scenario, message);
        let (id, stage) = (client.id, client.stage);
        if let (false, Stage::Held { fence }) = (held, stage) {
            self.stale_fence |= fence <= self.begun;
            self.begun = fence;
            self.overtaken |= self.is_first_of(id).is_some_and(|first| first != id);
        }
    }

    /// The first in the queue, where this one is in it.
    fn is_first_of(&self, id: Id) -> Option<Id> {
        let is_in = self.store.queue.iter().any(|it| it.id == id);
        self.store.queue.first().map(|it| it.id).filter(|_| is_in)
    }

    /// The server that was cut off learns what the majority has, and what it was asked to write is lost.
    fn rejoin(&mut self) {
        self.store.cut_off = None;
        for number in (0u8..).take(self.clients.len()) {
            if self.client(number).link.cut_off {
                self.client(number).link.requests.clear();
                self.disconnect(number);
            }
        }
    }

    fn fail(&mut self, fault: Fault, number: u8) {
        self.faults -= 1;
        match fault {
            Fault::Disconnect => self.disconnect(number),
            Fault::Stop => self.client(number).link.stopped = true,
            Fault::CutOff => {
                self.store.cut_off = Some((self.store.queue.clone(), self.store.revision));
                self.store.watches.retain(|(watcher, _)| *watcher != number);
                self.client(number).link.cut_off = true;
            }
        }
    }

    fn disconnect(&mut self, number: u8) {
        self.store.watches.retain(|(watcher, _)| *watcher != number);
        let client = self.client(number);
        let sent = std::mem::take(&mut client.link.requests);
        // What was sent to a server that is cut off reaches nobody.
        if !client.link.cut_off {
            client.link.late.extend(sent);
        }
        client.link.down = true;
        client.link.cut_off = false;
        client.link.silent = false;
        client.link.messages.clear();
        client.disconnected();
    }

    fn tick(&mut self) {
        self.drop_silent_links();
        self.keep_sessions();
        let mut events = Vec::new();
        self.store.tick(&mut events);
        self.notify(events);
        for client in &mut self.clients {
            client.left = client.left.saturating_sub(1);
            client.beating = client.beating.map(|age| (age + 1).min(SESSION));
        }
    }

    /// A server that leaves a request unanswered is left for another one.
    fn drop_silent_links(&mut self) {
        for number in (0u8..).take(self.clients.len()) {
            let link = &mut self.client(number).link;
            if link.requests.is_empty() || link.stopped {
                continue;
            }
            if std::mem::replace(&mut link.silent, true) {
                self.disconnect(number);
            }
        }
    }

    /// A client goes on after its acquisition, with others.
    fn keep_sessions(&mut self) {
        for session in &mut self.store.sessions {
            let client = &self.clients[usize::from(session.id.client)];
            if client.stage == Stage::Done && client.id == session.id {
                session.left = SESSION;
            }
        }
    }

    /// Clients do at once what needs no event: deadlines that have passed, and the next calls.
    fn settle(&mut self, scenario: &Scenario) {
        for client in self.clients.iter_mut().filter(|it| !it.link.stopped) {
            let has_passed = client.left == 0 && !scenario.breaks(Bug::PolledWithoutALook);
            if has_passed && matches!(client.stage, Stage::Held { .. }) {
                client.leave(scenario);
            }
            client.link.silent &= !client.link.requests.is_empty();
            while let Some(request) = client.next_call(scenario).filter(|_| !client.link.down) {
                client.sent(request);
                client.link.requests.push(request);
            }
        }
    }
}
