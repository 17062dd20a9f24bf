//! A lock on a store that orders its entries and ends them with a session, as docs/zookeeper.md and docs/etcd.md
//! describe it: the queue is the entries by revision, and the first has the lock.
//!
//! The rules are those of docs/etcd.md#the-protocol, by their first words, and of docs/zookeeper.md#how-a-lock-is-taken.
//! The model has exclusive locks with one acquisition a session. It leaves out slots, transactions of several calls,
//! cooldowns and revocations.
//!
//! Time passes in ticks, and only when nothing is on its way, as in the model of the queue on Redis.

mod canonical;
pub mod client;
pub mod properties;
pub mod store;
pub mod world;

use std::sync::Arc;

use stateright::{Model, Property};

use client::Stage;
use world::{Action, World};

use crate::fair::Memo;

/// The ticks for which the store keeps a session without a heartbeat.
pub const SESSION: u8 = 3;
/// The deadline is that much earlier than the end of the session.
pub const MARGIN: u8 = 1;

/// What is searched.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name in the table of results.
    pub name: &'static str,
    /// How many clients there are, each with one acquisition.
    pub clients: u8,
    /// How many faults may occur.
    pub faults: u8,
    /// Which faults.
    pub kinds: Vec<Fault>,
    /// Whether waiters may give up.
    pub gives_up: bool,
    /// Whether states that differ by nothing but the numbers of the clients are one.
    pub symmetric: bool,
    /// The rule that is broken, if one is.
    pub bug: Option<Bug>,
    /// States from which a fair run is known to end.
    pub memo: Arc<Memo>,
}

/// What may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A connection breaks: what was sent arrives late or never, and no answer comes.
    Disconnect,
    /// A process stops for as long as it likes.
    Stop,
    /// The server of a client is cut off from the majority, perhaps as a leader that is none any more: it confirms
    /// nothing, and answers reads from what it had.
    CutOff,
}

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// An answer of a server that is cut off confirms a heartbeat.
    HeartbeatOfACutOffServer,
    /// A session counts from the answer to its heartbeat.
    CountedFromTheAnswer,
    /// The body is polled without a look at the deadline.
    PolledWithoutALook,
    /// Whoever does not find its own entry takes nobody to be ahead.
    OwnEntryNotLookedFor,
    /// The deletion of the entry ahead grants the lock, whoever else is ahead.
    OneDeletionIsProof,
    /// Whoever watches does not look at what came before the watch.
    WatchTrusted,
    /// A create without an answer is sent again, and the first may arrive as well.
    CreateSentAgain,
    /// An acquisition that gives up deletes its entry before it is sure that no create arrives any more.
    UnwantedEntryStays,
    /// The fence is the place in the queue, whose numbers begin again when it was empty.
    NumbersBeginAgain,
}

impl Scenario {
    /// A scenario in which this many of these faults occur.
    pub fn new(name: &'static str, clients: u8, faults: u8, kinds: &[Fault]) -> Self {
        Self {
            name,
            clients,
            faults,
            kinds: kinds.to_vec(),
            gives_up: false,
            symmetric: false,
            bug: None,
            memo: Arc::default(),
        }
    }

    /// Whether this rule is broken.
    pub fn breaks(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn faults(&self, world: &World, actions: &mut Vec<Action>) {
        for kind in &self.kinds {
            for (number, client) in (0u8..).zip(&world.clients) {
                let possible = match kind {
                    Fault::Disconnect => !client.link.down,
                    Fault::Stop => !client.link.stopped,
                    Fault::CutOff => !client.link.down && world.store.cut_off.is_none(),
                };
                if possible && !matches!(client.stage, Stage::New | Stage::Done) {
                    actions.push(Action::Fail(*kind, number));
                }
            }
        }
    }
}

impl Model for Scenario {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (number, client) in (0u8..).zip(&world.clients) {
            let link = &client.link;
            let runs = !link.stopped;
            let possible = [
                (runs && client.stage == Stage::New, Action::Start(number)),
                (
                    runs && matches!(client.stage, Stage::Held { .. }),
                    Action::Finish(number),
                ),
                (
                    self.gives_up && runs && client.waits(),
                    Action::GiveUp(number),
                ),
                (world.may_run(self, client), Action::Run(number)),
                (!link.late.is_empty(), Action::RunLate(number)),
                (!link.late.is_empty(), Action::Notice(number)),
                (runs && !link.messages.is_empty(), Action::Read(number)),
                (runs && link.down, Action::Connect(number)),
                (
                    runs && link.down && world.store.cut_off.is_some(),
                    Action::ConnectToCutOff(number),
                ),
                (link.stopped, Action::Resume(number)),
            ];
            actions.extend(
                possible
                    .into_iter()
                    .filter(|(possible, _)| *possible)
                    .map(|(_, action)| action),
            );
        }
        if world.faults > 0 {
            self.faults(world, actions);
        }
        if world.store.cut_off.is_some() {
            actions.push(Action::Rejoin);
        }
        if world.is_quiet(self) {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.take(self, action);
        next.canonicalize(self);
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
