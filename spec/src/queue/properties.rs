//! What holds in every state.

use stateright::Property;

use super::Scenario;
use super::client::Stage;
use super::scenario::index;
use super::server::Name;
use super::world::{Action, World};
use crate::fair::{Fair, Memo, ends};

/// No two bodies of one lock are polled at a time.
pub const ONE_HOLDER: &str = "one holder";
/// The server has the lock for every body that is polled.
pub const NO_LATE_POLL: &str = "no poll after the deadline";
/// Each body of a lock begins with a larger fence than those before.
pub const FENCES_GROW: &str = "fences grow";
/// Without further faults all acquisitions end, and leave no lock behind.
pub const NOBODY_WAITS_FOR_EVER: &str = "nobody waits for ever";
/// Nobody is granted the lock before one that came more than the window earlier.
pub const NOBODY_IS_OVERTAKEN: &str = "nobody is overtaken";
/// Nobody else has a lock during a cooldown, and none but an adopter during the time of a ticket.
pub const COOLDOWNS_LAST: &str = "cooldowns and tickets last";

/// All of them.
pub fn all() -> Vec<Property<Scenario>> {
    vec![
        Property::always(ONE_HOLDER, one_holder),
        Property::always(NO_LATE_POLL, no_late_poll),
        Property::always(FENCES_GROW, |_, world: &World| !world.stale_fence),
        Property::always(NOBODY_WAITS_FOR_EVER, ends),
        Property::always(NOBODY_IS_OVERTAKEN, |_, world: &World| !world.overtaken),
        Property::always(COOLDOWNS_LAST, cooldowns_last),
    ]
}

/// The acquisitions whose bodies are polled, and their locks.
fn polled<'a>(scenario: &'a Scenario, world: &'a World) -> impl Iterator<Item = (u8, usize)> {
    let tasks = (0u8..)
        .zip(&world.tasks)
        .filter(|(_, it)| it.is_polled(&scenario.rules));
    let running = tasks.filter(|(number, _)| !world.links[scenario.client(*number)].stopped);
    running.map(|(number, _)| (number, scenario.lock(number)))
}

fn one_holder(scenario: &Scenario, world: &World) -> bool {
    (0..scenario.locks()).all(|lock| {
        polled(scenario, world)
            .filter(|(_, it)| *it == lock)
            .count()
            <= 1
    })
}

fn no_late_poll(scenario: &Scenario, world: &World) -> bool {
    polled(scenario, world).all(|(number, lock)| {
        let token = world.tasks[usize::from(number)].token;
        let is_ours = world.server.locks[lock]
            .owner
            .is_some_and(|it| it.token == token && it.name == Name::Holder);
        // A server that has lost its data does not know of the lease; the quarantine keeps the lock closed.
        is_ours || world.server.forgot
    })
}

fn cooldowns_last(_: &Scenario, world: &World) -> bool {
    let mut locks = world.server.locks.iter().zip(&world.closed);
    locks.all(|(lock, (left, task))| {
        *left == 0 || lock.owner.is_some_and(|it| it.token.task == *task)
    })
}

impl Fair for Scenario {
    fn next(&self, world: &World) -> Option<Action> {
        for (client, link) in (0u8..).zip(&world.links) {
            let due = [
                (link.stopped, Action::Resume(client)),
                (link.slow, Action::Recover(client)),
                (
                    link.down && self.is_unfinished(world, client),
                    Action::Connect(client),
                ),
                (
                    !link.late.is_empty() || link.down && world.server.listens[usize::from(client)],
                    Action::Notice(client),
                ),
                (!link.pushes.is_empty(), Action::ReadPush(client)),
                (!link.replies.is_empty(), Action::Read(client)),
                (!link.requests.is_empty(), Action::Run(client)),
            ];
            if let Some((_, action)) = due.into_iter().find(|(due, _)| *due) {
                return Some(action);
            }
        }
        for number in 0..index(world.tasks.len()) {
            if self.may_start(world, number) {
                return Some(Action::Start(number));
            }
            if self.may_finish(world, number) {
                return Some(Action::Finish(number));
            }
        }
        let is_over = world.tasks.iter().all(|it| it.stage == Stage::Done)
            && world.server.locks.iter().all(|it| it.owner.is_none());
        (!is_over).then_some(Action::Tick)
    }

    fn memo(&self) -> &Memo {
        &self.memo
    }
}
