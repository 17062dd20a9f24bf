//! What is searched: the acquisitions, what may happen to them, and what follows.

use std::sync::Arc;

use stateright::{Model, Property};

use super::client::Stage;
use super::properties;
use super::rules::Rules;
use super::setting::{Company, Setting};
use super::world::{Action, World};

use crate::fair::Memo;

/// What is searched: the acquisitions, and what may happen to them.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name in the table of results.
    pub name: &'static str,
    /// The times, and the broken rule.
    pub rules: Rules,
    /// The acquisitions.
    pub plans: Vec<Plan>,
    /// How many faults may occur.
    pub faults: u8,
    /// Which faults.
    pub kinds: Vec<Fault>,
    /// Whether waiters may give up.
    pub gives_up: bool,
    /// States from which a fair run is known to end.
    pub memo: Arc<Memo>,
}

/// One acquisition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The client that makes it.
    pub client: u8,
    /// The lock that it wants.
    pub lock: u8,
    /// Whether a cooldown follows.
    pub cools: bool,
    /// The acquisition of the key before, if it is one of several keys.
    pub after: Option<u8>,
    /// Whether it tries once, instead of waiting.
    pub tries: bool,
    /// Whether it ends with a ticket, instead of a release.
    pub issues: bool,
    /// The acquisition whose ticket it adopts, instead of waiting.
    pub adopts: Option<u8>,
}

/// What may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A connection breaks: what was sent arrives late or never, and no answer comes.
    Disconnect,
    /// A process stops for as long as it likes.
    Stop,
    /// A process ends.
    Crash,
    /// Messages of a connection take longer, until the client drops it.
    Delay,
    /// The server restarts with its data.
    Restart,
    /// The server restarts without its data.
    Forget,
}

impl Scenario {
    /// A scenario in which this many of these faults occur.
    pub fn new(name: &'static str, plans: Vec<Plan>, faults: u8, kinds: &[Fault]) -> Self {
        Self {
            name,
            rules: Rules::default(),
            plans,
            faults,
            kinds: kinds.to_vec(),
            gives_up: false,
            memo: Arc::default(),
        }
    }

    /// Waiters may give up, too.
    #[must_use]
    pub fn giving_up(self) -> Self {
        Self {
            gives_up: true,
            ..self
        }
    }

    /// With other times.
    #[must_use]
    pub fn with(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.plans
            .iter()
            .map(|it| usize::from(it.client) + 1)
            .max()
            .unwrap_or(0)
    }

    /// How many locks there are.
    pub fn locks(&self) -> usize {
        self.plans
            .iter()
            .map(|it| usize::from(it.lock) + 1)
            .max()
            .unwrap_or(0)
    }

    /// The client of an acquisition.
    pub fn client(&self, task: u8) -> usize {
        usize::from(self.plans[usize::from(task)].client)
    }

    /// The lock of an acquisition.
    pub fn lock(&self, task: u8) -> usize {
        usize::from(self.plans[usize::from(task)].lock)
    }

    /// Whether it may be granted together with others: more of its client want the lock, no cooldown follows, and no
    /// other key.
    pub fn chains(&self, task: u8) -> bool {
        let plan = self.plans[usize::from(task)];
        let same = self
            .plans
            .iter()
            .filter(|it| (it.client, it.lock) == (plan.client, plan.lock));
        let alone = plan.cools || plan.tries || plan.issues || plan.adopts.is_some();
        same.count() > 1 && !alone && self.plans.iter().all(|it| it.after != Some(task))
    }

    /// Whether an acquisition may begin: one of several keys follows the key before, and an adopter needs the ticket.
    pub fn may_start(&self, world: &World, task: u8) -> bool {
        let plan = self.plans[usize::from(task)];
        let is_issued = |issuer: u8| world.tasks[usize::from(issuer)].stage == Stage::Done;
        world.tasks[usize::from(task)].stage == Stage::New
            && plan.after.is_none()
            && plan.adopts.is_none_or(is_issued)
    }

    /// Whether an acquisition of this client has not ended.
    pub fn is_unfinished(&self, world: &World, client: u8) -> bool {
        let mut tasks = self
            .plans
            .iter()
            .zip(&world.tasks)
            .filter(|(plan, _)| plan.client == client);
        tasks.any(|(_, it)| it.stage != Stage::Done)
    }

    /// Whether a body may return: those of further keys have.
    pub fn may_finish(&self, world: &World, task: u8) -> bool {
        let mut further = self
            .plans
            .iter()
            .zip(&world.tasks)
            .filter(|(plan, _)| plan.after == Some(task));
        matches!(world.tasks[usize::from(task)].stage, Stage::Held { .. })
            && further.all(|(_, it)| it.stage == Stage::Done)
    }

    fn task_actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (number, task) in (0u8..).zip(&world.tasks) {
            if world.links[self.client(number)].stopped {
                continue;
            }
            if self.may_start(world, number) {
                actions.push(Action::Start(number));
            }
            if self.may_finish(world, number) {
                actions.push(Action::Finish(number));
            }
            if self.gives_up && task.wants() {
                actions.push(Action::GiveUp(number));
            }
        }
    }

    fn link_actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (client, link) in (0u8..).zip(&world.links) {
            let listens = world.server.listens[usize::from(client)];
            let possible = [
                (!link.requests.is_empty(), Action::Run(client)),
                (!link.late.is_empty(), Action::RunLate(client)),
                (
                    !link.late.is_empty() || link.down && listens,
                    Action::Notice(client),
                ),
                (
                    !link.stopped && !link.replies.is_empty(),
                    Action::Read(client),
                ),
                (
                    !link.stopped && !link.pushes.is_empty(),
                    Action::ReadPush(client),
                ),
                (
                    !link.stopped && link.down && self.is_unfinished(world, client),
                    Action::Connect(client),
                ),
                (link.stopped, Action::Resume(client)),
                (link.slow, Action::Recover(client)),
            ];
            actions.extend(
                possible
                    .into_iter()
                    .filter(|(possible, _)| *possible)
                    .map(|(_, action)| action),
            );
        }
    }

    fn is_active(&self, world: &World, client: u8) -> bool {
        let mut tasks = self
            .plans
            .iter()
            .zip(&world.tasks)
            .filter(|(plan, _)| plan.client == client);
        tasks.any(|(_, it)| !matches!(it.stage, Stage::New | Stage::Done))
    }

    fn faults(&self, world: &World, actions: &mut Vec<Action>) {
        for kind in &self.kinds {
            for (client, link) in (0u8..).zip(&world.links) {
                let possible = match kind {
                    Fault::Disconnect => !link.down && self.is_active(world, client),
                    Fault::Stop => !link.stopped && self.is_active(world, client),
                    Fault::Crash => self.is_active(world, client),
                    Fault::Delay => !(link.slow || link.requests.is_empty() && link.is_read()),
                    Fault::Restart | Fault::Forget => client == 0,
                };
                if possible {
                    actions.push(Action::Fail(*kind, client));
                }
            }
        }
    }
}

impl Setting<u8> for Scenario {
    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn client(&self, task: u8) -> usize {
        Self::client(self, task)
    }

    fn lock(&self, task: u8) -> usize {
        Self::lock(self, task)
    }

    fn ttl(&self, _: u8) -> u8 {
        self.rules.ttl
    }

    fn cooldown(&self, _: u8) -> u8 {
        self.rules.cooldown
    }

    fn ticket(&self, _: u8) -> u8 {
        self.rules.ticket
    }

    fn company(&self, task: u8) -> Company {
        if self.chains(task) {
            Company::More
        } else {
            Company::Alone
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
        self.task_actions(world, actions);
        self.link_actions(world, actions);
        if world.faults > 0 {
            self.faults(world, actions);
        }
        if world.is_quiet() {
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

/// A number of a task or client, which are few.
pub(super) fn index(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
